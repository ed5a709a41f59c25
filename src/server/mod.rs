//! What all workers share: the settings, the registry of clients, the statistics and the signals that concern everybody.
//!
//! Nothing here is written per command by more than one thread: counters have one slot per worker and are summed when
//! somebody asks ([`statistics`]).

pub mod allocation;
pub mod clients;
pub mod logging;
mod pause;
pub mod process;
pub mod running;
pub mod shutdown;
pub mod statistics;
pub mod tick;
pub mod tracking;

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use running::Running;

pub use clients::{ClientInfo, Clients};
pub use pause::{Pause, Paused};
pub use shutdown::{Shutdown, ShutdownRequest};
pub use statistics::Statistics;
pub use tracking::{Mode, ReadMode, Trackers, Tracking};

use bytes::Bytes;

use crate::command::table::Table;
use crate::config::{ClientClass, Settings};
use crate::limits::BACKGROUND_WORKERS_MAX;
use crate::pubsub::{Hub, Monitors, OutboxLimits};
use crate::script::{Libraries, Scripts};
use crate::store::{Store, StoreOptions, StoreStatistics};
use crate::sync::{Arc, AtomicU64};
use crate::txn::{Event, EventClass, EventOrder, Events};

/// The state that all workers of one server share.
pub struct Server {
    /// The settings.
    pub settings: Settings,
    /// The commands.
    pub table: Table,
    /// The data.
    pub store: Arc<Store>,
    /// The clients that are connected now.
    pub clients: Clients,
    /// Who has subscribed to what.
    pub hub: Hub,
    /// Who is shown every command.
    pub monitors: Monitors,
    /// Who is told of keys that have changed.
    pub trackers: Trackers,
    /// Whether clients are paused.
    pub pause: Pause,
    /// Counters, one slot per worker.
    pub statistics: Statistics,
    /// The scripts that EVALSHA can name.
    pub scripts: Scripts,
    /// The libraries of functions.
    pub libraries: Libraries,
    /// The scripts that run now.
    pub running: Running,
    /// How much happens per second.
    pub rates: tick::Rates,
    /// The request to stop, which every worker awaits.
    pub shutdown: Shutdown,
    /// Forty hexadecimal digits, new with every start.
    pub run_id: String,
    replication_id: Mutex<String>,
    store_statistics_before: Mutex<StoreStatistics>,
    /// Bytes in use when the server was ready, before any client came.
    pub startup_memory: AtomicU64,
    /// When this server was made.
    pub started: Instant,
    /// The same moment on the wall clock.
    pub started_at: SystemTime,
}

impl Server {
    /// A server with these settings and commands, and empty databases. Its statistics have a slot for each worker and command.
    pub fn new(settings: Settings, table: Table) -> Self {
        let workers = usize::from(settings.threads.get());
        let store = Store::new(StoreOptions {
            databases: settings.databases.get() as usize,
            workers_max: workers + BACKGROUND_WORKERS_MAX,
            ..StoreOptions::default()
        });
        let commands = table.len();
        Self {
            settings,
            table,
            store,
            clients: Clients::default(),
            hub: Hub::default(),
            monitors: Monitors::default(),
            trackers: Trackers::default(),
            pause: Pause::default(),
            statistics: Statistics::new(workers, commands),
            scripts: Scripts::default(),
            libraries: Libraries::default(),
            running: Running::new(workers),
            rates: tick::Rates::default(),
            shutdown: Shutdown::default(),
            run_id: random_hexadecimal_40(),
            replication_id: Mutex::new(random_hexadecimal_40()),
            store_statistics_before: Mutex::default(),
            startup_memory: AtomicU64::new(0),
            started: Instant::now(),
            started_at: SystemTime::now(),
        }
    }
}

impl Server {
    /// Sets all statistics to zero, the store's too (its counters go on; what they show is the difference).
    pub fn reset_statistics(&self) {
        self.statistics.reset();
        *self.store_statistics_before.lock().unwrap_or_else(PoisonError::into_inner) = self.store.statistics();
    }

    /// What the store's counters have grown by since the statistics were set to zero.
    pub fn store_statistics(&self) -> StoreStatistics {
        let before = *self.store_statistics_before.lock().unwrap_or_else(PoisonError::into_inner);
        self.store.statistics().since(&before)
    }

    /// The name of this history of the data, for replicas: forty hexadecimal digits.
    pub fn replication_id(&self) -> String {
        self.replication_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins another history.
    pub fn change_replication_id(&self) {
        *self.replication_id.lock().unwrap_or_else(PoisonError::into_inner) = random_hexadecimal_40();
    }

    /// How much may wait for a client of this class.
    pub fn outbox_limits(&self, class: ClientClass) -> OutboxLimits {
        let limit = self.settings.output_limit(class);
        OutboxLimits { hard: limit.hard.get(), soft: limit.soft.get() }
    }

    /// Publishes a message to a channel on behalf of a worker; gives the number of subscriptions that it reached.
    pub fn publish(&self, worker: usize, channel: &[u8], payload: &[u8]) -> usize {
        let published = self.hub.publish(channel, payload, self.outbox_limits(ClientClass::PubSub));
        self.count_overflows(worker, published.overflows);
        published.receivers
    }

    /// As [`publish`](Self::publish), to a shard channel.
    pub fn publish_shard(&self, worker: usize, channel: &[u8], payload: &[u8]) -> usize {
        let published = self.hub.publish_shard(channel, payload, self.outbox_limits(ClientClass::PubSub));
        self.count_overflows(worker, published.overflows);
        published.receivers
    }

    /// After a commit, or the end of keys whose deadline has passed: publishes the events of the latter that wait, and tells the clients that
    /// track keys of all of them. `writer` is the client that wrote.
    #[cold]
    pub fn tell_of_changes(
        &self,
        worker: usize,
        writer: Option<u64>,
        expired: Option<Events>,
        written: Option<Events>,
    ) {
        if let Some(expired) = &expired {
            let stripe = |event: Event<'_>| EventOrder::stripe(self.store.hash(event.key));
            let stripes = expired.iter().map(stripe).fold(0, |set, stripe| set | stripe);
            for mut waiting in self.store.event_order().lock(stripes) {
                self.publish_events(worker, waiting.iter());
                waiting.clear();
            }
        }
        for (writer, keys) in [(None, expired), (writer, written)] {
            if let Some(keys) = keys {
                self.tell_of_writes(worker, writer, keys.iter().map(|event| event.key));
            }
        }
    }

    /// Publishes key events in order, as `notify-keyspace-events` says: under the key, under the event's name, or both.
    pub fn publish_events<'e>(&self, worker: usize, events: impl Iterator<Item = Event<'e>>) {
        let ways = EventClass(self.settings.notify_keyspace_events.get());
        let mut channel = Vec::new();
        for event in events {
            let mut publish = |way: EventClass, kind: &str, about: &[u8], payload: &[u8]| {
                if ways.meets(way) {
                    channel.clear();
                    channel.extend_from_slice(format!("__{kind}@{}__:", event.database).as_bytes());
                    channel.extend_from_slice(about);
                    self.publish(worker, &channel, payload);
                }
            };
            publish(EventClass::BY_KEY, "keyspace", event.key, event.name.as_bytes());
            publish(EventClass::BY_EVENT, "keyevent", event.name.as_bytes(), event.key);
        }
    }

    /// Shows a line to those who watch all commands.
    pub fn show_to_monitors(&self, worker: usize, line: &Bytes) {
        self.count_overflows(worker, self.monitors.show(line, self.outbox_limits(ClientClass::Normal)));
    }

    fn count_overflows(&self, worker: usize, overflows: u64) {
        if overflows > 0 {
            self.statistics.worker(worker).counters.output_buffer_limit_disconnections.add(overflows);
            tracing::warn!("closing {overflows} clients that exceed client-output-buffer-limit");
        }
    }

    /// Whether more memory is in use than `maxmemory` allows, so that commands flagged `denyoom` are refused. One load
    /// without a limit; with one, O(threads).
    pub fn memory_is_full(&self) -> bool {
        let limit = self.settings.maxmemory.get();
        limit > 0 && allocation::used() > limit
    }
}

/// Forty random hexadecimal digits, as Redis identifies runs and replication histories.
pub fn random_hexadecimal_40() -> String {
    use std::hash::{BuildHasher, Hasher};
    // Each `RandomState` is keyed by the operating system's randomness.
    (0..5)
        .map(|round: u32| {
            let mut hasher = std::hash::RandomState::new().build_hasher();
            hasher.write_u32(round);
            format!("{:08x}", hasher.finish() as u32)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_have_forty_hexadecimal_digits_and_differ() {
        let (one, two) = (random_hexadecimal_40(), random_hexadecimal_40());
        assert_eq!(one.len(), 40);
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one, two);
    }
}

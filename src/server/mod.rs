//! What all workers share: the settings, the registry of clients, the statistics and the signals that concern everybody.
//!
//! Nothing here is written per command by more than one thread: counters have one slot per worker and are summed when
//! somebody asks ([`statistics`]).

pub mod allocation;
pub mod clients;
pub mod logging;
pub mod process;
pub mod shutdown;
pub mod statistics;
pub mod tick;

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

pub use clients::{ClientInfo, Clients};
pub use shutdown::{Shutdown, ShutdownRequest};
pub use statistics::Statistics;

use crate::command::table::Table;
use crate::config::Settings;
use crate::limits::BACKGROUND_WORKERS_MAX;
use crate::store::{Store, StoreOptions, StoreStatistics};
use crate::sync::{Arc, AtomicU64};

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
    /// Counters, one slot per worker.
    pub statistics: Statistics,
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
            statistics: Statistics::new(workers, commands),
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

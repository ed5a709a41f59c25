//! One worker: a thread with a runtime, a share of the connections, and buffers that they use in turn.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::mpsc;
use tokio::task;

use super::connection::Connection;
use super::listener::Accepted;
use crate::limits;
use crate::resp::{Batch, Reply};
use crate::server::allocation::Trim;
use crate::server::statistics::Counters;
use crate::server::{ClientInfo, Server};
use crate::session::Session;
use crate::store;
use crate::sync::{Arc, AtomicUsize, Ordering};
use crate::txn::{self, EventClass};

/// What the connections of one worker share. It stays on its thread.
pub struct Worker {
    index: usize,
    server: Arc<Server>,
    store: store::Worker,
    input: RefCell<Box<[u8]>>,
    scratch: RefCell<Scratch>,
    /// Bytes of output that wait, of all connections.
    output_bytes: Cell<usize>,
    load: Load,
}

/// What one batch is decoded to, and its replies.
#[derive(Default)]
pub struct Scratch {
    /// The decoded commands.
    pub batch: Batch,
    /// Their replies.
    pub reply: Reply,
    /// Memory for transactions.
    pub transactions: txn::Scratch,
    /// The thread's Lua state, made when it is first wanted.
    pub engine: Option<crate::script::Engine>,
}

/// How many connections each worker serves.
pub type Load = Arc<[AtomicUsize]>;

impl Worker {
    /// Its number, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// What all workers share.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// This thread's access to the store.
    pub fn store(&self) -> &store::Worker {
        &self.store
    }

    /// The buffer that input is read into; held for one turn of one connection.
    pub fn input(&self) -> RefMut<'_, Box<[u8]>> {
        self.input.borrow_mut()
    }

    /// The buffers for commands and replies; held for one turn of one connection.
    pub fn scratch(&self) -> RefMut<'_, Scratch> {
        self.scratch.borrow_mut()
    }

    /// This worker's counters.
    pub fn counters(&self) -> &Counters {
        &self.server.statistics.worker(self.index).counters
    }

    /// Output that may wait for one connection before it is read from no more, in bytes: as much as is free in the worker's pool, so
    /// that one gets half of it, two get a third each, and so on; but always [`limits::OUTPUT_BYTES_MIN`].
    pub fn output_share(&self) -> usize {
        limits::OUTPUT_POOL_BYTES.saturating_sub(self.output_bytes.get()).max(limits::OUTPUT_BYTES_MIN)
    }

    /// Notes that a connection's waiting output went from `before` to `after` bytes.
    pub fn output_changed(&self, before: usize, after: usize) {
        self.output_bytes.set(self.output_bytes.get() + after - before);
    }

    /// Notes that a connection has ended. (That it begins is noted by who deals it to this worker.)
    pub fn connection_closed(&self) {
        // Relaxed: the figure only balances the load.
        self.load[self.index].fetch_sub(1, Ordering::Relaxed);
    }
}

/// What one worker is started with.
pub struct Start {
    /// Its number, from 0.
    pub index: usize,
    /// What all workers share.
    pub server: Arc<Server>,
    /// Sockets that are dealt to it.
    pub accepted: mpsc::Receiver<Accepted>,
    /// How many connections each worker serves.
    pub load: Load,
}

/// Serves connections on the calling thread until the server is told to stop. `extra` is polled beside them.
///
/// # Errors
/// If the system has no room for another event queue, or the store none for another worker.
pub fn run(start: Start, extra: impl Future<Output = ()> + 'static) -> std::io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build_local(runtime::LocalOptions::default())?;
    let store = store::Worker::register(&start.server.store)
        .ok_or_else(|| std::io::Error::other("the store has no room for another worker"))?;
    let worker = Rc::new(Worker {
        index: start.index,
        server: start.server.clone(),
        store,
        input: RefCell::new(vec![0; limits::SHARED_INPUT_BYTES].into()),
        scratch: RefCell::new(Scratch::default()),
        output_bytes: Cell::new(0),
        load: start.load,
    });
    runtime.block_on(async {
        task::spawn_local(extra);
        task::spawn_local(keep_house(worker.clone()));
        task::spawn_local(close_idle(worker.clone()));
        task::spawn_local(take_connections(worker.clone(), start.accepted));
        start.server.shutdown.wait().await;
    });
    // Ends all tasks, and so closes all connections, before the worker leaves the store.
    drop(runtime);
    Ok(())
}

/// Starts a task for each socket that is dealt to this worker.
async fn take_connections(worker: Rc<Worker>, mut accepted: mpsc::Receiver<Accepted>) {
    while let Some(socket) = accepted.recv().await {
        worker.counters().connections_received.add(1);
        match socket.open(&worker) {
            Ok((stream, client)) => {
                let authenticated = !worker.server.settings.password_required.get();
                let session = Session::new(client, authenticated);
                task::spawn_local(Connection::new(worker.clone(), stream, session));
            }
            Err(error) => {
                worker.connection_closed();
                tracing::debug!("a connection was lost before it was served: {error}");
            }
        }
    }
}

/// Calls the store's housekeeping ten times a second, in small steps with connections served in between.
async fn keep_house(worker: Rc<Worker>) {
    let period = Duration::from_millis(limits::HOUSEKEEPING_INTERVAL_MS);
    // The workers take turns: the allocator lets one thread at a time give memory back, and turns others away.
    let workers = worker.load.len() as u32;
    let first = tokio::time::Instant::now() + period * worker.index as u32 / workers;
    let mut interval = tokio::time::interval_at(first, period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut trim = Trim::default();
    loop {
        interval.tick().await;
        let events = EventClass::wanted(worker.server.settings.notify_keyspace_events.get());
        worker.store.want_expired(events.meets(EventClass::EXPIRED));
        loop {
            let more = worker.store.tick();
            if let Some(expired) = worker.store.take_expired() {
                worker.server.tell_of_changes(worker.index, None, Some(expired), None);
            }
            if !more {
                break;
            }
            task::yield_now().await;
        }
        trim.tick();
    }
}

/// Closes this worker's clients that have been silent for longer than the setting `timeout`.
async fn close_idle(worker: Rc<Worker>) {
    let mut interval = tokio::time::interval(Duration::from_millis(limits::IDLE_CHECK_INTERVAL_MS));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let seconds = worker.server.settings.timeout_seconds.get();
        if seconds == 0 {
            continue;
        }
        let own = |client: &Arc<ClientInfo>| client.worker == worker.index;
        for client in worker.server.clients.snapshot().into_iter().filter(own) {
            // Those who listen or wait are silent by nature.
            // Relaxed: a client that has just been served is not idle.
            let waits = client.is_subscriber() || client.is_monitor() || client.is_blocked.load(Ordering::Relaxed);
            if !waits && client.idle() > Duration::from_secs(u64::from(seconds)) {
                tracing::debug!("closing idle client {}", client.address);
                client.kill();
            }
        }
    }
}

//! Who is connected: a registry from client id to what CLIENT LIST shows of it.
//!
//! The connection's worker is the only writer of a client's figures; CLIENT LIST, INFO and CLIENT KILL read them from any
//! worker. Figures are stored with relaxed order: each stands for itself, and a reader may see some of them a batch late.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::{Allow, ClientClass};
use crate::pubsub::{Outbox, Topic};
use crate::sync::{Arc, AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The connected clients by id.
#[derive(Default)]
pub struct Clients {
    by_id: flurry::HashMap<u64, Arc<ClientInfo>>,
    last_id: AtomicU64,
}

impl Clients {
    /// A new id. Ids grow and are never used twice.
    pub fn next_id(&self) -> u64 {
        // Relaxed: only uniqueness counts, which any read-modify-write gives. One write per connection, not per command.
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a client that has just connected.
    pub fn insert(&self, client: Arc<ClientInfo>) {
        self.by_id.pin().insert(client.id, client);
    }

    /// Removes a client that has gone.
    pub fn remove(&self, id: u64) {
        self.by_id.pin().remove(&id);
    }

    /// The client with this id, if it is connected.
    pub fn get(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.by_id.pin().get(&id).cloned()
    }

    /// Tells these clients, as far as they are connected, that there is something for them.
    pub fn wake(&self, ids: &[u64]) {
        for id in ids {
            if let Some(client) = self.get(*id) {
                client.wake();
            }
        }
    }

    /// How many clients are connected.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All clients, oldest first. O(n log n) and a copy of n pointers, so that no guard is held while they are looked at.
    pub fn snapshot(&self) -> Vec<Arc<ClientInfo>> {
        let mut clients: Vec<_> = self.by_id.pin().values().cloned().collect();
        clients.sort_unstable_by_key(|client| client.id);
        clients
    }
}

/// What the client calls itself, or is known as.
#[derive(Clone, Debug, Default)]
pub struct ClientLabels {
    /// CLIENT SETNAME.
    pub name: Vec<u8>,
    /// CLIENT SETINFO LIB-NAME.
    pub library_name: Vec<u8>,
    /// CLIENT SETINFO LIB-VER.
    pub library_version: Vec<u8>,
    /// The user it is authenticated as.
    pub user: Vec<u8>,
}

/// One client, as other workers see it.
pub struct ClientInfo {
    /// Its id.
    pub id: u64,
    /// The peer's address as CLIENT LIST prints it (`addr:port`, `[v6]:port`, or the socket's path and `:0`).
    pub address: String,
    /// Our own address of this connection.
    pub local_address: String,
    /// The socket's descriptor.
    pub descriptor: i32,
    /// Whether it came through the Unix socket.
    pub is_unix: bool,
    /// The worker that serves it.
    pub worker: usize,
    /// When it connected.
    pub connected: Instant,
    labels: Mutex<ClientLabels>,
    /// The database it has selected.
    pub database: AtomicU32,
    /// 2 or 3.
    pub protocol: AtomicU32,
    /// Milliseconds after `connected` at which it last sent something.
    pub last_interaction_ms: AtomicU64,
    /// Number of the row of its last command, plus one; zero for none.
    pub last_command: AtomicU32,
    /// Bytes of unparsed input.
    pub query_buffer: AtomicUsize,
    /// Room left in the input buffer, in bytes.
    pub query_buffer_free: AtomicUsize,
    /// Number of chunks that these bytes are in.
    pub output_chunks: AtomicUsize,
    /// Bytes read from it since it connected.
    pub input_bytes: AtomicU64,
    /// Bytes written to it since it connected.
    pub output_bytes: AtomicU64,
    /// Commands it has run.
    pub commands: AtomicU64,
    /// CLIENT NO-EVICT.
    pub no_evict: AtomicBool,
    /// CLIENT NO-TOUCH.
    pub no_touch: AtomicBool,
    /// How many channels, patterns and shard channels it has subscribed to.
    pub subscriptions: [AtomicUsize; 3],
    /// Whether it is shown every command (MONITOR).
    pub is_monitor: AtomicBool,
    /// What other workers have to tell it.
    pub outbox: Arc<Outbox>,
    /// Number of commands queued since MULTI; -1 outside one.
    pub queued: AtomicI64,
    /// Number of keys that it watches.
    pub watched: AtomicUsize,
    /// Whether its command waits.
    pub is_blocked: AtomicBool,
}

impl ClientInfo {
    /// A client that has just connected: database 0, RESP2, no name.
    pub fn new(id: u64, address: String, local_address: String, descriptor: i32, is_unix: bool, worker: usize) -> Self {
        Self {
            id,
            address,
            local_address,
            descriptor,
            is_unix,
            worker,
            connected: Instant::now(),
            labels: Mutex::new(ClientLabels { user: b"default".to_vec(), ..ClientLabels::default() }),
            database: AtomicU32::new(0),
            protocol: AtomicU32::new(2),
            last_interaction_ms: AtomicU64::new(0),
            last_command: AtomicU32::new(0),
            query_buffer: AtomicUsize::new(0),
            query_buffer_free: AtomicUsize::new(0),
            output_chunks: AtomicUsize::new(0),
            input_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            subscriptions: Default::default(),
            is_monitor: AtomicBool::new(false),
            outbox: Arc::default(),
            queued: AtomicI64::new(-1),
            watched: AtomicUsize::new(0),
            is_blocked: AtomicBool::new(false),
        }
    }

    /// The labels, to be read or changed for a moment (never across an await).
    pub fn labels(&self) -> MutexGuard<'_, ClientLabels> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is connected from this machine.
    pub fn is_local(&self) -> bool {
        self.is_unix || self.address.starts_with("127.") || self.address.starts_with("[::1]:")
    }

    /// Whether it may use what `allow` restricts.
    pub fn is_allowed(&self, allow: Allow) -> bool {
        match allow {
            Allow::No => false,
            Allow::Yes => true,
            Allow::Local => self.is_local(),
        }
    }

    /// Asks the task that serves this client to close it.
    pub fn kill(&self) {
        self.outbox.close();
    }

    /// Lets the task that serves this client look at what there is for it.
    pub fn wake(&self) {
        self.outbox.wake();
    }

    /// Whether somebody asked for this client to be closed.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.outbox.is_closing()
    }

    /// Bytes of output that wait for the socket, with messages that wait to become output.
    pub fn output_buffer(&self) -> usize {
        self.outbox.waiting_bytes()
    }

    /// How many names of a kind it has subscribed to.
    pub fn subscriptions(&self, topic: Topic) -> usize {
        // Relaxed: a figure that orders nothing.
        self.subscriptions[topic as usize].load(Ordering::Relaxed)
    }

    /// Whether it speaks RESP3.
    pub fn speaks_resp3(&self) -> bool {
        // Relaxed: a figure that orders nothing.
        self.protocol.load(Ordering::Relaxed) == 3
    }

    /// The class whose limit of output applies to it.
    pub fn class(&self) -> ClientClass {
        if self.is_subscriber() { ClientClass::PubSub } else { ClientClass::Normal }
    }

    /// Whether it is shown every command.
    pub fn is_monitor(&self) -> bool {
        // Relaxed: a flag that orders nothing.
        self.is_monitor.load(Ordering::Relaxed)
    }

    /// Whether it has subscribed to anything.
    pub fn is_subscriber(&self) -> bool {
        Topic::ALL.iter().any(|topic| self.subscriptions(*topic) > 0)
    }

    /// How long ago it last sent something.
    pub fn idle(&self) -> Duration {
        // Relaxed: a figure that orders nothing.
        let last = Duration::from_millis(self.last_interaction_ms.load(Ordering::Relaxed));
        self.connected.elapsed().saturating_sub(last)
    }

    /// Notes that `bytes` bytes were read from it. Only its own task may call this.
    pub fn received(&self, bytes: usize) {
        // Relaxed: a figure for CLIENT LIST, which orders nothing; its own task is its only writer.
        self.input_bytes.store(self.input_bytes.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Notes when it last sent something. Only its own task may call this.
    pub fn active(&self, at: Instant) {
        let milliseconds = at.saturating_duration_since(self.connected).as_millis() as u64;
        // Relaxed: see `received`.
        self.last_interaction_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// Notes that `bytes` bytes were written to it, and that `waiting` bytes in `chunks` chunks still wait. Only its own task may call
    /// this.
    pub fn sent(&self, bytes: usize, waiting: usize, chunks: usize) {
        // Relaxed, all: see `received`.
        self.output_bytes.store(self.output_bytes.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
        self.outbox.set_unsent(waiting);
        self.output_chunks.store(chunks, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_listed_oldest_first_and_gone_when_removed() {
        let clients = Clients::default();
        for _ in 0..3 {
            let id = clients.next_id();
            clients.insert(Arc::new(ClientInfo::new(id, "127.0.0.1:1".into(), "127.0.0.1:2".into(), 9, false, 0)));
        }
        assert_eq!(clients.len(), 3);
        assert_eq!(clients.snapshot().iter().map(|client| client.id).collect::<Vec<_>>(), [1, 2, 3]);
        clients.remove(2);
        assert!(clients.get(2).is_none());
        assert!(!clients.get(3).expect("connected").is_killed());
    }
}

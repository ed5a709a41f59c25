//! Client-side caching: who is told of keys that have changed (CLIENT TRACKING).
//!
//! While anybody tracks, each commit records the keys that it has written, and the worker that ran it tells the clients concerned, through their outboxes.
//! Whoever reads an old value has the reply before the message that the value has changed, since a client's messages are sent behind the replies made before.
//!
//! In the *broadcasting* mode a client names prefixes and is told of every key with one of them, whether it has read the key or not; nothing is
//! remembered per key. Otherwise a table remembers who has read a key. A reader enters itself before it reads and looks afterwards whether it still
//! stands there; a writer takes the key's readers out after its commit. So of a read and a commit that comes after it, either the writer finds the reader,
//! or the reader misses itself and is told at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use super::{ClientInfo, Server};
use crate::pubsub::Placed;
use crate::resp::{Protocol, Reply};
use crate::sync::{Arc, AtomicBool, Ordering};

/// Which keys a client is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those with one of these prefixes, of which no one is a prefix of another.
    Broadcast(BTreeSet<Bytes>),
    /// Those that it has read.
    Reads(ReadMode),
}

/// Which of a client's reads are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// All.
    All,
    /// That of the command behind CLIENT CACHING YES.
    OptIn,
    /// All but that of the command behind CLIENT CACHING NO.
    OptOut,
}

impl Mode {
    /// The prefixes, in the broadcasting mode.
    pub fn prefixes(&self) -> impl Iterator<Item = &Bytes> {
        match self {
            Self::Broadcast(prefixes) => Some(prefixes),
            Self::Reads(_) => None,
        }
        .into_iter()
        .flatten()
    }
}

/// What one client has asked for.
#[derive(Debug)]
pub struct Tracking {
    /// The client.
    pub client: u64,
    /// The client that is told instead.
    pub redirect: Option<u64>,
    /// Whether it is not told of what it changes itself.
    pub no_loop: bool,
    /// Which keys it is told of.
    pub mode: Mode,
    /// Whether the client to be told instead was found gone.
    pub redirect_is_broken: AtomicBool,
}

impl Tracking {
    /// Whether the client to be told instead was found gone.
    pub fn is_broken(&self) -> bool {
        // Relaxed: a flag for CLIENT LIST and TRACKINGINFO, which orders nothing.
        self.redirect_is_broken.load(Ordering::Relaxed)
    }
}

/// All clients that track.
#[derive(Default)]
pub struct Trackers {
    by_client: RwLock<BTreeMap<u64, Arc<Tracking>>>,
    /// Who has read a key since it was last written.
    readers: flurry::HashMap<Bytes, Arc<[u64]>>,
}

impl Trackers {
    /// What a client has asked for.
    pub fn of(&self, client: u64) -> Option<Arc<Tracking>> {
        self.by_client.read().unwrap_or_else(PoisonError::into_inner).get(&client).cloned()
    }

    fn all(&self) -> Vec<Arc<Tracking>> {
        self.by_client.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// How many clients track, and how many different prefixes they have named.
    pub fn counts(&self) -> (usize, usize) {
        let all = self.all();
        let prefixes: BTreeSet<&Bytes> = all.iter().flat_map(|tracking| tracking.mode.prefixes()).collect();
        (all.len(), prefixes.len())
    }

    /// How many keys have readers that will be told, and how many readers all of them have. O(n).
    pub fn remembered(&self) -> (usize, usize) {
        let readers = self.readers.pin();
        (readers.len(), readers.values().map(|clients| clients.len()).sum())
    }

    fn is_remembered(&self, key: &[u8], client: u64) -> bool {
        self.readers.pin().get(key).is_some_and(|clients| clients.contains(&client))
    }

    fn remember(&self, key: &[u8], client: u64) {
        let readers = self.readers.pin();
        // Ends because each round means that another client has changed the key's readers.
        while !readers.get(key).is_some_and(|clients| clients.contains(&client)) {
            let with = |clients: &Arc<[u64]>| clients.iter().copied().chain([client]).collect();
            if readers.compute_if_present(key, |_, clients| Some(with(clients))).is_none() {
                let _ = readers.try_insert(Bytes::copy_from_slice(key), Arc::from([client]));
            }
        }
    }
}

impl Server {
    /// Lets a client track, or changes what it has asked for. To be followed by a moment in which no worker is in a section, so that every
    /// commit from then on records what it writes.
    pub fn track(&self, tracking: Tracking) {
        let mut by_client = self.trackers.by_client.write().unwrap_or_else(PoisonError::into_inner);
        by_client.insert(tracking.client, Arc::new(tracking));
        self.store.record_writes(true);
    }

    /// Ends a client's tracking.
    pub fn untrack(&self, client: u64) {
        let mut by_client = self.trackers.by_client.write().unwrap_or_else(PoisonError::into_inner);
        if by_client.remove(&client).is_some() {
            self.store.record_writes(!by_client.is_empty());
        }
    }

    /// Tells the clients that track of keys that were written; `writer` is the client that did it.
    pub fn tell_of_writes<'k>(&self, worker: usize, writer: Option<u64>, keys: impl Iterator<Item = &'k [u8]>) {
        let keys: BTreeSet<&[u8]> = keys.collect();
        if !self.trackers.readers.is_empty() {
            keys.iter().for_each(|key| self.tell_readers(worker, writer, key));
        }
        for tracking in self.trackers.all() {
            if tracking.no_loop && writer == Some(tracking.client) {
                continue;
            }
            for prefix in tracking.mode.prefixes() {
                let fitting: Vec<&[u8]> =
                    keys.range(&prefix[..]..).take_while(|key| key.starts_with(prefix)).copied().collect();
                if !fitting.is_empty() {
                    self.tell(worker, &tracking, |reply| {
                        reply.array(fitting.len());
                        fitting.iter().for_each(|key| reply.bulk(key));
                    });
                }
            }
        }
    }

    /// Before a client's command reads these keys: remembers that it does.
    pub fn remember_reads(&self, worker: usize, client: u64, keys: &[Bytes]) {
        if keys.is_empty() {
            return;
        }
        keys.iter().for_each(|key| self.trackers.remember(key, client));
        let keys_max = self.settings.tracking_table_max_keys.get() as usize;
        while keys_max > 0 && self.trackers.readers.len() > keys_max {
            // Some key's readers are told as if it had been written.
            let Some(key) = self.trackers.readers.pin().keys().next().cloned() else { return };
            self.tell_readers(worker, None, &key);
        }
    }

    /// After it has read them: tells it at once of those that were written meanwhile.
    pub fn confirm_reads(&self, worker: usize, client: u64, keys: &[Bytes]) {
        for key in keys.iter().filter(|key| !self.trackers.is_remembered(key, client)) {
            if let Some(tracking) = self.trackers.of(client) {
                self.tell_of_key(worker, &tracking, key);
            }
        }
    }

    fn tell_readers(&self, worker: usize, writer: Option<u64>, key: &[u8]) {
        let Some(clients) = self.trackers.readers.pin().remove(key).cloned() else { return };
        for client in clients.iter() {
            if let Some(tracking) = self.trackers.of(*client)
                && !(tracking.no_loop && writer == Some(*client))
                && matches!(tracking.mode, Mode::Reads(_))
            {
                self.tell_of_key(worker, &tracking, key);
            }
        }
    }

    fn tell_of_key(&self, worker: usize, tracking: &Tracking, key: &[u8]) {
        self.tell(worker, tracking, |reply| {
            reply.array(1);
            reply.bulk(key);
        });
    }

    /// Tells the clients that track that any key may have gone.
    pub fn tell_of_flush(&self, worker: usize) {
        self.trackers.readers.pin().clear();
        for tracking in self.trackers.all() {
            self.tell(worker, &tracking, |reply| reply.null());
        }
    }

    /// Tells one client, or the client named to be told instead: by a push in RESP3, by a message on a channel of its own to a subscriber of RESP2.
    fn tell(&self, worker: usize, tracking: &Tracking, write_keys: impl Fn(&mut Reply)) {
        let own = || self.clients.get(tracking.client);
        let (target, redirected) = match tracking.redirect {
            None => (own(), false),
            Some(other) => (self.clients.get(other), true),
        };
        let Some(target) = target else {
            // Relaxed: see `is_broken`.
            tracking.redirect_is_broken.store(true, Ordering::Relaxed);
            if let (Some(other), Some(client)) = (tracking.redirect, own())
                && client.speaks_resp3()
            {
                let mut reply = Reply::new(Protocol::Resp3);
                reply.push(2);
                reply.bulk(b"tracking-redir-broken");
                reply.integer(other as i64);
                self.place(worker, &client, reply);
            }
            return;
        };
        let mut reply = Reply::new(Protocol::Resp3);
        if target.speaks_resp3() {
            reply.push(2);
            reply.bulk(b"invalidate");
        } else if redirected && target.is_subscriber() {
            reply.push(3);
            reply.bulk(b"message");
            reply.bulk(b"__redis__:invalidate");
            reply.set_protocol(Protocol::Resp2);
        } else {
            return;
        }
        write_keys(&mut reply);
        self.place(worker, &target, reply);
    }

    fn place(&self, worker: usize, client: &ClientInfo, mut reply: Reply) {
        let limits = self.outbox_limits(client.class());
        if client.outbox.push(reply.take().0.into(), limits) == Placed::Overflow {
            self.count_overflows(worker, 1);
        }
    }
}

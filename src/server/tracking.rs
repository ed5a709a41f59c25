//! Client-side caching: who is told of keys that have changed (CLIENT TRACKING in its broadcasting mode).
//!
//! A client names prefixes and is told of every key with one of them that anybody changes, whether it has read the key or not. So nothing is
//! remembered per key: while anybody tracks, each commit records the keys that it has written, and the worker that ran it tells the clients
//! concerned once per batch of commands, through their outboxes. Whoever reads an old value has the reply before the message that the value has
//! changed, since a client's messages are sent behind the replies made before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use super::{ClientInfo, Server};
use crate::pubsub::Placed;
use crate::resp::{Protocol, Reply};
use crate::sync::{Arc, AtomicBool, Ordering};

/// What one client has asked for.
#[derive(Debug, Default)]
pub struct Tracking {
    /// The client.
    pub client: u64,
    /// The client that is told instead.
    pub redirect: Option<u64>,
    /// Whether it is not told of what it changes itself.
    pub no_loop: bool,
    /// The prefixes; no one is a prefix of another.
    pub prefixes: BTreeSet<Bytes>,
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
        let prefixes: BTreeSet<&Bytes> = all.iter().flat_map(|tracking| &tracking.prefixes).collect();
        (all.len(), prefixes.len())
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
        for tracking in self.trackers.all() {
            if tracking.no_loop && writer == Some(tracking.client) {
                continue;
            }
            for prefix in &tracking.prefixes {
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

    /// Tells the clients that track that any key may have gone.
    pub fn tell_of_flush(&self, worker: usize) {
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

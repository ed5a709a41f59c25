//! Names and the outboxes of those who listen to them, in stripes with a lock each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ahash::RandomState;
use bytes::Bytes;
use crossbeam_utils::CachePadded;

use super::outbox::Outbox;
use crate::limits::PUBSUB_STRIPES;
use crate::sync::Arc;

/// Part of the names, chosen by hash. A name without listeners is not kept.
pub type Stripe = HashMap<Bytes, Vec<Arc<Outbox>>, RandomState>;

/// All names of one kind. A stripe's lock guards the lists of its names and, while messages are placed, their order.
pub struct Topics {
    stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    hasher: RandomState,
}

impl Default for Topics {
    fn default() -> Self {
        let hasher = RandomState::new();
        let stripe = || CachePadded::new(Mutex::new(Stripe::with_hasher(hasher.clone())));
        Self { stripes: (0..PUBSUB_STRIPES).map(|_| stripe()).collect(), hasher }
    }
}

impl Topics {
    /// Locks the stripe of a name.
    pub fn lock(&self, name: &[u8]) -> MutexGuard<'_, Stripe> {
        let stripe = self.hasher.hash_one(name) as usize % self.stripes.len();
        lock(&self.stripes[stripe])
    }

    /// Adds a listener, who must not listen to the name yet.
    pub fn add(&self, name: &Bytes, outbox: &Arc<Outbox>) {
        self.lock(name).entry(name.clone()).or_default().push(outbox.clone());
    }

    /// Takes a listener away. O(listeners of the name).
    pub fn remove(&self, name: &[u8], outbox: &Arc<Outbox>) {
        let mut stripe = self.lock(name);
        if let Some(listeners) = stripe.get_mut(name)
            && forget(listeners, outbox)
        {
            stripe.remove(name);
        }
    }

    /// How many listen to a name.
    pub fn listeners(&self, name: &[u8]) -> usize {
        self.lock(name).get(name).map_or(0, Vec::len)
    }

    /// Names with listeners. One stripe after the other is locked, so names that come or go meanwhile may or may not be among them.
    pub fn names(&self) -> Vec<Bytes> {
        self.stripes.iter().flat_map(|stripe| lock(stripe).keys().cloned().collect::<Vec<_>>()).collect()
    }

    /// How many names have listeners.
    pub fn len(&self) -> usize {
        self.stripes.iter().map(|stripe| lock(stripe).len()).sum()
    }
}

fn lock(stripe: &Mutex<Stripe>) -> MutexGuard<'_, Stripe> {
    // Nothing that holds the lock can panic half way through a change of the map.
    stripe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes an outbox from a list; whether the list is empty then.
pub fn forget(listeners: &mut Vec<Arc<Outbox>>, outbox: &Arc<Outbox>) -> bool {
    if let Some(position) = listeners.iter().position(|one| Arc::ptr_eq(one, outbox)) {
        listeners.swap_remove(position);
    }
    listeners.is_empty()
}

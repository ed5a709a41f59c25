//! Key events: what an attempt's commands did to keys, told to subscribers once after the commit.
//!
//! # Order
//!
//! Two workers that write a key one after the other must not publish the other way round (rule 28). So an attempt that has recorded events takes
//! the locks of its keys' stripes before it commits and gives them back when they are published. No attempt waits for anything else with such a
//! lock in its hands: it takes them in one order, and a commit never waits. Whoever finds a key expired holds the lock of its stripe while it puts
//! the tombstone in place, and leaves the event with the lock, for whoever publishes of this stripe next. None of this happens while nobody
//! wants events.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;

use crate::limits::EVENT_STRIPES;

/// A set of stripes fits the bits of a word.
const _: () = assert!(EVENT_STRIPES <= 64);

/// The locks that keep the events of a key in the order of its commits, and what waits to be published behind each.
#[derive(Debug)]
pub struct EventOrder {
    stripes: Box<[CachePadded<Mutex<Events>>]>,
}

impl Default for EventOrder {
    fn default() -> Self {
        Self { stripes: (0..EVENT_STRIPES).map(|_| CachePadded::default()).collect() }
    }
}

impl EventOrder {
    /// The stripe of a key with this hash, as the one bit of a set.
    #[inline]
    pub fn stripe(hash: u64) -> u64 {
        1 << (hash % EVENT_STRIPES as u64)
    }

    /// Locks a set of stripes, always in the same order; gives what waits to be published behind each.
    pub fn lock(&self, stripes: u64) -> impl Iterator<Item = MutexGuard<'_, Events>> {
        let chosen = move |(index, _): &(usize, _)| stripes & 1 << index != 0;
        // Nothing that holds the lock can panic half way through a change of the list.
        self.stripes
            .iter()
            .enumerate()
            .filter(chosen)
            .map(|(_, stripe)| stripe.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The classes of events, and how they are published, as bits of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClass(pub u32);

impl EventClass {
    /// `K`: events are published under the key.
    pub const BY_KEY: Self = Self(1);
    /// `E`: events are published under their own name.
    pub const BY_EVENT: Self = Self(1 << 1);
    /// `g`: commands on keys of any type.
    pub const GENERIC: Self = Self(1 << 2);
    /// `$`: strings.
    pub const STRING: Self = Self(1 << 3);
    /// `l`: lists.
    pub const LIST: Self = Self(1 << 4);
    /// `x`: keys whose deadline has passed.
    pub const EXPIRED: Self = Self(1 << 8);
    /// `m`: reads of keys that do not exist.
    pub const MISS: Self = Self(1 << 11);
    /// `n`: keys that did not exist before.
    pub const NEW: Self = Self(1 << 14);

    /// The classes that need be recorded under this setting: none unless they are published in one of the two ways.
    pub fn wanted(setting: u32) -> Self {
        let ways = Self::BY_KEY.0 | Self::BY_EVENT.0;
        Self(if setting & ways == 0 { 0 } else { setting & !ways })
    }

    /// Whether the two have a class in common.
    #[inline]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// What happened, as Redis names it.
    pub name: &'static str,
    /// In which database.
    pub database: usize,
    /// To which key.
    pub key: &'a [u8],
}

/// Events in the order in which they happened.
#[derive(Debug, Default)]
pub struct Events {
    items: Vec<Item>,
    /// The keys' bytes, one after the other.
    keys: Vec<u8>,
}

#[derive(Debug)]
struct Item {
    name: &'static str,
    database: usize,
    /// Where the key's bytes end.
    end: usize,
}

impl Events {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Adds one.
    pub fn add(&mut self, name: &'static str, database: usize, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.items.push(Item { name, database, end: self.keys.len() });
    }

    /// Forgets all.
    #[inline]
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.items.clear();
            self.keys.clear();
        }
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = Event<'_>> {
        let mut from = 0;
        self.items.iter().map(move |item| {
            let key = &self.keys[std::mem::replace(&mut from, item.end)..item.end];
            Event { name: item.name, database: item.database, key }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_keep_their_order_and_keys() {
        let mut events = Events::default();
        events.add("set", 0, b"one");
        events.add("del", 3, b"");
        events.add("expire", 1, b"two");
        let all: Vec<_> = events.iter().map(|event| (event.name, event.database, event.key)).collect();
        assert_eq!(all, [("set", 0, &b"one"[..]), ("del", 3, b""), ("expire", 1, b"two")]);
        events.clear();
        assert!(events.is_empty() && events.iter().next().is_none());
    }

    #[test]
    fn nothing_is_wanted_that_is_not_published() {
        assert_eq!(EventClass::wanted(0b100), EventClass::default());
        assert!(EventClass::wanted(0b101).meets(EventClass::GENERIC));
        assert!(!EventClass::wanted(0b111).meets(EventClass::STRING));
    }
}

//! Key events: what an attempt's commands did to keys, told to subscribers once after the commit.

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

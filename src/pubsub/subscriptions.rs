//! What one client has subscribed to.

use std::collections::BTreeSet;

use bytes::Bytes;

/// The kinds of what one may subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// A channel.
    Channel,
    /// A pattern of channels.
    Pattern,
    /// A shard channel.
    ShardChannel,
}

impl Topic {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::ShardChannel];
}

/// The names of each kind that one client has subscribed to.
#[derive(Debug, Default)]
pub struct Subscriptions {
    names: [BTreeSet<Bytes>; 3],
}

impl Subscriptions {
    /// Adds a name; false where it was there. O(log n).
    pub fn add(&mut self, topic: Topic, name: Bytes) -> bool {
        self.names[topic as usize].insert(name)
    }

    /// Takes a name away; false where it was not there. O(log n).
    pub fn remove(&mut self, topic: Topic, name: &[u8]) -> bool {
        self.names[topic as usize].remove(name)
    }

    /// The names of a kind.
    pub fn of(&self, topic: Topic) -> &BTreeSet<Bytes> {
        &self.names[topic as usize]
    }

    /// How many there are of one kind.
    pub fn count(&self, topic: Topic) -> usize {
        self.names[topic as usize].len()
    }

    /// What the client is told: channels and patterns are counted together, shard channels by themselves.
    pub fn told_count(&self, topic: Topic) -> usize {
        match topic {
            Topic::Channel | Topic::Pattern => self.count(Topic::Channel) + self.count(Topic::Pattern),
            Topic::ShardChannel => self.count(Topic::ShardChannel),
        }
    }

    /// How many there are of all kinds.
    pub fn len(&self) -> usize {
        self.names.iter().map(BTreeSet::len).sum()
    }

    /// Whether the client has not subscribed to anything.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.names.iter().all(BTreeSet::is_empty)
    }
}

//! What a command sees of the keyspace.
#![allow(unused_variables, missing_docs, reason = "signatures only until the core branch lands")]

use crate::types::{Attempt, NewRoot, Root};
use std::marker::PhantomData;

/// A key opened by this attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyId(pub(crate) u32);

/// One attempt of a command (or of a whole EXEC or script). Commands read roots and leave new roots; the dispatcher commits, and runs the
/// command again on conflict.
pub struct Transaction<'w> {
    worker: PhantomData<&'w ()>,
}

/// The settings that commands obey, as they stood when the attempt began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeLimits {
    /// `proto-max-bulk-len`: the longest string, in bytes.
    pub proto_max_bulk_len: u64,
    /// `list-max-listpack-size`: elements (positive) or a size class of 4 KiB doubled (negative) up to which a list is called a listpack.
    pub list_max_listpack_size: i32,
    /// Whether `maxmemory-policy` is one of the LFU kind, so that access words hold a counter and not a clock.
    pub lfu: bool,
    /// `lfu-decay-time`: minutes after which an unused key's counter loses one; 0 is never.
    pub lfu_decay_minutes: u32,
    /// Whether small integers count as shared objects (OBJECT REFCOUNT): not under `maxmemory` with an LRU or LFU policy.
    pub shared_integers: bool,
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        Self {
            proto_max_bulk_len: 512 * 1024 * 1024,
            list_max_listpack_size: -2,
            lfu: false,
            lfu_decay_minutes: 1,
            shared_integers: true,
        }
    }
}

impl<'w> Transaction<'w> {
    /// The settings that commands obey.
    pub fn limits(&self) -> RuntimeLimits {
        unimplemented!()
    }

    /// The attempt's one reading of the wall clock, in milliseconds of Unix time.
    pub fn now_ms(&self) -> i64 {
        unimplemented!()
    }

    /// The client's database.
    pub fn database(&self) -> usize {
        unimplemented!()
    }

    /// Number of databases.
    pub fn databases(&self) -> usize {
        unimplemented!()
    }

    /// Opens a key of the client's database. The same key always gives the same id. An expired value is deleted first.
    pub fn open(&mut self, key: &[u8]) -> KeyId {
        self.open_in(self.database(), key)
    }

    /// Opens a key of another database, `database < self.databases()`.
    pub fn open_in(&mut self, database: usize, key: &[u8]) -> KeyId {
        unimplemented!()
    }

    /// Brings the memory of many keys nearer before they are opened one by one (MGET, MSET, DEL of many).
    pub fn prefetch<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]> + Clone) {
        unimplemented!()
    }

    /// The key's value as this attempt sees it (its own writes included); `None` where there is none.
    pub fn root(&self, key: KeyId) -> Option<&Root> {
        unimplemented!()
    }

    /// The key's value together with the attempt, for a new tree made from what is read (COPY, a string that becomes a rope).
    pub fn root_and_attempt(&mut self, key: KeyId) -> (Option<&Root>, &mut Attempt) {
        unimplemented!()
    }

    /// Replaces the key's value, whatever it was.
    pub fn set(&mut self, key: KeyId, value: NewRoot) {
        unimplemented!()
    }

    /// Deletes the key; whether there was a value.
    pub fn delete(&mut self, key: KeyId) -> bool {
        unimplemented!()
    }

    /// The key's value to be changed in place: a pending root that shares all nodes with the present one, made at the first call of this
    /// attempt (for `List` and `Rope`; short strings are replaced with `set`). `None` where there is no value.
    pub fn edit(&mut self, key: KeyId) -> Option<(&mut NewRoot, &mut Attempt)> {
        unimplemented!()
    }

    /// Gives the key's value another deadline. The key must have a value.
    pub fn set_expiry(&mut self, key: KeyId, expiry_ms: Option<i64>) {
        unimplemented!()
    }

    /// Moves the value out: the key is deleted and the value, with its nodes and its deadline, can be `set` to another key (RENAME, MOVE).
    pub fn take(&mut self, key: KeyId) -> Option<NewRoot> {
        unimplemented!()
    }

    /// Where nodes of new trees are listed (COPY, first push to a list).
    pub fn attempt(&mut self) -> &mut Attempt {
        unimplemented!()
    }

    /// Counts one look-up for INFO's keyspace_hits and keyspace_misses (once, after commit).
    pub fn count_lookup(&mut self, hit: bool) {
        unimplemented!()
    }

    /// Marks the key's value as used now, for OBJECT IDLETIME and eviction.
    pub fn touch(&self, key: KeyId) {
        unimplemented!()
    }

    /// Visits the live keys of the client's database that lie in the next `buckets` buckets from `cursor` on, and gives the next
    /// cursor (0 at the end). Redis' guarantees: a key present throughout is visited at least once.
    pub fn scan(&mut self, cursor: u64, buckets: usize, visit: &mut dyn FnMut(&[u8], &Root)) -> u64 {
        unimplemented!()
    }

    /// A live key chosen uniformly from the client's database.
    pub fn random_key(&mut self) -> Option<Vec<u8>> {
        unimplemented!()
    }

    /// Number of keys in the client's database (expired ones not yet deleted included, as in Redis).
    pub fn key_count(&mut self) -> u64 {
        unimplemented!()
    }
}

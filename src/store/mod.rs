//! The keyspace: databases, tables, entries, and the threads that work on them.
#![allow(unused_variables, missing_docs, reason = "signatures only until the core branch lands")]

use crate::sync::Arc;

/// What a store is made with.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub databases: usize,
}

/// All databases of one server.
pub struct Store {}

impl Store {
    pub fn new(options: StoreOptions) -> Arc<Self> {
        unimplemented!()
    }
}

/// One thread's access to a store: its pin, its gate slot, its stamps, its garbage, its statistics. Stays on its thread (not `Send`).
pub struct Worker {
    _stays: std::marker::PhantomData<*const ()>,
}

impl Worker {
    /// Registers the calling thread; `None` when all slots are taken.
    pub fn register(store: &Arc<Store>) -> Option<Self> {
        unimplemented!()
    }

    /// Housekeeping for some microseconds: frees garbage, unlinks dead entries, expires keys. Called every 100 ms or more often, and until
    /// it answers `false` (nothing left to do now) with other work in between.
    pub fn tick(&self, now_ms: i64) -> bool {
        unimplemented!()
    }

    /// Deletes all keys of one database, or of all.
    pub fn flush(&self, database: Option<usize>) {
        unimplemented!()
    }

    /// Swaps two databases for all clients at once.
    pub fn swap_databases(&self, first: usize, second: usize) {
        unimplemented!()
    }
}

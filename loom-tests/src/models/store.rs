//! What the models of the store share: a small store with a clock that stands, and one-line transactions on it.

use caswell::clock::Clock;
use caswell::store::{Store, StoreOptions, Worker};
use caswell::sync::Arc;
use caswell::txn::{RuntimeLimits, Scratch, Transaction};
use caswell::types::{NewRoot, View};

/// When the models take place, in milliseconds of Unix time.
pub const NOW_MS: i64 = 1_000_000;

/// A store of two databases.
pub fn store() -> Arc<Store> {
    store_with(Clock::manual(NOW_MS))
}

/// A store of two databases that takes its time from this clock.
pub fn store_with(clock: Clock) -> Arc<Store> {
    Store::new(StoreOptions {
        databases: 2,
        workers_max: 4,
        clock,
        // Fixed, so that every execution puts the same keys into the same buckets.
        hash_seeds: Some([1, 2, 3, 4]),
    })
}

/// Registers the calling thread.
pub fn worker(store: &Arc<Store>) -> Worker {
    Worker::register(store).expect("a model has fewer threads than slots")
}

/// Runs one transaction.
pub fn run<T>(worker: &Worker, step: impl FnMut(&mut Transaction<'_>) -> T) -> T {
    let mut scratch = Scratch::default();
    Transaction::new(worker, &mut scratch, 0, RuntimeLimits::default()).run(step)
}

/// Reads a key as a number inside a transaction.
pub fn number(tx: &mut Transaction<'_>, key: &[u8]) -> Option<i64> {
    let key = tx.open(key);
    match tx.root(key)?.view()? {
        View::Integer(number) => Some(number),
        _ => None,
    }
}

/// Writes a number inside a transaction.
pub fn put(tx: &mut Transaction<'_>, key: &[u8], number: i64) {
    let key = tx.open(key);
    tx.set(key, NewRoot::integer(number, None));
}

/// SET, as one transaction.
pub fn set(worker: &Worker, key: &[u8], number: i64) {
    run(worker, |tx| put(tx, key, number));
}

/// GET, as one transaction.
pub fn get(worker: &Worker, key: &[u8]) -> Option<i64> {
    run(worker, |tx| number(tx, key))
}

/// INCR, as one transaction: the loop that the shipped command runs.
pub fn increment(worker: &Worker, key: &[u8]) {
    run(worker, |tx| {
        let next = number(tx, key).unwrap_or(0) + 1;
        put(tx, key, next);
    });
}

/// DEL, as one transaction.
pub fn delete(worker: &Worker, key: &[u8]) -> bool {
    run(worker, |tx| {
        let key = tx.open(key);
        tx.delete(key)
    })
}

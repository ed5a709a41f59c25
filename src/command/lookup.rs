//! Opening keys as Redis looks them up: what counts for INFO's hits and misses, and what counts as use.

use super::args::Args;
use crate::txn::{EventClass, KeyId, Transaction};

/// Opens a key to read and use its value: counts a hit or a miss, and marks the value as used.
#[inline]
pub fn read(tx: &mut Transaction<'_>, key: &[u8]) -> KeyId {
    let id = tx.open(key);
    let hit = tx.root(id).is_some();
    tx.count_lookup(hit);
    if hit {
        tx.touch(id);
    } else {
        tx.notify(EventClass::MISS, "keymiss", id);
    }
    id
}

/// Opens a key to change its value, and marks the value as used, for the command may find nothing to change. Commands that always put a new
/// value in place (SET), and those that are to write no more than once (INCR, LPUSH, LPOP), open the key as it is.
pub fn write(tx: &mut Transaction<'_>, key: &[u8]) -> KeyId {
    write_in(tx, tx.database(), key)
}

/// As [`write()`], in another database.
pub fn write_in(tx: &mut Transaction<'_>, database: usize, key: &[u8]) -> KeyId {
    let id = tx.open_in(database, key);
    tx.touch(id);
    id
}

/// Opens a key to look at it: counts a hit or a miss.
pub fn peek(tx: &mut Transaction<'_>, key: &[u8]) -> KeyId {
    let id = inspect(tx, key);
    if tx.root(id).is_none() {
        tx.notify(EventClass::MISS, "keymiss", id);
    }
    id
}

/// As [`peek`], and a miss is no event.
pub fn inspect(tx: &mut Transaction<'_>, key: &[u8]) -> KeyId {
    let id = tx.open(key);
    let hit = tx.root(id).is_some();
    tx.count_lookup(hit);
    id
}

/// Brings keys nearer, every `step`-th argument from `first` on, where there are several.
pub fn prefetch(tx: &mut Transaction<'_>, args: &Args<'_>, first: usize, step: usize) {
    if args.len() > first + step {
        tx.prefetch(args.from(first).iter().copied().step_by(step));
    }
}

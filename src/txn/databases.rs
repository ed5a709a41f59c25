//! What concerns whole databases: emptying and swapping them, under the gate, with everybody's interest in their keys carried over.

use super::interest::parse_list_name;
use crate::store::Worker;
use crate::store::entry::Entry;
use crate::store::table::Inserted;
use crate::store::word::{State, Word};
use crate::types::NewRoot;

/// A key that somebody wants to hear of.
struct Hooked {
    database: usize,
    key: Vec<u8>,
    /// What a tombstone in its place has to say: its stamp, where it has had a value at all.
    stamp: Option<u64>,
}

/// Deletes all keys of one database, or of all. Takes the gate. O(m) with m the keys that somebody waits for or watches; the keys are freed
/// in the background.
pub fn flush(worker: &Worker, database: Option<usize>) {
    let _gate = worker.hold_gate();
    let hooked = hooked_keys(worker, |one| database.is_none_or(|only| only == one));
    worker.flush(database);
    for key in hooked {
        hook(worker, key.database, &key.key, key.stamp);
    }
}

/// Swaps two databases for all clients at once. Takes the gate. O(m) with m the keys of both that somebody waits for or watches.
pub fn swap(worker: &Worker, first: usize, second: usize) {
    let _gate = worker.hold_gate();
    let hooked = hooked_keys(worker, |one| one == first || one == second);
    for key in &hooked {
        unhook(worker, key.database, &key.key);
    }
    worker.swap_databases(first, second);
    for key in hooked {
        hook(worker, key.database, &key.key, None);
    }
}

/// The keys that somebody wants to hear of, each as `(database, key)`; under the gate.
pub fn keys_of_interest(worker: &Worker) -> Vec<(usize, Vec<u8>)> {
    hooked_keys(worker, |_| true).into_iter().map(|key| (key.database, key.key)).collect()
}

fn hooked_keys(worker: &Worker, choose: impl Fn(usize) -> bool) -> Vec<Hooked> {
    let section = worker.enter();
    let pin = section.pin();
    let store = worker.store();
    let internal = store.table(store.internal_database(), pin);
    let mut hooked = Vec::new();
    internal.walk(0, internal.bits(), u64::MAX, pin, &mut |entry| {
        if !matches!(entry.load().resolve().state(), State::Live(_)) {
            return;
        }
        if let Some((database, key)) = parse_list_name(entry.key())
            && choose(database)
        {
            let stamp =
                store.table(database, pin).find(store.hash(key), key, pin).and_then(|entry| stamp_left(worker, entry));
            hooked.push(Hooked { database, key: key.to_vec(), stamp });
        }
    });
    hooked
}

/// The stamp of the tombstone that the key's entry leaves when its table goes.
fn stamp_left(worker: &Worker, entry: &Entry) -> Option<u64> {
    let word = entry.load().resolve();
    // SAFETY: read from the entry's word under the caller's pin.
    let stamp = word.root_pointer().map(|root| unsafe { root.as_ref() }.stamp())?;
    Some(match word.state() {
        // It is deleted now, and so changes.
        State::Live(_) => worker.draw_stamp(stamp),
        _ => stamp,
    })
}

/// Sets the hook of a key, in an entry made for it where there is none. The caller has the gate, and so nobody else changes words.
fn hook(worker: &Worker, database: usize, key: &[u8], stamp: Option<u64>) {
    let section = worker.enter();
    let pin = section.pin();
    let table = worker.store().table(database, pin);
    let word = match stamp {
        None => Word::VACANT,
        Some(stamp) => {
            let mut tombstone = NewRoot::tombstone();
            tombstone.stamp(stamp);
            Word::root(tombstone.publish(), true)
        }
    };
    match table.insert(worker.store().hash(key), key, word.with_hook(true), pin) {
        Inserted::New(_) => {}
        Inserted::Exists(entry) => {
            while {
                let word = entry.load();
                entry.compare_exchange(word, word.with_hook(true)).is_err()
            } {}
            if let Some(tombstone) = word.root_pointer() {
                // SAFETY: published to nobody: the table has another entry for the key.
                drop(unsafe { NewRoot::take_back(tombstone) });
            }
        }
    }
}

fn unhook(worker: &Worker, database: usize, key: &[u8]) {
    let section = worker.enter();
    let pin = section.pin();
    let table = worker.store().table(database, pin);
    let Some(entry) = table.find(worker.store().hash(key), key, pin) else { return };
    loop {
        let word = entry.load();
        let free = word.with_hook(false);
        let is_kept = matches!(word.resolve().state(), State::Live(_));
        if entry.compare_exchange(word, if is_kept { free } else { free.queued() }).is_ok() {
            if !is_kept {
                // SAFETY: read from the entry's word under the pin.
                let stamp = word.root_pointer().map_or(0, |root| unsafe { root.as_ref() }.stamp());
                worker.after_delete(table, entry, word, stamp, pin);
            }
            return;
        }
    }
}

//! Commits: one CAS, several words at one moment, readers, the elder, expiry, the gate.

use super::store::{NOW_MS, delete, get, increment, number, put, run, set, store, store_with, worker};
use crate::Model;
use caswell::clock::Clock;
use caswell::store::entry::Entry;
use caswell::store::word::Word;
use caswell::store::{Store, Worker};
use caswell::sync::{Arc, planted, thread};
use caswell::txn::{Interest, RuntimeLimits, Scratch, Transaction};
use caswell::types::{NewRoot, Root, View};
use std::ptr::NonNull;

/// The models of this file.
pub const MODELS: &[Model] = &[
    Model {
        name: "incr_two_threads",
        promise: "two threads' INCRs of one key both count",
        preemption_bound: 3,
        faults: &["commit_blind_cas"],
        run: incr_two_threads,
    },
    Model {
        name: "incr_three_threads",
        promise: "three threads' INCRs of one key all count",
        preemption_bound: 3,
        faults: &["entry_blind_cas"],
        run: incr_three_threads,
    },
    Model {
        name: "commit_readers_see_all_or_nothing",
        promise: "rule 6: a read of two keys sees both or neither of what one commit wrote",
        preemption_bound: 2,
        faults: &["commit_no_second_collect", "commit_early_release"],
        run: readers_see_all_or_nothing,
    },
    Model {
        name: "commit_overlapping_sets",
        promise: "two commits over the same two keys, aborting each other, take effect one after the other",
        preemption_bound: 2,
        faults: &["commit_claims_unchecked"],
        run: overlapping_sets,
    },
    Model {
        name: "commit_read_only_member",
        promise: "rule 5: a write prepared before another commit read its key does not carry an older stamp than that commit",
        preemption_bound: 2,
        faults: &["commit_no_tag", "commit_stale_clock"],
        run: read_only_member,
    },
    Model {
        name: "commit_elder",
        promise: "what the elder read stays true until it has committed, whatever single-key writers do",
        preemption_bound: 2,
        faults: &["commit_elder_overrun"],
        run: elder,
    },
    Model {
        name: "commit_absent_keys",
        promise: "a commit over keys that are not there yet excludes another that needs them absent (MSETNX)",
        preemption_bound: 2,
        faults: &["commit_claims_unchecked"],
        run: absent_keys,
    },
    Model {
        name: "commit_interest_against_write",
        promise: "rule 22: whoever found a key without a value and wants to hear of it is found by the write that gives it one",
        preemption_bound: 2,
        faults: &["commit_ignores_hook"],
        run: interest_against_write,
    },
    Model {
        name: "commit_breath_against_write",
        promise: "rule 10: an attempt that outlives its section still commits only what is true at that moment",
        preemption_bound: 2,
        faults: &["commit_breath_unchecked"],
        run: breath_against_write,
    },
    Model {
        name: "expiry_against_persist",
        promise: "rule 9: a key that one client was told is gone is not revived by another client's earlier clock",
        preemption_bound: 2,
        faults: &["expiry_no_tombstone"],
        run: expiry_against_persist,
    },
    Model {
        name: "expiry_against_set",
        promise: "expiring a key does not delete the value that another thread has just set",
        preemption_bound: 2,
        faults: &["expiry_blind_cas"],
        run: expiry_against_set,
    },
    Model {
        name: "gate_against_commits",
        promise: "invariant 1 of the gate: no transaction sees some databases before and others after SWAPDB",
        preemption_bound: 2,
        faults: &["gate_no_fence"],
        run: gate_against_commits,
    },
];

/// Runs `body` on another thread of the model.
fn spawn<T: 'static>(store: &Arc<Store>, body: impl FnOnce(&Arc<Store>) -> T + 'static) -> thread::JoinHandle<T> {
    let store = Arc::clone(store);
    thread::spawn(move || body(&store))
}

fn incr_two_threads() {
    let store = store();
    let main = worker(&store);
    set(&main, b"k", 0);
    let other = spawn(&store, |store| increment(&worker(store), b"k"));
    increment(&main, b"k");
    other.join().expect("the other thread ends");
    assert_eq!(get(&main, b"k"), Some(2));
}

/// INCR's loop on the shipped entry, word and root alone: with the epoch and the gate around it, three threads are more than loom
/// can search. Gives the root that it replaced, which others may still be reading.
fn increment_entry(entry: NonNull<Entry>) -> NonNull<Root> {
    // SAFETY: the model frees the entry after joining its threads.
    let entry = unsafe { entry.as_ref() };
    loop {
        let word = entry.load();
        let old = word.root_pointer().expect("the entry has a value");
        // SAFETY: roots are freed after the join.
        let Some(View::Integer(number)) = unsafe { old.as_ref() }.view() else {
            unreachable!("only integers are written")
        };
        let new = NewRoot::integer(number + 1, None).publish();
        let expected = if planted("entry_blind_cas") { entry.load() } else { word };
        if entry.compare_exchange(expected, Word::root(new, false).keeping(word)).is_ok() {
            return old;
        }
        // SAFETY: published to nobody: the CAS failed.
        drop(unsafe { NewRoot::take_back(new) });
    }
}

fn incr_three_threads() {
    struct Shared(NonNull<Entry>);
    // SAFETY: an entry is made to be shared; this is how the model hands out its address.
    unsafe impl Send for Shared {}
    struct Replaced(NonNull<Root>);
    // SAFETY: a root that nobody can reach any more but through this.
    unsafe impl Send for Replaced {}
    let first = NewRoot::integer(0, None).publish();
    let entry = Entry::allocate(0, b"k", Word::root(first, false));
    let others = [(); 2].map(|()| {
        let shared = Shared(entry);
        thread::spawn(move || {
            let shared = shared;
            Replaced(increment_entry(shared.0))
        })
    });
    let mut replaced = vec![increment_entry(entry)];
    for other in others {
        replaced.push(other.join().expect("the other thread ends").0);
    }
    // SAFETY: all threads are joined.
    let last = unsafe { entry.as_ref() }.load().root_pointer().expect("the entry has a value");
    // SAFETY: as above.
    assert!(matches!(unsafe { last.as_ref() }.view(), Some(View::Integer(3))));
    for root in replaced.into_iter().chain([last]) {
        // SAFETY: each root was replaced once, and nobody reads any more.
        unsafe { Root::free(root) };
    }
    // SAFETY: as above.
    unsafe { Entry::free(entry) };
}

fn readers_see_all_or_nothing() {
    let store = store();
    let main = worker(&store);
    set(&main, b"a", 0);
    set(&main, b"b", 0);
    let other = spawn(&store, |store| {
        run(&worker(store), |tx| {
            put(tx, b"a", 1);
            put(tx, b"b", 1);
        });
    });
    let (a, b) = run(&main, |tx| (number(tx, b"a"), number(tx, b"b")));
    assert_eq!(a, b);
    other.join().expect("the other thread ends");
    assert_eq!((get(&main, b"a"), get(&main, b"b")), (Some(1), Some(1)));
}

/// Moves one from `from` to `to`.
fn transfer(tx: &mut Transaction<'_>, from: &[u8], to: &[u8]) {
    let (less, more) = (number(tx, from).unwrap_or(0) - 1, number(tx, to).unwrap_or(0) + 1);
    put(tx, from, less);
    put(tx, to, more);
}

fn overlapping_sets() {
    let store = store();
    let main = worker(&store);
    for key in [b"a", b"b", b"c"] {
        set(&main, key, 5);
    }
    let mut scratch = Scratch::default();
    // The section begins before the other thread does: what entering it costs in schedules is other models' business.
    let mut tx = Transaction::new(&main, &mut scratch, 0, RuntimeLimits::default());
    let other = spawn(&store, |store| run(&worker(store), |tx| transfer(tx, b"b", b"c")));
    tx.run(|tx| transfer(tx, b"a", b"b"));
    drop(tx);
    other.join().expect("the other thread ends");
    assert_eq!([get(&main, b"a"), get(&main, b"b"), get(&main, b"c")], [Some(4), Some(5), Some(6)]);
}

fn stamp(worker: &Worker, key: &[u8]) -> u64 {
    run(worker, |tx| {
        let key = tx.open(key);
        tx.root(key).map_or(0, |root| root.stamp())
    })
}

fn read_only_member() {
    let store = store_with(Clock::counting(NOW_MS));
    let main = worker(&store);
    set(&main, b"x", 0);
    set(&main, b"y", 0);
    // Reads X, writes Y: must come before the write of X if it did not see it, and then has the smaller stamp.
    let other = spawn(&store, |store| {
        run(&worker(store), |tx| {
            let seen = number(tx, b"x").unwrap_or(0);
            put(tx, b"y", seen + 10);
        });
    });
    set(&main, b"x", 1);
    other.join().expect("the other thread ends");
    let saw_the_write = get(&main, b"y") == Some(11);
    let (x, y) = (stamp(&main, b"x"), stamp(&main, b"y"));
    assert!(if saw_the_write { x < y } else { y < x }, "x {x} y {y} saw {saw_the_write}");
}

fn elder() {
    let store = store();
    let main = worker(&store);
    set(&main, b"a", 0);
    set(&main, b"b", 0);
    let other = spawn(&store, |store| {
        let worker = worker(store);
        run_as_elder(&worker, |tx| {
            let seen = number(tx, b"b").unwrap_or(0);
            put(tx, b"a", seen);
            put(tx, b"b", seen + 10);
        });
    });
    increment(&main, b"b");
    other.join().expect("the other thread ends");
    assert_eq!(get(&main, b"b"), Some(11));
    assert!(matches!(get(&main, b"a"), Some(0 | 1)));
}

/// Runs a transaction that is the elder from its first attempt on.
fn run_as_elder(worker: &Worker, step: impl FnMut(&mut Transaction<'_>)) {
    let mut scratch = Scratch::default();
    let mut tx = Transaction::new(worker, &mut scratch, 0, RuntimeLimits::default());
    assert!(tx.become_elder());
    tx.run(step);
}

fn absent_keys() {
    let store = store();
    let main = worker(&store);
    let set_both = |tx: &mut Transaction<'_>, value: i64| {
        let absent = number(tx, b"a").is_none() && number(tx, b"b").is_none();
        if absent {
            put(tx, b"a", value);
            put(tx, b"b", value);
        }
        absent
    };
    let mut scratch = Scratch::default();
    let mut tx = Transaction::new(&main, &mut scratch, 0, RuntimeLimits::default());
    let other = spawn(&store, move |store| run(&worker(store), |tx| set_both(tx, 1)));
    let here = tx.run(|tx| set_both(tx, 2));
    drop(tx);
    let there = other.join().expect("the other thread ends");
    assert_ne!(here, there, "exactly one of them found the keys absent");
    let (a, b) = (get(&main, b"a"), get(&main, b"b"));
    assert!(a.is_some() && a == b, "{a:?} {b:?}");
}

fn interest_against_write() {
    let store = store();
    let main = worker(&store);
    // So that the key has an entry, with a tombstone.
    set(&main, b"k", 0);
    delete(&main, b"k");
    let other = spawn(&store, |store| {
        run(&worker(store), |tx| {
            let key = tx.open(b"k");
            let is_absent = tx.root(key).is_none();
            if is_absent {
                tx.add_interest(key, Interest::Watching(1));
            }
            is_absent
        })
    });
    let was_found = run(&main, |tx| {
        let key = tx.open(b"k");
        tx.set(key, NewRoot::integer(1, None));
        let interests = tx.interests(key);
        interests.iter().for_each(|interest| tx.remove_interest(key, *interest));
        !interests.is_empty()
    });
    let wanted_to_hear = other.join().expect("the other thread ends");
    assert_eq!(wanted_to_hear, was_found);
}

fn breath_against_write() {
    let store = store();
    let main = worker(&store);
    set(&main, b"a", 1);
    let mut scratch = Scratch::default();
    let mut tx = Transaction::new(&main, &mut scratch, 0, RuntimeLimits::default());
    let other = spawn(&store, |store| increment(&worker(store), b"a"));
    tx.run(|tx| {
        let seen = number(tx, b"a").unwrap_or(0);
        if tx.breathe().is_ok() {
            put(tx, b"a", seen + 10);
        }
    });
    drop(tx);
    other.join().expect("the other thread ends");
    assert_eq!(get(&main, b"a"), Some(12));
}

fn expiry_against_persist() {
    let store = store();
    let main = worker(&store);
    run(&main, |tx| {
        let key = tx.open(b"k");
        tx.set(key, NewRoot::integer(1, Some(NOW_MS)));
    });
    // PERSIST by a thread whose section began before the deadline.
    let other = spawn(&store, |store| {
        let worker = worker(store);
        run(&worker, |tx| {
            let key = tx.open(b"k");
            if tx.root(key).is_some() {
                tx.set_expiry(key, None);
            }
        });
    });
    store.clock().set(NOW_MS + 1);
    let first = get(&main, b"k");
    other.join().expect("the other thread ends");
    if first.is_none() {
        assert_eq!(get(&main, b"k"), None, "revived");
    }
}

fn expiry_against_set() {
    let store = store();
    let main = worker(&store);
    run(&main, |tx| {
        let key = tx.open(b"k");
        tx.set(key, NewRoot::integer(1, Some(NOW_MS)));
    });
    store.clock().set(NOW_MS + 1);
    let other = spawn(&store, |store| set(&worker(store), b"k", 2));
    assert!(matches!(get(&main, b"k"), None | Some(2)));
    other.join().expect("the other thread ends");
    assert_eq!(get(&main, b"k"), Some(2));
}

fn gate_against_commits() {
    let store = store();
    let main = worker(&store);
    set(&main, b"k", 1);
    run(&main, |tx| {
        let key = tx.open_in(1, b"k");
        tx.set(key, NewRoot::integer(2, None));
    });
    let other = spawn(&store, |store| worker(store).swap_databases(0, 1));
    let mut both = [0; 2];
    run(&main, |tx| {
        for (database, place) in both.iter_mut().enumerate() {
            let key = tx.open_in(database, b"k");
            *place = tx.root(key).map_or(0, |root| root.stamp());
        }
    });
    assert_ne!(both[0], both[1], "one value was seen in both databases");
    other.join().expect("the other thread ends");
}

//! The table: insertion, removal, look-up, bucket initialisation and growth, against each other.

use super::store::{delete, get, run, set, store, worker};
use crate::Model;
use caswell::store::{Store, Worker};
use caswell::sync::{Arc, thread};

/// The models of this file.
pub const MODELS: &[Model] = &[
    Model {
        name: "table_insert_insert",
        promise: "two threads that insert one key leave one entry; two keys leave two",
        preemption_bound: 2,
        faults: &["table_blind_link"],
        run: insert_insert,
    },
    Model {
        name: "table_insert_remove_lookup",
        promise: "rule 19: a key set after its entry died is found, and its dead entry is not",
        preemption_bound: 2,
        faults: &["table_keeps_dead"],
        run: insert_remove_lookup,
    },
    Model {
        name: "table_bucket_initialisation",
        promise: "rule 18: two threads that first touch a bucket splice its head in once, and no entry behind it is lost",
        preemption_bound: 2,
        faults: &["table_two_linkers", "table_start_unlinked"],
        run: bucket_initialisation,
    },
    Model {
        name: "table_growth",
        promise: "keys stay found while the table doubles and its new buckets are first touched",
        preemption_bound: 2,
        faults: &["table_grow_early"],
        run: growth,
    },
];

fn spawn(store: &Arc<Store>, body: impl FnOnce(&Worker) + 'static) -> thread::JoinHandle<()> {
    let store = Arc::clone(store);
    thread::spawn(move || body(&worker(&store)))
}

/// The keys that a scan finds.
fn scan(worker: &Worker) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    run(worker, |tx| {
        keys.clear();
        tx.scan(0, usize::MAX, &mut |key, _| keys.push(key.to_vec()))
    });
    keys.sort();
    keys
}

fn insert_insert() {
    let store = store();
    let main = worker(&store);
    let other = spawn(&store, |worker| {
        for key in [b"a", b"b", b"c"] {
            set(worker, key, 1);
        }
    });
    for key in [b"d", b"a"] {
        set(&main, key, 2);
    }
    other.join().expect("the other thread ends");
    assert_eq!(scan(&main), [b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"d".to_vec()]);
}

fn insert_remove_lookup() {
    let store = store();
    let main = worker(&store);
    set(&main, b"a", 1);
    delete(&main, b"a");
    // The grace period: nobody else is pinned.
    for _ in 0..4 {
        main.tick();
    }
    set(&main, b"a", 2);
    delete(&main, b"a");
    let other = spawn(&store, |worker| {
        set(worker, b"a", 3);
        assert_eq!(get(worker, b"a"), Some(3));
    });
    for _ in 0..3 {
        main.tick();
    }
    assert!(matches!(get(&main, b"a"), None | Some(3)));
    other.join().expect("the other thread ends");
    assert_eq!(get(&main, b"a"), Some(3));
    assert_eq!(scan(&main), [b"a".to_vec()]);
}

fn bucket_initialisation() {
    let store = store();
    let main = worker(&store);
    // In model builds a table starts with two buckets and doubles when it holds as many entries: one more key makes new buckets.
    for key in [b"a", b"b", b"c"] {
        set(&main, key, 1);
    }
    let other = spawn(&store, |worker| {
        for key in [b"a", b"b", b"c"] {
            assert_eq!(get(worker, key), Some(1));
        }
        set(worker, b"e", 1);
    });
    for key in [b"c", b"b", b"a"] {
        assert_eq!(get(&main, key), Some(1));
    }
    other.join().expect("the other thread ends");
    assert_eq!(scan(&main), [b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"e".to_vec()]);
}

fn growth() {
    let store = store();
    let main = worker(&store);
    set(&main, b"a", 1);
    set(&main, b"b", 1);
    let other = spawn(&store, |worker| {
        set(worker, b"c", 1);
        assert_eq!(get(worker, b"a"), Some(1));
    });
    set(&main, b"d", 1);
    assert_eq!(get(&main, b"b"), Some(1));
    other.join().expect("the other thread ends");
    assert_eq!(scan(&main), [b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"d".to_vec()]);
}

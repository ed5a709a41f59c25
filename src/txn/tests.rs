//! Transactions on a real store: single threads for what each operation leaves, several threads for what no race may break.

use super::{KeyId, RuntimeLimits, Scratch, Transaction};
use crate::clock::Clock;
use crate::store::{Store, StoreOptions, Worker};
use crate::sync::Arc;
use crate::types::{NewRoot, StringEncoding, View};

fn store() -> Arc<Store> {
    Store::new(StoreOptions { clock: Clock::manual(1_000_000), ..StoreOptions::default() })
}

fn with<T>(worker: &Worker, step: impl FnMut(&mut Transaction<'_>) -> T) -> T {
    let mut scratch = Scratch::default();
    Transaction::new(worker, &mut scratch, 0, RuntimeLimits::default()).run(step)
}

fn number(tx: &Transaction<'_>, key: KeyId) -> Option<i64> {
    match tx.root(key)?.view()? {
        View::Integer(number) => Some(number),
        _ => None,
    }
}

fn get(worker: &Worker, key: &[u8]) -> Option<i64> {
    with(worker, |tx| {
        let key = tx.open(key);
        number(tx, key)
    })
}

fn set(worker: &Worker, key: &[u8], value: i64, expiry_ms: Option<i64>) {
    with(worker, |tx| {
        let key = tx.open(key);
        tx.set(key, NewRoot::integer(value, expiry_ms));
    });
}

fn increment(worker: &Worker, key: &[u8]) {
    with(worker, |tx| {
        let key = tx.open(key);
        let next = number(tx, key).unwrap_or(0) + 1;
        tx.set(key, NewRoot::integer(next, None));
    });
}

fn keys(worker: &Worker) -> u64 {
    worker.database_sizes()[0].keys
}

/// Ticks until nothing is left to do and all deleted entries are unlinked.
fn settle(worker: &Worker) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while worker.tick() || worker.entries_waiting() > 0 {
        assert!(std::time::Instant::now() < deadline, "{} entries wait for ever", worker.entries_waiting());
        // Another thread may stand still inside a section, and only its going on ends the grace period.
        std::thread::yield_now();
    }
}

#[test]
fn a_key_comes_changes_and_goes() {
    let store = store();
    let worker = Worker::register(&store).expect("a free slot");
    assert_eq!(get(&worker, b"k"), None);
    set(&worker, b"k", 5, None);
    increment(&worker, b"k");
    assert_eq!(get(&worker, b"k"), Some(6));
    assert_eq!(keys(&worker), 1);
    assert!(with(&worker, |tx| {
        let key = tx.open(b"k");
        tx.delete(key)
    }));
    assert_eq!(get(&worker, b"k"), None);
    assert_eq!(keys(&worker), 0);
    set(&worker, b"k", 7, None);
    settle(&worker);
    assert_eq!(get(&worker, b"k"), Some(7));
}

#[test]
fn many_keys_are_found_scanned_and_unlinked() {
    const KEYS: i64 = if cfg!(caswell_checking) { 300 } else { 20_000 };
    let store = store();
    let worker = Worker::register(&store).expect("a free slot");
    for number in 0..KEYS {
        set(&worker, format!("key:{number}").as_bytes(), number, None);
    }
    for number in 0..KEYS {
        assert_eq!(get(&worker, format!("key:{number}").as_bytes()), Some(number));
    }
    assert_eq!(keys(&worker), KEYS as u64);
    assert!(store.statistics().growths > 5);
    let mut found = std::collections::HashSet::new();
    let mut cursor = 0;
    loop {
        cursor = with(&worker, |tx| {
            tx.scan(cursor, 10, &mut |key, _| {
                found.insert(key.to_vec());
            })
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(found.len(), KEYS as usize);
    assert!(with(&worker, |tx| tx.random_key()).is_some());
    for number in 0..KEYS {
        with(&worker, |tx| {
            let key = tx.open(format!("key:{number}").as_bytes());
            tx.delete(key)
        });
    }
    assert_eq!(keys(&worker), 0);
    settle(&worker);
    settle(&worker);
    assert!(worker.database_sizes()[0].buckets < 64, "an empty table is replaced by a small one");
    assert_eq!(with(&worker, |tx| tx.random_key()), None);
}

#[test]
fn deadlines_pass_with_and_without_a_read() {
    let store = store();
    let worker = Worker::register(&store).expect("a free slot");
    set(&worker, b"read", 1, Some(1_000_500));
    set(&worker, b"unread", 2, Some(1_000_500));
    set(&worker, b"later", 3, Some(1_000_500));
    set(&worker, b"later", 3, Some(1_900_000));
    store.clock().set(1_000_500);
    assert_eq!(get(&worker, b"read"), Some(1));
    store.clock().set(1_000_501);
    assert_eq!(get(&worker, b"read"), None);
    assert_eq!(keys(&worker), 2);
    store.clock().set(1_002_000);
    settle(&worker);
    assert_eq!(keys(&worker), 1);
    assert_eq!(worker.database_sizes()[0].expiring_keys, 1);
    assert_eq!(store.statistics().expired_keys, 2);
    store.clock().set(1_950_000);
    settle(&worker);
    assert_eq!(keys(&worker), 0);
    assert_eq!(store.statistics().expired_keys, 3);
}

#[test]
fn deadlines_of_deleted_keys_do_not_gather() {
    const ROUNDS: i64 = 20;
    const KEYS: i64 = 1_000;
    let store = store();
    let worker = Worker::register(&store).expect("a free slot");
    for round in 0..ROUNDS {
        for key in 0..KEYS {
            // Far deadlines, another for each round, on keys that are soon deleted, and a few that stay.
            let name = format!("{round}:{key}");
            set(&worker, name.as_bytes(), key, Some(50_000_000 + round * 1_000));
            if key % 100 != 0 {
                with(&worker, |tx| {
                    let key = tx.open(name.as_bytes());
                    tx.delete(key)
                });
            }
        }
        settle(&worker);
    }
    let stay = ROUNDS * KEYS / 100;
    assert_eq!(worker.database_sizes()[0].expiring_keys, stay as u64);
    let bound = crate::limits::STALE_DEADLINES_MAX + 2 * stay as usize;
    assert!(worker.deadline_records(0) <= bound, "{} records", worker.deadline_records(0));
    store.clock().set(60_000_000);
    settle(&worker);
    assert_eq!(keys(&worker), 0);
    assert_eq!(worker.deadline_records(0), 0);
}

#[test]
fn several_keys_change_at_one_moment() {
    let store = store();
    let worker = Worker::register(&store).expect("a free slot");
    set(&worker, b"a", 1, None);
    with(&worker, |tx| {
        let (a, b) = (tx.open(b"a"), tx.open(b"b"));
        let value = tx.take(a).expect("set above");
        tx.set(b, value);
    });
    assert_eq!((get(&worker, b"a"), get(&worker, b"b")), (None, Some(1)));
    // More keys than are searched one by one, with repeats.
    with(&worker, |tx| {
        for round in 0..2 {
            for number in 0..50 {
                let key = tx.open(format!("m{number}").as_bytes());
                let next = super::tests::number(tx, key).unwrap_or(0) + round;
                tx.set(key, NewRoot::integer(next + 10, None));
            }
        }
    });
    for number in 0..50 {
        assert_eq!(get(&worker, format!("m{number}").as_bytes()), Some(21));
    }
    settle(&worker);
    assert_eq!(keys(&worker), 51);
}

#[test]
fn flush_and_swap_concern_whole_databases() {
    let store = store();
    let worker = Worker::register(&store).expect("a free slot");
    set(&worker, b"a", 1, Some(2_000_000));
    worker.swap_databases(0, 3);
    assert_eq!(get(&worker, b"a"), None);
    worker.swap_databases(3, 0);
    assert_eq!(get(&worker, b"a"), Some(1));
    worker.flush(Some(0));
    assert_eq!(get(&worker, b"a"), None);
    store.clock().set(3_000_000);
    settle(&worker);
    set(&worker, b"a", 1, None);
    worker.flush(None);
    assert_eq!(keys(&worker), 0);
    assert!(store.statistics().gates >= 4);
}

/// Runs `body` on `threads` threads with a worker each.
fn race(store: &Arc<Store>, threads: usize, body: impl Fn(usize, &Worker) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let body = &body;
            scope.spawn(move || {
                let worker = Worker::register(store).expect("a free slot");
                body(thread, &worker);
            });
        }
    });
}

const ROUNDS: usize = if cfg!(caswell_checking) { 300 } else { 5_000 };

#[test]
fn no_increment_is_lost() {
    let store = store();
    race(&store, 4, |_, worker| (0..ROUNDS).for_each(|_| increment(worker, b"counter")));
    let worker = Worker::register(&store).expect("a free slot");
    assert_eq!(get(&worker, b"counter"), Some(4 * ROUNDS as i64));
}

#[test]
fn no_transfer_is_seen_half_done() {
    let store = store();
    let names: Vec<Vec<u8>> = (0..6).map(|number| format!("account{number}").into_bytes()).collect();
    {
        let worker = Worker::register(&store).expect("a free slot");
        names.iter().for_each(|name| set(&worker, name, 100, None));
    }
    race(&store, 4, |thread, worker| {
        let mut random = crate::random::Random::from_seed(thread as u64);
        for round in 0..ROUNDS {
            let (from, to) = (random.below(6) as usize, random.below(6) as usize);
            if thread == 0 || from == to {
                let sum: i64 = with(worker, |tx| {
                    names
                        .iter()
                        .map(|name| {
                            let key = tx.open(name);
                            number(tx, key).unwrap_or(0)
                        })
                        .sum()
                });
                assert_eq!(sum, 600, "round {round}");
            } else {
                with(worker, |tx| {
                    let (a, b) = (tx.open(&names[from]), tx.open(&names[to]));
                    let (x, y) = (number(tx, a).unwrap_or(0), number(tx, b).unwrap_or(0));
                    // A balance of zero is a deleted key, so that keys come and go.
                    if x == 1 {
                        tx.delete(a);
                    } else {
                        tx.set(a, NewRoot::integer(x - 1, None));
                    }
                    tx.set(b, NewRoot::integer(y + 1, None));
                });
            }
            if round % 64 == 0 {
                worker.tick();
            }
        }
    });
    let statistics = store.statistics();
    assert!(statistics.multi_commits > 0, "{statistics:?}");
}

#[test]
fn keys_come_and_go_under_all_threads() {
    let store = store();
    race(&store, 4, |thread, worker| {
        let mut random = crate::random::Random::from_seed(thread as u64);
        for round in 0..ROUNDS {
            let name = format!("k{}", random.below(20));
            match random.below(3) {
                0 => set(worker, name.as_bytes(), 1, None),
                1 => {
                    with(worker, |tx| {
                        let key = tx.open(name.as_bytes());
                        tx.delete(key)
                    });
                }
                _ => {
                    get(worker, name.as_bytes());
                }
            }
            if round % 16 == 0 {
                worker.tick();
            }
            if thread == 0 && round % 500 == 0 {
                worker.flush(Some(0));
            }
        }
        settle(worker);
    });
    let worker = Worker::register(&store).expect("a free slot");
    let mut live = 0;
    with(&worker, |tx| {
        live = 0;
        tx.scan(0, usize::MAX, &mut |_, _| live += 1)
    });
    assert_eq!(keys(&worker), live);
}

#[test]
fn long_strings_do_not_disturb_short_ones() {
    let store = store();
    let worker = Worker::register(&store).expect("a free slot");
    let long = vec![b'x'; 40];
    with(&worker, |tx| {
        let key = tx.open(b"s");
        tx.set(key, NewRoot::bytes(&long, StringEncoding::Whole, None));
    });
    let length = with(&worker, |tx| {
        let key = tx.open(b"s");
        match tx.root(key).and_then(|root| root.view()) {
            Some(View::Bytes(bytes)) => bytes.len(),
            _ => 0,
        }
    });
    assert_eq!(length, 40);
}

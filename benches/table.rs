//! What do look-ups, overwrites and growth cost in the keyspace's table, beside general-purpose concurrent maps (papaya, flurry)?
//!
//!     cargo bench --bench table -- [number of keys]
//!
//! 16-byte keys, 64-byte values, one thread. Ours goes through transactions, as commands do; the maps hold a boxed value and are used as their
//! documentation shows. The longest insert is that of a whole growth from empty, on the wall clock.

mod support;

use caswell::store::{Store, StoreOptions, Worker};
use caswell::txn::{RuntimeLimits, Scratch, Transaction};
use caswell::types::{NewRoot, StringEncoding};
use std::hint::black_box;
use std::time::{Duration, Instant};
use support::{report, timed};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Key = [u8; 16];
const VALUE: [u8; 64] = [b'x'; 64];
/// Look-ups prepared together, as a pipelined batch's are.
const BATCH: usize = 16;

fn key(number: usize) -> Key {
    let mut key = *b"key:000000000000";
    key[4..].copy_from_slice(format!("{number:012}").as_bytes());
    key
}

/// A map under test.
trait Map {
    fn set(&mut self, key: &Key);
    fn has(&mut self, key: &Key) -> bool;
}

struct Ours<'w> {
    tx: Transaction<'w>,
    operations: usize,
}

impl Ours<'_> {
    /// Sections are short: dozens of commands.
    fn renew_now_and_then(&mut self) {
        self.operations += 1;
        if self.operations.is_multiple_of(64) {
            self.tx.renew();
        }
    }
}

impl Map for Ours<'_> {
    fn set(&mut self, key: &Key) {
        self.renew_now_and_then();
        self.tx.run(|tx| {
            let key = tx.open(key);
            tx.set(key, NewRoot::bytes(&VALUE, StringEncoding::Whole, None));
        });
    }

    fn has(&mut self, key: &Key) -> bool {
        self.renew_now_and_then();
        self.tx.run(|tx| {
            let key = tx.open(key);
            tx.root(key).is_some()
        })
    }
}

struct Papaya(papaya::HashMap<Key, Box<[u8]>, ahash::RandomState>);

impl Map for Papaya {
    fn set(&mut self, key: &Key) {
        self.0.pin().insert(*key, Box::new(VALUE));
    }

    fn has(&mut self, key: &Key) -> bool {
        self.0.pin().get(key).is_some()
    }
}

struct Flurry(flurry::HashMap<Key, Box<[u8]>, ahash::RandomState>);

impl Map for Flurry {
    fn set(&mut self, key: &Key) {
        self.0.pin().insert(*key, Box::new(VALUE));
    }

    fn has(&mut self, key: &Key) -> bool {
        self.0.pin().get(key).is_some()
    }
}

/// Operations of one sample.
const SAMPLE: usize = 50_000;

fn run(name: &str, map: &mut dyn Map, keys: &[Key], order: &[usize], absent: &[Key]) {
    let mut longest = Duration::ZERO;
    let elapsed = timed(|| {
        for key in keys {
            let insert = Instant::now();
            map.set(key);
            longest = longest.max(insert.elapsed());
        }
    });
    let mean = elapsed.as_nanos() as f64 / keys.len() as f64;
    println!("\n{:<58} {mean:>9.1} ns", format!("{name}: insert into a growing table, mean of {}", keys.len()));
    println!("{:<58} {:>9.1} us", format!("{name}: longest insert of these"), longest.as_secs_f64() * 1e6);
    let mut orders = order.chunks(SAMPLE).cycle();
    let mut next = || orders.next().expect("it goes round");
    report(&format!("{name}: look-up that finds"), || {
        let order = next();
        (order.len(), timed(|| order.iter().for_each(|&at| assert!(map.has(&keys[at])))))
    });
    report(&format!("{name}: look-up that does not"), || {
        (absent.len(), timed(|| absent.iter().for_each(|key| assert!(!map.has(key)))))
    });
    report(&format!("{name}: overwrite"), || {
        let order = next();
        (order.len(), timed(|| order.iter().for_each(|&at| map.set(&keys[at]))))
    });
}

/// Look-ups as a pipelined batch makes them: hashed and prefetched together.
fn run_batches(worker: &Worker, keys: &[Key], order: &[usize]) {
    let store = worker.store();
    let mut scratch = Scratch::default();
    let mut orders = order.chunks(SAMPLE).cycle();
    let mut look_up = |order: &[usize]| {
        for batch in order.chunks(BATCH) {
            let mut tx = Transaction::new(worker, &mut scratch, 0, RuntimeLimits::default());
            let mut hashes = [0; BATCH];
            batch.iter().zip(&mut hashes).for_each(|(&at, hash)| *hash = store.hash(&keys[at]));
            let (table, pin) = (tx.table(), tx.pin());
            let hashes = &hashes[..batch.len()];
            hashes.iter().for_each(|hash| table.prefetch_head(*hash));
            hashes.iter().for_each(|hash| table.prefetch_entry(*hash, pin));
            hashes.iter().for_each(|hash| table.prefetch_root(*hash, pin));
            for (&at, hash) in batch.iter().zip(hashes) {
                let found = tx.run(|tx| {
                    tx.hint(&keys[at], *hash);
                    let key = tx.open(&keys[at]);
                    tx.root(key).is_some()
                });
                black_box(found);
            }
        }
    };
    report(&format!("Caswell: look-up that finds, in batches of {BATCH}"), || {
        let order = orders.next().expect("it goes round");
        (order.len(), timed(|| look_up(order)))
    });
}

fn main() {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let keys: Vec<Key> = (0..count).map(key).collect();
    let absent: Vec<Key> = (count..count + count.min(SAMPLE)).map(key).collect();
    let mut random = caswell::random::Random::from_seed(1);
    let order: Vec<usize> = (0..count.min(1_000_000)).map(|_| random.below(count as u64) as usize).collect();

    let store = Store::new(StoreOptions { databases: 1, ..StoreOptions::default() });
    let worker = Worker::register(&store).expect("a slot is free");
    let mut scratch = Scratch::default();
    let mut ours = Ours { tx: Transaction::new(&worker, &mut scratch, 0, RuntimeLimits::default()), operations: 0 };
    run("Caswell", &mut ours, &keys, &order, &absent);
    drop(ours);
    run_batches(&worker, &keys, &order);
    drop(worker);
    drop(store);
    run("papaya", &mut Papaya(papaya::HashMap::default()), &keys, &order, &absent);
    run("flurry", &mut Flurry(flurry::HashMap::default()), &keys, &order, &absent);
}

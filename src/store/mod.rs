//! The keyspace: databases, tables, entries, and the threads that work on them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`table`] | the split-ordered list that finds a key's entry |
//! | [`entry`], [`word`] | an entry: the key, and the one atomic word that is its value |
//! | [`claim`] | how a multi-word commit holds words |
//! | [`gate`] | how one thread has the whole keyspace to itself |
//! | [`worker`] | one thread's access: sections, stamps, garbage, housekeeping |
//! | `garbage`, `reaper`, `expiry` | what waits for its grace period; deleted entries; deadlines |

pub mod claim;
pub mod entry;
pub mod events;
mod expiry;
pub(crate) mod garbage;
pub mod gate;
mod reaper;
pub mod table;
pub mod word;
pub mod worker;

pub use garbage::{Dropper, root_bytes};
pub use worker::{Pin, Section, Worker};

use crate::clock::Clock;
use crate::epoch::Collector;
use crate::limits::WORKER_SLOTS;
use crate::sync::{Arc, AtomicBool, AtomicPtr, AtomicU64, CachePadded, Ordering, OwnedCounter};
use ahash::RandomState;
use events::EventOrder;
use expiry::DeadlineTicks;
use garbage::{DropQueue, Meter};
use gate::Gate;
use table::Table;

/// What a store is made with.
#[derive(Debug)]
pub struct StoreOptions {
    /// Number of databases.
    pub databases: usize,
    /// Threads that may register, at most [`WORKER_SLOTS`].
    pub workers_max: usize,
    /// Where time comes from.
    pub clock: Clock,
    /// Seeds of the key hasher; random where `None`.
    pub hash_seeds: Option<[u64; 4]>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { databases: 16, workers_max: 16.min(WORKER_SLOTS), clock: Clock::system(), hash_seeds: None }
    }
}

/// What one worker did, each counter written by that worker alone.
#[derive(Debug, Default)]
pub struct WorkerStatistics {
    /// Attempts that lost a race and were run again.
    pub conflicts: OwnedCounter,
    /// Commits over several entries.
    pub multi_commits: OwnedCounter,
    /// Undecided claims of others that this worker aborted.
    pub aborts: OwnedCounter,
    /// Transactions that became the elder.
    pub elders: OwnedCounter,
    /// Times the gate was taken.
    pub gates: OwnedCounter,
    /// Doublings of a table.
    pub growths: OwnedCounter,
    /// Keys deleted because their deadline had passed.
    pub expired_keys: OwnedCounter,
    /// Look-ups that found a value.
    pub keyspace_hits: OwnedCounter,
    /// Look-ups that found none.
    pub keyspace_misses: OwnedCounter,
    /// The largest stamp drawn; published when a section ends.
    last_stamp: OwnedCounter,
    /// Attempts begun by workers that have left this slot: their ids are not given again, as nodes carry them for as long as they live.
    past_attempts: OwnedCounter,
}

/// The sums of all workers' counters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StoreStatistics {
    /// As [`WorkerStatistics::conflicts`].
    pub conflicts: u64,
    /// As [`WorkerStatistics::multi_commits`].
    pub multi_commits: u64,
    /// As [`WorkerStatistics::aborts`].
    pub aborts: u64,
    /// As [`WorkerStatistics::elders`].
    pub elders: u64,
    /// As [`WorkerStatistics::gates`].
    pub gates: u64,
    /// As [`WorkerStatistics::growths`].
    pub growths: u64,
    /// As [`WorkerStatistics::expired_keys`].
    pub expired_keys: u64,
    /// As [`WorkerStatistics::keyspace_hits`].
    pub keyspace_hits: u64,
    /// As [`WorkerStatistics::keyspace_misses`].
    pub keyspace_misses: u64,
    /// Bytes retired since the start.
    pub retired_bytes: u64,
    /// Bytes retired that wait for their grace period.
    pub garbage_bytes: u64,
}

impl StoreStatistics {
    /// Every counter's name, what it counts, and its value; bytes that wait are a state and no counter.
    pub fn described(&self) -> [(&'static str, &'static str, u64); 10] {
        [
            ("commit_conflicts", "Attempts that lost a race and were run again.", self.conflicts),
            ("commits_of_several_keys", "Commits over several entries.", self.multi_commits),
            ("commits_aborted", "Undecided claims of others that were aborted.", self.aborts),
            ("elder_transactions", "Transactions that became the elder.", self.elders),
            ("gates_taken", "Times the gate was taken.", self.gates),
            ("table_growths", "Doublings of a table.", self.growths),
            ("expired_keys", "Keys deleted because their deadline had passed.", self.expired_keys),
            ("keyspace_hits", "Look-ups that found a value.", self.keyspace_hits),
            ("keyspace_misses", "Look-ups that found none.", self.keyspace_misses),
            ("garbage_bytes", "Bytes retired.", self.retired_bytes),
        ]
    }

    /// What the counters have grown by since `before`; bytes that wait are a state and stay as they are.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            conflicts: self.conflicts - before.conflicts,
            multi_commits: self.multi_commits - before.multi_commits,
            aborts: self.aborts - before.aborts,
            elders: self.elders - before.elders,
            gates: self.gates - before.gates,
            growths: self.growths - before.growths,
            expired_keys: self.expired_keys - before.expired_keys,
            keyspace_hits: self.keyspace_hits - before.keyspace_hits,
            keyspace_misses: self.keyspace_misses - before.keyspace_misses,
            retired_bytes: self.retired_bytes - before.retired_bytes,
            garbage_bytes: self.garbage_bytes,
        }
    }
}

/// What a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseSize {
    /// Keys.
    pub keys: u64,
    /// Keys with a deadline.
    pub expiring_keys: u64,
    /// Buckets.
    pub buckets: u64,
}

#[derive(Debug, Default)]
struct WorkerSlot {
    taken: AtomicBool,
    statistics: WorkerStatistics,
    meter: Arc<Meter>,
}

/// All databases of one server.
#[derive(Debug)]
pub struct Store {
    /// Those that clients can select, then the internal one.
    tables: Box<[CachePadded<AtomicPtr<Table>>]>,
    /// How often each database has been exchanged for another.
    swaps: Box<[AtomicU64]>,
    hasher: RandomState,
    clock: Clock,
    deadline_ticks: DeadlineTicks,
    gate: Gate,
    /// Worker index + 1 of the elder; 0 for none.
    elder: CachePadded<AtomicU64>,
    next_table_id: AtomicU64,
    active_expiry: AtomicBool,
    records_writes: AtomicBool,
    event_order: EventOrder,
    workers: Box<[CachePadded<WorkerSlot>]>,
    drop_queue: Arc<DropQueue>,
    /// Dropped last of all: what was retired is freed with it.
    collector: Collector,
}

impl Store {
    /// A store with empty databases.
    pub fn new(options: StoreOptions) -> Arc<Self> {
        let workers = options.workers_max.clamp(1, WORKER_SLOTS);
        let hasher = match options.hash_seeds {
            Some([a, b, c, d]) => RandomState::with_seeds(a, b, c, d),
            None => RandomState::new(),
        };
        let base_ms = options.clock.now().unix_ms;
        let tables = options.databases.max(1) + 1;
        Arc::new(Self {
            tables: (0..tables)
                .map(|id| CachePadded::new(AtomicPtr::new(Box::into_raw(Box::new(Table::new(id as u64, workers))))))
                .collect(),
            swaps: (0..tables).map(|_| AtomicU64::new(0)).collect(),
            hasher,
            clock: options.clock,
            deadline_ticks: DeadlineTicks::since(base_ms),
            gate: Gate::new(workers),
            elder: CachePadded::new(AtomicU64::new(0)),
            next_table_id: AtomicU64::new(tables as u64),
            active_expiry: AtomicBool::new(true),
            records_writes: AtomicBool::new(false),
            event_order: EventOrder::default(),
            workers: (0..workers).map(|_| CachePadded::default()).collect(),
            drop_queue: Arc::default(),
            collector: Collector::new(),
        })
    }

    /// Number of databases that clients can select.
    pub fn databases(&self) -> usize {
        self.tables.len() - 1
    }

    /// How often a database has been exchanged for another. Does not change within a section.
    pub fn swaps(&self, database: usize) -> u64 {
        // Relaxed: changes under the gate only, whose opening publishes it to the sections that follow.
        self.swaps[database].load(Ordering::Relaxed)
    }

    /// The number of the internal database, which clients cannot select: who waits for keys, and what they are to be told.
    pub fn internal_database(&self) -> usize {
        self.databases()
    }

    /// The store's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The keyed hash of a key; its leading bits are the key's bucket.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The table of a database, `database <= self.internal_database()`. Stays the same within a section.
    #[inline]
    pub fn table<'g>(&self, database: usize, _pin: Pin<'g>) -> &'g Table {
        // Acquire: pairs with the Release in `Worker::replace_tables`: the table is seen initialised.
        let table = self.tables[database].load(Ordering::Acquire);
        // SAFETY: the pointer is never null, and a table that was swapped out is freed only after all pins that stood then have ended.
        unsafe { &*table }
    }

    /// Whether expired keys are deleted without a read (DEBUG SET-ACTIVE-EXPIRE).
    pub fn set_active_expiry(&self, on: bool) {
        // Relaxed: a setting; it orders nothing.
        self.active_expiry.store(on, Ordering::Relaxed);
    }

    /// Whether each commit records the keys that it writes. A change holds for all commits once the gate has been taken afterwards.
    pub fn record_writes(&self, on: bool) {
        // Relaxed: the gate orders it before the sections to come.
        self.records_writes.store(on, Ordering::Relaxed);
    }

    /// What keeps the events of a key in the order of its commits.
    pub fn event_order(&self) -> &EventOrder {
        &self.event_order
    }

    /// Whether each commit records the keys that it writes.
    #[inline]
    pub(crate) fn records_writes(&self) -> bool {
        // Relaxed: see `record_writes`.
        self.records_writes.load(Ordering::Relaxed)
    }

    /// Opens the queue of large values to be freed in the background; the caller runs [`Dropper::run`] on a thread of its own. `None` where it
    /// was opened before.
    pub fn open_dropper(&self) -> Option<Dropper> {
        self.drop_queue.open()
    }

    /// The sums of all workers' counters.
    pub fn statistics(&self) -> StoreStatistics {
        let mut sum = StoreStatistics::default();
        for slot in &self.workers {
            let one = &slot.statistics;
            sum.conflicts += one.conflicts.get();
            sum.multi_commits += one.multi_commits.get();
            sum.aborts += one.aborts.get();
            sum.elders += one.elders.get();
            sum.gates += one.gates.get();
            sum.growths += one.growths.get();
            sum.expired_keys += one.expired_keys.get();
            sum.keyspace_hits += one.keyspace_hits.get();
            sum.keyspace_misses += one.keyspace_misses.get();
            sum.retired_bytes += slot.meter.retired_bytes();
            sum.garbage_bytes += slot.meter.waiting_bytes();
        }
        sum
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        for table in &mut self.tables {
            // Relaxed: the store is ours alone.
            let table = table.load(Ordering::Relaxed);
            // SAFETY: made by Box::into_raw in `new` or `replace_tables`; workers hold the store, so none is left.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

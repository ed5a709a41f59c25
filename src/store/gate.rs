//! The gate: how one thread has the whole keyspace to itself for a moment.
//!
//! The problem: FLUSHALL, SWAPDB and the cut of a snapshot concern every key, so no key-sized read set can protect them. Each worker has a
//! slot that says whether it is inside a section (a short stretch of commands and commits). The holder closes the gate and
//! waits until every other slot is idle; a worker that finds the gate closed leaves its slot idle and waits.
//!
//! ```text
//! slot:   IDLE | BUSY (no floor yet) | floor of the stamps this section will draw
//! holder: OPEN | worker index + 1
//! ```
//!
//! Invariants
//! 1. While a holder has the gate, no other worker is inside a section (loom: `gate_against_commits`).
//! 2. A worker that wants the gate is outside any section (rule 11), so two of them cannot wait for each other's slot.
//! 3. Stamps drawn after the gate was left are larger than the gate's stamp, and that is larger than all before it (rule 14).
//!
//! Linearization: of the holder's work, the moment the last slot was seen idle. Progress: blocking, by its nature; sections are short and
//! never wait (rule 12).

use crate::sync::{AtomicU64, CachePadded, Ordering, fence, planted, wait};

const IDLE: u64 = u64::MAX;
const BUSY: u64 = 0;
const OPEN: u64 = 0;

/// The gate and the slots of all workers.
#[derive(Debug)]
pub struct Gate {
    holder: CachePadded<AtomicU64>,
    /// The stamp of the last holder; floors lie above it.
    stamp: AtomicU64,
    slots: Box<[CachePadded<AtomicU64>]>,
}

impl Gate {
    /// An open gate for `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self {
            holder: CachePadded::new(AtomicU64::new(OPEN)),
            stamp: AtomicU64::new(0),
            slots: (0..workers).map(|_| CachePadded::new(AtomicU64::new(IDLE))).collect(),
        }
    }

    /// Marks the worker busy, waiting while somebody else holds the gate. Gives the stamp that the section's stamps must exceed.
    #[inline]
    pub fn enter(&self, worker: usize) -> u64 {
        loop {
            // Relaxed: the fence below orders it before the load of `holder`.
            self.slots[worker].store(BUSY, Ordering::Relaxed);
            if !planted("gate_no_fence") {
                // SeqCst: pairs with the fence in `close`: either this load sees the holder, or the holder sees the slot busy.
                fence(Ordering::SeqCst);
            }
            // Acquire: pairs with the Release in `open`: what the last holder did (swapped tables, its stamp) is visible.
            let holder = self.holder.load(Ordering::Acquire);
            if holder == OPEN || holder == worker as u64 + 1 {
                // Relaxed: ordered by the Acquire above.
                return self.stamp.load(Ordering::Relaxed);
            }
            self.leave(worker);
            wait(|| {
                // Relaxed: only ends the wait; `enter` looks again.
                self.holder.load(Ordering::Relaxed) == OPEN
            });
        }
    }

    /// Says what stamps the section will draw at least; the log's merger reads it.
    #[inline]
    pub fn set_floor(&self, worker: usize, floor: u64) {
        debug_assert!(floor != BUSY && floor != IDLE);
        // Release: pairs with the merger's Acquire: effects queued before are visible to whoever sees the floor.
        self.slots[worker].store(floor, Ordering::Release);
    }

    /// Marks the worker idle.
    #[inline]
    pub fn leave(&self, worker: usize) {
        // Release: pairs with the Acquire in `close`: all that the section did is visible to the holder.
        self.slots[worker].store(IDLE, Ordering::Release);
    }

    /// Closes the gate and waits until all others are idle. The caller is outside any section.
    pub fn close(&self, worker: usize) {
        // Relaxed: the caller wrote its own slot.
        debug_assert_eq!(self.slots[worker].load(Ordering::Relaxed), IDLE, "rule 11");
        wait(|| {
            // Acquire: pairs with the Release in `open`: the holder before has finished. Relaxed on failure: tried again.
            self.holder.compare_exchange(OPEN, worker as u64 + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        // SeqCst: pairs with the fence in `enter`.
        fence(Ordering::SeqCst);
        for slot in &self.slots {
            wait(|| {
                // Acquire: pairs with the Release in `leave`.
                slot.load(Ordering::Acquire) == IDLE
            });
        }
    }

    /// Whether another worker has the gate or waits for it.
    #[inline]
    pub fn is_closed_by_another(&self, worker: usize) -> bool {
        // Relaxed: a hint to leave the section; `enter` looks again.
        let holder = self.holder.load(Ordering::Relaxed);
        holder != OPEN && holder != worker as u64 + 1
    }

    /// Opens the gate; `stamp` is the stamp of what the holder did.
    pub fn open(&self, stamp: u64) {
        // Relaxed: the store below publishes it.
        self.stamp.store(stamp, Ordering::Relaxed);
        // Release: pairs with the Acquire in `enter` and `close`.
        self.holder.store(OPEN, Ordering::Release);
    }
}

//! The reaper: unlinks entries whose key was deleted, a full grace period later (rule 7).
//!
//! A tombstone must stay until every thread that may have seen the key before its deletion has moved on, so that a key which comes and goes
//! is never taken for one that was absent throughout. Each worker queues the entries it deleted, in batches that share one grace period.
//! An entry stands in at most one reaper (its word's *queued* bit), and only that reaper makes it Dead, so the pointers here never dangle while
//! their table is installed.

use super::entry::Entry;
use crate::epoch::Guard;
use crate::limits::REAPER_BATCH;
use crate::sync::{Arc, AtomicBool, Ordering};
use std::collections::VecDeque;
use std::ptr::NonNull;

/// An entry that waits to be unlinked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mourned {
    pub(super) table: u64,
    pub(super) entry: NonNull<Entry>,
    /// The tombstone's stamp when it was queued; 0 for a placeholder.
    pub(super) stamp: u64,
}

#[derive(Debug)]
struct Batch {
    items: Vec<Mourned>,
    ripe: Arc<AtomicBool>,
}

/// One worker's queue of deleted entries.
#[derive(Debug, Default)]
pub(super) struct Reaper {
    open: Vec<Mourned>,
    sealed: VecDeque<Batch>,
}

impl Reaper {
    /// Queues an entry whose word has just been given the *queued* bit by this worker.
    pub(super) fn add(&mut self, item: Mourned, guard: &Guard) {
        self.open.push(item);
        if self.open.len() >= REAPER_BATCH {
            self.seal(guard);
        }
    }

    /// Begins the grace period of what has gathered.
    pub(super) fn seal(&mut self, guard: &Guard) {
        if self.open.is_empty() {
            return;
        }
        let ripe = Arc::new(AtomicBool::new(false));
        let flag = ripe.clone();
        // Release: pairs with the Acquire in `take_ripe`: the grace period lies between the tombstones and the unlinking.
        guard.defer(move || flag.store(true, Ordering::Release));
        self.sealed
            .push_back(Batch { items: std::mem::replace(&mut self.open, Vec::with_capacity(REAPER_BATCH)), ripe });
    }

    /// A batch whose grace period is over.
    pub(super) fn take_ripe(&mut self) -> Option<Vec<Mourned>> {
        // Acquire: pairs with the Release in `seal`.
        if self.sealed.front()?.ripe.load(Ordering::Acquire) {
            self.sealed.pop_front().map(|batch| batch.items)
        } else {
            None
        }
    }

    /// Entries that wait.
    pub(super) fn len(&self) -> usize {
        self.open.len() + self.sealed.iter().map(|batch| batch.items.len()).sum::<usize>()
    }
}

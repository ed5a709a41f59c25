//! Which script each worker runs now, so that another worker's client can end it.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// One slot per worker.
pub struct Running {
    slots: Box<[CachePadded<Slot>]>,
}

/// What one worker runs.
#[derive(Default)]
pub struct Slot {
    /// The script's number among all that this worker has run; 0 while it runs none.
    run: AtomicU64,
    /// When it began, in milliseconds of Unix time.
    since_ms: AtomicI64,
    is_function: AtomicBool,
    /// What it has done is committed, so that it can no longer be ended as if it had never begun.
    has_committed: AtomicBool,
    /// The number of the script that is to end.
    killed: AtomicU64,
    /// Scripts that this worker has run.
    runs: AtomicU64,
}

/// What came of the wish to end what runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// It will end.
    Done,
    /// Nothing has run for long.
    NothingRuns,
    /// It cannot be taken back any more.
    HasWritten,
    /// It is of the other kind: a function where a script was meant, or the other way round.
    OtherKind,
}

impl Running {
    /// Slots for so many workers.
    pub fn new(workers: usize) -> Self {
        Self { slots: (0..workers).map(|_| CachePadded::new(Slot::default())).collect() }
    }

    /// A worker's slot, which only it writes to but for the wish to end.
    pub fn slot(&self, worker: usize) -> &Slot {
        &self.slots[worker]
    }

    /// Ends every script, or every function, that has run for at least `threshold_ms`.
    pub fn kill(&self, functions: bool, now_ms: i64, threshold_ms: i64) -> Kill {
        let mut outcome = Kill::NothingRuns;
        for slot in &self.slots {
            // Acquire: pairs with the Release in `begin`, so that what is read below is of this run or a later one.
            let run = slot.run.load(Ordering::Acquire);
            // Relaxed, all: a run that ends meanwhile is not harmed, since its number is never used again.
            if run == 0 || now_ms.saturating_sub(slot.since_ms.load(Ordering::Relaxed)) < threshold_ms {
                continue;
            }
            let this = if slot.is_function.load(Ordering::Relaxed) != functions {
                Kill::OtherKind
            } else if slot.has_committed.load(Ordering::Relaxed) {
                Kill::HasWritten
            } else {
                slot.killed.store(run, Ordering::Relaxed);
                Kill::Done
            };
            if outcome != Kill::Done {
                outcome = this;
            }
        }
        outcome
    }
}

impl Slot {
    /// Notes that a script begins; gives its number.
    pub fn begin(&self, is_function: bool, now_ms: i64) -> u64 {
        // Relaxed, all: this worker is the only writer.
        let run = self.runs.load(Ordering::Relaxed) + 1;
        self.runs.store(run, Ordering::Relaxed);
        self.since_ms.store(now_ms, Ordering::Relaxed);
        self.is_function.store(is_function, Ordering::Relaxed);
        self.has_committed.store(false, Ordering::Relaxed);
        // Release: pairs with the Acquire in `kill`.
        self.run.store(run, Ordering::Release);
        run
    }

    /// Notes that what the script has done cannot be taken back.
    pub fn note_commit(&self) {
        // Relaxed: a wish to end that comes at this moment may see either.
        self.has_committed.store(true, Ordering::Relaxed);
    }

    /// Whether the script of this number is to end.
    pub fn is_killed(&self, run: u64) -> bool {
        // Relaxed: the number says all.
        self.killed.load(Ordering::Relaxed) == run
    }

    /// Notes that the script has ended.
    pub fn end(&self) {
        // Relaxed: who reads the old number harms nobody.
        self.run.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_run_for_long_is_ended_and_only_that_run() {
        let running = Running::new(2);
        assert_eq!(running.kill(false, 1000, 10), Kill::NothingRuns);
        let slot = running.slot(1);
        let first = slot.begin(false, 1000);
        assert_eq!(running.kill(false, 1005, 10), Kill::NothingRuns);
        assert_eq!(running.kill(true, 1010, 10), Kill::OtherKind);
        assert!(!slot.is_killed(first));
        assert_eq!(running.kill(false, 1010, 10), Kill::Done);
        assert!(slot.is_killed(first));
        slot.end();
        let second = slot.begin(true, 1010);
        assert!(!slot.is_killed(second));
        slot.note_commit();
        assert_eq!(running.kill(true, 2000, 10), Kill::HasWritten);
        slot.end();
        assert_eq!(running.kill(true, 3000, 10), Kill::NothingRuns);
    }
}

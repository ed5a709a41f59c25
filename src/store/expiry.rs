//! The index of deadlines: when to look at which entries, so that keys go without a read.
//!
//! Each worker has an index of its own: by table and tick, the hashes of entries to look at then. An entry notes the earliest tick at which
//! somebody will look ([`Entry::deadline`]), so a key whose deadline is pushed ahead again and again keeps one record: when that
//! comes due, the entry is filed anew under its present deadline. A record names a hash, not an entry, so it never dangles.

use super::entry::Entry;
use crate::limits::STALE_DEADLINES_MAX;
use crate::sync::{Ordering, fence};
use std::collections::{BTreeMap, HashMap};

/// Milliseconds per tick are two to this power.
const TICK_SHIFT: u32 = 7;

/// Deadlines in ticks since the store's beginning; 0 stands for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeadlineTicks {
    base_ms: i64,
}

impl DeadlineTicks {
    pub(super) fn since(base_ms: i64) -> Self {
        Self { base_ms }
    }

    /// The first tick at whose beginning the deadline has passed.
    pub(super) fn of_deadline(self, deadline_ms: i64) -> u32 {
        let ticks = (deadline_ms.saturating_sub(self.base_ms) >> TICK_SHIFT).saturating_add(2);
        ticks.clamp(1, i64::from(u32::MAX)) as u32
    }

    /// The tick of `now_ms`.
    pub(super) fn of_now(self, now_ms: i64) -> u32 {
        let ticks = (now_ms.saturating_sub(self.base_ms) >> TICK_SHIFT).saturating_add(1);
        ticks.clamp(0, i64::from(u32::MAX)) as u32
    }
}

/// One worker's records.
#[derive(Debug, Default)]
pub(super) struct DeadlineIndex {
    tables: HashMap<u64, TableDeadlines>,
}

/// One worker's records of one table.
#[derive(Debug, Default)]
struct TableDeadlines {
    ticks: BTreeMap<u32, Vec<u64>>,
    count: usize,
    sweep: Option<Sweep>,
}

/// A pass over all records that looks at each before its time: those of keys that were deleted, or lost their deadline, go, the others are filed
/// anew. It runs when there are many more records than keys with a deadline, so its cost is spread over the writes that made them.
#[derive(Debug)]
struct Sweep {
    tick: u32,
    rest: Vec<u64>,
}

impl DeadlineIndex {
    /// Sees to it that somebody looks at the entry at `tick` or before, after its word was given a root with that deadline.
    pub(super) fn note(&mut self, table: u64, entry: &Entry, tick: u32) {
        // SeqCst: pairs with the fence in `fire`: either this load sees the record gone, or that thread sees the new word.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it; the value guards nothing but itself.
        let mut noted = entry.deadline.load(Ordering::Relaxed);
        while noted == 0 || noted > tick {
            // Relaxed: as above. Fails only when another worker has changed it, and so made progress.
            match entry.deadline.compare_exchange_weak(noted, tick, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return self.tables.entry(table).or_default().file(entry.hash, tick),
                Err(now) => noted = now,
            }
        }
    }

    /// The tables that have records.
    pub(super) fn tables(&self) -> impl Iterator<Item = u64> {
        self.tables.keys().copied()
    }

    /// Forgets a table that is gone.
    pub(super) fn forget(&mut self, table: u64) {
        self.tables.remove(&table);
    }

    /// Records of a table.
    pub(super) fn len(&self, table: u64) -> usize {
        self.tables.get(&table).map_or(0, |records| records.count)
    }

    /// Takes up to `limit` records of a table that are due at `now`, and of the sweep that the number of `expiring` keys may call for.
    pub(super) fn take(&mut self, table: u64, now: u32, expiring: u64, limit: usize, taken: &mut Vec<(u32, u64)>) {
        let Some(records) = self.tables.get_mut(&table) else { return };
        records.take_due(now, limit, taken);
        records.take_swept(expiring, limit, taken);
        if records.count == 0 {
            self.tables.remove(&table);
        }
    }
}

impl TableDeadlines {
    fn file(&mut self, hash: u64, tick: u32) {
        self.ticks.entry(tick).or_default().push(hash);
        self.count += 1;
    }

    fn take_due(&mut self, now: u32, limit: usize, taken: &mut Vec<(u32, u64)>) {
        while taken.len() < limit {
            let Some(mut first) = self.ticks.first_entry() else { break };
            let tick = *first.key();
            if tick > now {
                break;
            }
            let hashes = first.get_mut();
            let room = (limit - taken.len()).min(hashes.len());
            taken.extend(hashes.drain(hashes.len() - room..).map(|hash| (tick, hash)));
            self.count -= room;
            if hashes.is_empty() {
                first.remove();
            }
        }
    }

    fn take_swept(&mut self, expiring: u64, limit: usize, taken: &mut Vec<(u32, u64)>) {
        if self.sweep.is_none() && self.count > STALE_DEADLINES_MAX + 2 * expiring as usize {
            self.sweep = Some(Sweep { tick: 0, rest: Vec::new() });
        }
        while taken.len() < limit {
            let Some(sweep) = &mut self.sweep else { return };
            if sweep.rest.is_empty() {
                let next = self.ticks.range(sweep.tick.saturating_add(1)..).next().map(|(tick, _)| *tick);
                self.sweep = next.and_then(|tick| Some(Sweep { tick, rest: self.ticks.remove(&tick)? }));
                continue;
            }
            let room = (limit - taken.len()).min(sweep.rest.len());
            let tick = sweep.tick;
            taken.extend(sweep.rest.drain(sweep.rest.len() - room..).map(|hash| (tick, hash)));
            self.count -= room;
        }
    }
}

/// Takes a due record off its entry, before the entry's word is looked at; whether it was this record's to take.
pub(super) fn fire(entry: &Entry, tick: u32) -> bool {
    // Relaxed: the fence below orders it before the load of the word.
    let fired = entry.deadline.compare_exchange(tick, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    // SeqCst: pairs with the fence in `note`.
    fence(Ordering::SeqCst);
    fired
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_due_only_when_its_deadlines_have_passed() {
        let ticks = DeadlineTicks::since(1_000_000);
        for deadline_ms in [999_000, 1_000_000, 1_000_001, 1_000_127, 1_000_128, 1_234_567] {
            let due = ticks.of_deadline(deadline_ms);
            for now_ms in deadline_ms - 300..deadline_ms {
                assert!(ticks.of_now(now_ms) < due || now_ms < 1_000_000, "{deadline_ms} {now_ms}");
            }
            assert!(ticks.of_now(deadline_ms.max(1_000_000) + 300) >= due);
        }
        assert_eq!(ticks.of_deadline(i64::MAX), u32::MAX);
    }
}

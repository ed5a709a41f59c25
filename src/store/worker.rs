//! A worker: one thread's access to a store.
//!
//! A worker does its work in *sections*: short stretches, under one pin of the epoch and one busy slot of the gate, that never wait. Per section
//! it reads the clock once; per commit it draws a stamp that is larger than its last, than every stamp the commit saw, and than the
//! clock at the section's beginning.

use super::entry::Entry;
use super::events::{EventOrder, Events};
use super::expiry::{self, DeadlineIndex};
use super::garbage::{Garbage, Retired};
use super::reaper::{Mourned, Reaper};
use super::table::Table;
use super::word::{State, Word};
use super::{DatabaseSize, Store, WorkerStatistics};
use crate::clock::Moment;
use crate::epoch::{Guard, LocalHandle};
use crate::limits::{CLAIM_PATIENCE, TABLE_BITS_MIN, TICK_ITEMS};
use crate::store::claim::Status;
use crate::sync::{Arc, Ordering, planted, spin_loop};
use crate::types::{NewRoot, NodePtr, Root};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

/// Low bits of a stamp that name the worker.
const STAMP_WORKER_BITS: u32 = 8;

/// A stamp's place for the worker holds every worker.
const _: () = assert!(crate::limits::WORKER_SLOTS <= 1 << STAMP_WORKER_BITS);

/// The claim found belongs to the elder: give up the attempt, leave the section, and try again when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElderHolds;

/// One thread's access to a store: its pin, its gate slot, its stamps, its garbage, its statistics. Stays on its thread (not `Send`), for as long
/// as the store serves: its records of deleted entries and deadlines go with it.
pub struct Worker {
    store: Arc<Store>,
    index: usize,
    handle: LocalHandle,
    garbage: Garbage,
    last_stamp: Cell<u64>,
    last_attempt: Cell<u64>,
    /// How often the gate has been taken and not yet given back.
    gates_held: Cell<u32>,
    reaper: RefCell<Reaper>,
    deadlines: RefCell<DeadlineIndex>,
    wants_expired: Cell<bool>,
    expired: RefCell<Events>,
}

/// A short stretch of work that sees tables in place and values alive.
pub struct Section<'w> {
    worker: &'w Worker,
    guard: Guard,
    now: Moment,
}

/// Proof of having the whole keyspace to oneself; gives it back when dropped.
pub struct GateHeld<'w> {
    worker: &'w Worker,
}

/// Proof of being inside a section.
#[derive(Clone, Copy)]
pub struct Pin<'g> {
    guard: &'g Guard,
    worker: &'g Worker,
}

impl Worker {
    /// Registers the calling thread; `None` when all slots are taken.
    pub fn register(store: &Arc<Store>) -> Option<Self> {
        let index = store.workers.iter().position(|slot| {
            // Acquire: pairs with the Release in `drop`: the last owner's counters are visible. Relaxed on failure: taken.
            slot.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })?;
        Some(Self {
            store: store.clone(),
            index,
            handle: store.collector.register(),
            garbage: Garbage::new(store.workers[index].meter.clone(), store.drop_queue.clone()),
            last_stamp: Cell::new(store.workers[index].statistics.last_stamp.get()),
            last_attempt: Cell::new(store.workers[index].statistics.past_attempts.get()),
            gates_held: Cell::new(0),
            reaper: RefCell::default(),
            deadlines: RefCell::default(),
            wants_expired: Cell::new(false),
            expired: RefCell::default(),
        })
    }

    /// The store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Unlike every other registered worker's.
    pub fn index(&self) -> usize {
        self.index
    }

    /// This worker's counters.
    pub fn statistics(&self) -> &WorkerStatistics {
        &self.store.workers[self.index].statistics
    }

    /// Says whether the keys that this worker deletes because their deadline has passed are noted for [`take_expired`](Self::take_expired).
    #[inline]
    pub fn want_expired(&self, wanted: bool) {
        self.wants_expired.set(wanted);
    }

    /// Takes the keys that were deleted because their deadline had passed; `None` for none. Their events, if those are wanted, wait in the
    /// store's order.
    #[inline]
    pub fn take_expired(&self) -> Option<Events> {
        let mut expired = self.expired.borrow_mut();
        if expired.is_empty() { None } else { Some(std::mem::take(&mut expired)) }
    }

    fn note_expired(&self, table: &Table, entry: &Entry, ordered: Option<&mut Events>, pin: Pin<'_>) {
        let is_it = |database: &usize| std::ptr::eq(self.store.table(*database, pin), table);
        if let Some(database) = (0..self.store.databases()).find(is_it) {
            for events in [Some(&mut *self.expired.borrow_mut()), ordered].into_iter().flatten() {
                events.add("expired", database, entry.key());
            }
        }
    }

    /// Begins a section, waiting while somebody holds the gate.
    #[inline]
    pub fn enter(&self) -> Section<'_> {
        let (guard, now) = self.begin();
        Section { worker: self, guard, now }
    }

    #[inline]
    fn begin(&self) -> (Guard, Moment) {
        let gate_stamp = self.store.gate.enter(self.index);
        let now = self.store.clock.now();
        let floor = self.last_stamp.get().max(gate_stamp).max(now.ticks << STAMP_WORKER_BITS).max(1);
        self.last_stamp.set(floor);
        self.store.gate.set_floor(self.index, floor);
        (self.handle.pin(), now)
    }

    #[inline]
    fn end(&self) {
        let published = &self.statistics().last_stamp;
        published.add(self.last_stamp.get() - published.get());
        self.store.gate.leave(self.index);
    }

    /// Draws a commit stamp: larger than `seen` and than all this worker has drawn, and never drawn again.
    #[inline]
    pub(crate) fn draw_stamp(&self, seen: u64) -> u64 {
        let last = self.last_stamp.get().max(seen);
        let stamp = ((last >> STAMP_WORKER_BITS) + 1) << STAMP_WORKER_BITS | self.index as u64;
        self.last_stamp.set(stamp);
        stamp
    }

    /// Draws a commit stamp for a word that another commit has read (rule 5): larger also than that commit's stamp, of which the word keeps no
    /// trace but its tag. That stamp is no larger than the clock was when it was drawn, since a tick is shorter than a commit; the clock is read
    /// after the tag was.
    #[cold]
    pub(crate) fn draw_stamp_after_reader(&self, seen: u64) -> u64 {
        let now = self.store.clock.now().ticks << STAMP_WORKER_BITS;
        self.draw_stamp(if planted("commit_stale_clock") { seen } else { seen.max(now) })
    }

    /// An id that no other attempt on this store has.
    #[inline]
    pub(crate) fn next_attempt(&self) -> u64 {
        let attempt = self.last_attempt.get() + 1;
        self.last_attempt.set(attempt);
        attempt << STAMP_WORKER_BITS | self.index as u64
    }

    /// Tries to become the elder.
    pub(crate) fn take_elder(&self) -> bool {
        let me = self.index as u64 + 1;
        // Acquire: pairs with the Release in `release_elder`. Relaxed on failure: somebody else is.
        let taken = self.store.elder.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            self.statistics().elders.add(1);
        }
        taken
    }

    /// Stops being the elder.
    pub(crate) fn release_elder(&self) {
        // Release: pairs with the Acquire in `take_elder`.
        self.store.elder.store(0, Ordering::Release);
    }

    /// Waits, outside any section, until there is no elder or another one.
    pub(crate) fn wait_for_elder(&self) {
        // Relaxed, twice: only ends the wait; the words themselves are looked at again.
        let elder = self.store.elder.load(Ordering::Relaxed);
        crate::sync::wait(|| elder == 0 || self.store.elder.load(Ordering::Relaxed) != elder);
    }

    /// Keys, deadlines and buckets of each database.
    pub fn database_sizes(&self) -> Vec<DatabaseSize> {
        let section = self.enter();
        (0..self.store.databases())
            .map(|database| {
                let table = self.store.table(database, section.pin());
                DatabaseSize { keys: table.keys(), expiring_keys: table.expiring_keys(), buckets: 1 << table.bits() }
            })
            .collect()
    }

    /// Entries that wait to be unlinked by this worker.
    pub fn entries_waiting(&self) -> usize {
        self.reaper.borrow().len()
    }

    /// Records in this worker's index of deadlines of a database.
    pub fn deadline_records(&self, database: usize) -> usize {
        let section = self.enter();
        self.deadlines.borrow().len(self.store.table(database, section.pin()).id())
    }

    /// Deletes all keys of one database, or of all. Takes the gate; the keys are freed afterwards.
    pub fn flush(&self, database: Option<usize>) {
        let _gate = self.hold_gate();
        self.replace_tables(|index, _| {
            index != self.store.internal_database() && database.is_none_or(|only| only == index)
        });
    }

    /// Swaps two databases for all clients at once. Takes the gate.
    pub fn swap_databases(&self, first: usize, second: usize) {
        let _gate = self.hold_gate();
        // Relaxed: nobody else is in a section; opening the gate publishes the swap.
        let one = self.store.tables[first].load(Ordering::Relaxed);
        let two = self.store.tables[second].load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `Store::table`.
        self.store.tables[first].store(two, Ordering::Release);
        // Release: as above.
        self.store.tables[second].store(one, Ordering::Release);
        for database in [first, second] {
            // Relaxed: nobody else is in a section; opening the gate publishes it.
            self.store.swaps[database].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Puts a new table in the place of each one that `choose` picks. The caller holds the gate.
    fn replace_tables(&self, choose: impl Fn(usize, &Table) -> bool) {
        let guard = self.handle.pin();
        for (index, slot) in self.store.tables.iter().enumerate() {
            // Relaxed: nobody else is in a section, and only a gate's holder changes the pointer.
            let old = slot.load(Ordering::Relaxed);
            // SAFETY: installed tables are alive; only a gate's holder, which we are, retires them.
            if !choose(index, unsafe { &*old }) {
                continue;
            }
            // Relaxed: only uniqueness counts.
            let id = self.store.next_table_id.fetch_add(1, Ordering::Relaxed);
            let new = Box::into_raw(Box::new(Table::new(id, self.store.workers.len())));
            // Release: pairs with the Acquire in `Store::table`.
            slot.store(new, Ordering::Release);
            // SAFETY: made by Box::into_raw, and out of reach since the store above.
            self.garbage.retire(Retired::Table(unsafe { Box::from_raw(old) }), &guard);
        }
        self.garbage.hand_over(&guard);
    }

    /// Waits until this worker has the whole keyspace to itself, for as long as the result lives; its own sections go on. Where it has the gate
    /// already nothing is waited for. The caller is outside any section when it takes the gate (rule 11).
    pub fn hold_gate(&self) -> GateHeld<'_> {
        if self.gates_held.get() == 0 {
            self.store.gate.close(self.index);
            self.statistics().gates.add(1);
        }
        self.gates_held.set(self.gates_held.get() + 1);
        GateHeld { worker: self }
    }

    /// Whether somebody waits for all sections to end.
    #[inline]
    pub fn is_gate_wanted(&self) -> bool {
        self.store.gate.is_closed_by_another(self.index)
    }

    fn open_gate(&self) {
        let seen = self.store.workers.iter().map(|slot| slot.statistics.last_stamp.get()).max().unwrap_or(0);
        let clock = self.store.clock.now().ticks << STAMP_WORKER_BITS;
        let stamp = self.draw_stamp(seen.max(clock));
        self.store.gate.open(stamp);
    }

    /// Housekeeping for some microseconds: frees garbage, unlinks dead entries, expires keys. Called every 100 ms or more often, and until
    /// it answers `false` (nothing left to do now) with other work in between.
    pub fn tick(&self) -> bool {
        if self.index == 0 {
            self.store.clock.follow_wall();
        }
        let section = self.enter();
        let pin = section.pin();
        self.garbage.hand_over(&section.guard);
        let unlinked = self.unlink_ripe(pin);
        let expired = self.expire_due(pin, section.now.unix_ms);
        self.reaper.borrow_mut().seal(&section.guard);
        section.guard.flush();
        drop(section);
        if self.index == 0 {
            self.replace_deserted_tables();
        }
        unlinked || expired
    }

    /// The installed table with this id.
    fn installed<'g>(&self, id: u64, pin: Pin<'g>) -> Option<&'g Table> {
        (0..self.store.tables.len()).map(|database| self.store.table(database, pin)).find(|table| table.id() == id)
    }

    /// Makes entries Dead and unlinks them whose grace period is over; whether there may be more.
    fn unlink_ripe(&self, pin: Pin<'_>) -> bool {
        let mut done = 0;
        while done < TICK_ITEMS {
            let Some(batch) = self.reaper.borrow_mut().take_ripe() else { return false };
            done += batch.len();
            for item in batch {
                if let Some(table) = self.installed(item.table, pin) {
                    self.unlink(table, item, pin);
                }
            }
        }
        true
    }

    fn unlink(&self, table: &Table, item: Mourned, pin: Pin<'_>) {
        // SAFETY: the table is installed, and a queued entry of an installed table is unlinked by its one reaper only, which this is.
        let entry = unsafe { item.entry.as_ref() };
        loop {
            let word = entry.load();
            if matches!(word.state(), State::Claimed(_)) {
                return self.mourn(item, pin);
            }
            if word.is_hooked() || matches!(word.state(), State::Live(_)) {
                // It is needed again. (Whoever clears the hook of a key without a value queues the entry anew.)
                if entry.compare_exchange(word, word.not_queued()).is_ok() {
                    return;
                }
                continue;
            }
            let root = word.root_pointer();
            // SAFETY: read from the entry's word under the pin.
            let stamp = root.map_or(0, |root| unsafe { root.as_ref() }.stamp());
            debug_assert!(word != Word::DEAD, "only this reaper makes the entry Dead");
            if stamp != item.stamp {
                // Deleted anew since it was queued: another grace period begins.
                return self.mourn(Mourned { stamp, ..item }, pin);
            }
            if entry.compare_exchange(word, Word::DEAD).is_ok() {
                if let Some(root) = root {
                    pin.retire(Retired::Header(root));
                }
                return table.unlink(entry, pin);
            }
        }
    }

    fn mourn(&self, item: Mourned, pin: Pin<'_>) {
        self.reaper.borrow_mut().add(item, pin.guard);
    }

    /// Deletes keys whose deadline has passed; whether there may be more.
    fn expire_due(&self, pin: Pin<'_>, now_ms: i64) -> bool {
        // Relaxed: a setting.
        if !self.store.active_expiry.load(Ordering::Relaxed) {
            return false;
        }
        let now = self.store.deadline_ticks.of_now(now_ms);
        let tables: Vec<u64> = self.deadlines.borrow().tables().collect();
        let mut due = Vec::new();
        for id in tables {
            let Some(table) = self.installed(id, pin) else {
                self.deadlines.borrow_mut().forget(id);
                continue;
            };
            let from = due.len();
            self.deadlines.borrow_mut().take(id, now, table.expiring_keys(), TICK_ITEMS, &mut due);
            let due = &due[from..];
            due.iter().for_each(|(_, hash)| table.prefetch_head(*hash));
            due.iter().for_each(|(_, hash)| table.prefetch_entry(*hash, pin));
            due.iter().for_each(|(_, hash)| table.prefetch_root(*hash, pin));
            for (tick, hash) in due {
                table.with_hash(*hash, pin, &mut |entry| {
                    if expiry::fire(entry, *tick) {
                        self.look_at_deadline(table, entry, now_ms, pin);
                    }
                });
            }
        }
        due.len() >= TICK_ITEMS
    }

    /// Deletes the entry's key if it is expired, or files it under its present deadline.
    fn look_at_deadline(&self, table: &Table, entry: &Entry, now_ms: i64, pin: Pin<'_>) {
        loop {
            let word = entry.load();
            let State::Live(root) = word.resolve().state() else { return };
            // SAFETY: read from the entry's word under the pin.
            let root = unsafe { root.as_ref() };
            let Some(deadline_ms) = root.expiry_ms() else { return };
            if !root.is_expired(now_ms) {
                return self.note_deadline(table, entry, deadline_ms);
            }
            if self.expire(table, entry, word, root, pin) == Err(ElderHolds) {
                // The elder may give the key another deadline; look again at the next tick.
                return self.note_deadline(table, entry, now_ms);
            }
        }
    }

    /// Sees to it that an entry that was given a deadline is looked at in time.
    pub(crate) fn note_deadline(&self, table: &Table, entry: &Entry, deadline_ms: i64) {
        let tick = self.store.deadline_ticks.of_deadline(deadline_ms);
        self.deadlines.borrow_mut().note(table.id(), entry, tick);
    }

    /// Puts a tombstone in the place of an expired root (rule 9), unless the word has changed meanwhile: either way the caller looks at the
    /// word again.
    #[cold]
    pub(crate) fn expire(
        &self,
        table: &Table,
        entry: &Entry,
        word: Word,
        root: &Root,
        pin: Pin<'_>,
    ) -> Result<(), ElderHolds> {
        let settled = self.settle(word)?;
        if settled.state() != State::Live(NonNull::from(root)) {
            return Ok(());
        }
        let word = if planted("expiry_blind_cas") { entry.load() } else { word };
        let seen = root.stamp();
        let stamp = if settled.was_read() { self.draw_stamp_after_reader(seen) } else { self.draw_stamp(seen) };
        let mut tombstone = NewRoot::tombstone();
        tombstone.stamp(stamp);
        let tombstone = tombstone.publish();
        let new = Word::root(tombstone, true).keeping(settled).queued();
        let stripe = if self.wants_expired.get() { EventOrder::stripe(entry.hash) } else { 0 };
        // Held until the event waits with the lock, so that it stands before the events of later commits.
        let mut ordered = self.store.event_order().lock(stripe).next();
        if entry.compare_exchange(word, new).is_err() {
            // SAFETY: published to nobody: the CAS failed.
            drop(unsafe { NewRoot::take_back(tombstone) });
            return Ok(());
        }
        self.statistics().expired_keys.add(1);
        if ordered.is_some() || self.store.records_writes() {
            self.note_expired(table, entry, ordered.as_deref_mut(), pin);
        }
        drop(ordered);
        self.after_delete(table, entry, word, stamp, pin);
        table.count_change(self.index, true, false, true, false);
        pin.retire(Retired::Root(NonNull::from(root)));
        Ok(())
    }

    /// Queues an entry to be unlinked that has just been given a tombstone over `old`, unless it is queued already.
    pub(crate) fn after_delete(&self, table: &Table, entry: &Entry, old: Word, stamp: u64, pin: Pin<'_>) {
        if !old.is_queued() {
            self.mourn(Mourned { table: table.id(), entry: NonNull::from(entry), stamp }, pin);
        }
    }

    /// Waits for or aborts the undecided commit that claims the word, if one does; gives what the word stands for then, with the *queued* bit
    /// that the word has.
    #[inline]
    pub(crate) fn settle(&self, word: Word) -> Result<Word, ElderHolds> {
        match word.state() {
            State::Claimed(_) => self.settle_claim(word),
            _ => Ok(word),
        }
    }

    #[cold]
    fn settle_claim(&self, word: Word) -> Result<Word, ElderHolds> {
        let State::Claimed(claim) = word.state() else { return Ok(word) };
        // SAFETY: the caller read the word of an entry under its pin, so the claim is alive.
        let claim = unsafe { claim.as_ref() };
        let record = claim.record();
        #[allow(clippy::reversed_empty_ranges, reason = "in models the range is empty")]
        for _ in 0..CLAIM_PATIENCE {
            if record.status() != Status::Undecided {
                break;
            }
            spin_loop();
        }
        if record.status() == Status::Undecided {
            if record.is_elder() {
                return if planted("commit_elder_overrun") {
                    Ok(claim.resolve().queued_as(word))
                } else {
                    Err(ElderHolds)
                };
            }
            if record.abort() {
                self.statistics().aborts.add(1);
            }
        }
        Ok(claim.resolve().queued_as(word))
    }

    /// Puts a small table in the place of each one that has grown and holds nothing any more, so that its buckets' memory comes back.
    fn replace_deserted_tables(&self) {
        let deserted = |table: &Table| table.bits() > TABLE_BITS_MIN && table.entries() == 0;
        let any = {
            let section = self.enter();
            (0..self.store.tables.len()).any(|database| deserted(self.store.table(database, section.pin())))
        };
        if any {
            let _gate = self.hold_gate();
            self.replace_tables(|_, table| deserted(table));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let guard = self.handle.pin();
        self.garbage.hand_over(&guard);
        drop(guard);
        let past = &self.statistics().past_attempts;
        past.add(self.last_attempt.get() - past.get());
        // Release: pairs with the Acquire in `register`.
        self.store.workers[self.index].taken.store(false, Ordering::Release);
    }
}

impl<'w> Section<'w> {
    /// The worker.
    pub fn worker(&self) -> &'w Worker {
        self.worker
    }

    /// The clock's reading at the section's beginning.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Proof of being inside.
    #[inline]
    pub fn pin(&self) -> Pin<'_> {
        Pin { guard: &self.guard, worker: self.worker }
    }

    /// Ends the section and begins another (rule 10: every pointer from before is void).
    pub fn renew(&mut self) {
        self.renew_after(|| {});
    }

    /// Ends the section, does something outside any, and begins another.
    pub fn renew_after(&mut self, between: impl FnOnce()) {
        let worker = self.worker;
        worker.end();
        let now = &mut self.now;
        self.guard.repin_after(|| {
            between();
            let gate_stamp = worker.store.gate.enter(worker.index);
            *now = worker.store.clock.now();
            let floor = worker.last_stamp.get().max(gate_stamp).max(now.ticks << STAMP_WORKER_BITS).max(1);
            worker.last_stamp.set(floor);
            worker.store.gate.set_floor(worker.index, floor);
        });
    }
}

impl Drop for GateHeld<'_> {
    fn drop(&mut self) {
        let held = &self.worker.gates_held;
        held.set(held.get() - 1);
        if held.get() == 0 {
            self.worker.open_gate();
        }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.worker.end();
    }
}

impl<'g> Pin<'g> {
    pub(crate) fn worker_index(self) -> usize {
        self.worker.index
    }

    pub(super) fn retire_entry(self, entry: NonNull<Entry>) {
        self.retire(Retired::Entry(entry));
    }

    pub(super) fn count_growth(self) {
        self.worker.statistics().growths.add(1);
    }

    /// Takes what no thread can newly reach.
    #[inline]
    pub(crate) fn retire(self, item: Retired) {
        self.worker.garbage.retire(item, self.guard);
    }

    /// Takes a node that an update has replaced.
    pub(crate) fn retire_node(self, node: NodePtr) {
        self.retire(Retired::Node(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreOptions;

    #[test]
    fn an_attempts_id_is_not_given_again_by_the_next_owner_of_the_slot() {
        let store = Store::new(StoreOptions::default());
        let register = || Worker::register(&store).expect("the slot is free");
        let ids: Vec<_> = (0..3).map(|_| register().next_attempt()).collect();
        assert!(ids[0] != 0 && ids[0] < ids[1] && ids[1] < ids[2], "{ids:?}");
    }
}

//! The commit: one CAS for one key, a multi-word CAS for several, a second look for several that were only read.
//!
//! Invariants (docs/commit-protocol.md argues each)
//! 1. A single-key commit installs its root by one CAS from the very word that the attempt read (loom: `incr_two_threads`,
//!    `incr_three_threads`).
//! 2. A commit over several keys claims every key it read or wrote, in the order of their hashes, from words that still stand for what
//!    it read; so at the moment of its decision its read set is valid (loom: `commit_overlapping_sets`, `commit_read_only_member`).
//! 3. An attempt over several keys that writes nothing succeeds only if all words, looked at again after the last was read, still stand for
//!    what it read (rule 6; loom: `commit_readers_see_all_or_nothing`).
//! 4. Claims do not outlive the commit that made them (rule 17): between the first claim and the last release nothing unwinds.
//!
//! Linearization: the CAS of the word; the CAS of the commit's status; the end of the first collect. Progress: single-key commits lock-free (but
//! on a key that the elder holds), multi-key commits obstruction-free, with the elder against starvation.

use super::transaction::{Opened, Pending, Transaction};
use crate::store::claim::{Claim, Record};
use crate::store::entry::Entry;
use crate::store::garbage::Retired;
use crate::store::table::{Inserted, Table};
use crate::store::word::{State, Word};
use crate::store::worker::ElderHolds;
use crate::store::{Pin, Worker};
use crate::sync::planted;
use crate::types::NewRoot;
use std::ptr::NonNull;

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Its effects are there, and what it read was true at that moment.
    Committed,
    /// Another thread was faster.
    Conflict,
    /// It needs a word that the elder holds.
    ElderHolds,
}

impl From<ElderHolds> for Outcome {
    fn from(_: ElderHolds) -> Self {
        Self::ElderHolds
    }
}

/// Ends the process where commit code unwinds: claims in other threads' view could not be released (rule 17).
struct NoUnwind;

impl Drop for NoUnwind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

impl Transaction<'_> {
    /// Tries to make the attempt's writes visible at one moment at which everything it read is still true.
    pub(super) fn commit(&mut self) -> Outcome {
        if self.elder_holds {
            return Outcome::ElderHolds;
        }
        if self.lost {
            return Outcome::Conflict;
        }
        if self.elder.is_some() {
            return self.commit_as_elder();
        }
        match self.scratch.opened.as_slice() {
            [] => Outcome::Committed,
            // One word is a snapshot by itself.
            [only] if !only.is_changed() => Outcome::Committed,
            [_] => self.commit_one(),
            all if !all.iter().any(Opened::is_changed) => self.validate(),
            _ => self.commit_many(),
        }
    }

    /// The second collect of a read-only attempt over several keys.
    fn validate(&self) -> Outcome {
        if planted("commit_no_second_collect") {
            return Outcome::Committed;
        }
        let pin = self.pin();
        // What a reader would see of a key that came and went if deleted entries did not outlive a grace period: nothing.
        let gone = |word: Word| planted("table_unlinks_early") && !matches!(word.state(), State::Live(_));
        let unchanged = self.scratch.opened.iter().all(|opened| match opened.entry {
            Some(entry) => {
                // SAFETY: found in the table under the pin that still stands.
                let word = unsafe { entry.as_ref() }.load().resolve();
                word.state() == opened.seen.state() || gone(word) && gone(opened.seen)
            }
            // No entry before and none now: a key that came and went meanwhile would have left its tombstone (rule 7).
            None => {
                let table = self.table_of(usize::from(opened.database));
                let entry = table.find(opened.hash, self.key_of(opened), pin);
                entry.is_none_or(|entry| gone(entry.load().resolve()))
            }
        });
        if unchanged { Outcome::Committed } else { Outcome::Conflict }
    }

    /// One key: one CAS, or one insertion.
    fn commit_one(&mut self) -> Outcome {
        let worker = self.section.worker();
        let pin = self.section.pin();
        let opened = &mut self.scratch.opened[0];
        let table = worker.store().table(usize::from(opened.database), pin);
        opened.make_tombstone();
        let Some(entry) = opened.entry else { return self.insert_one() };
        // SAFETY: found in the table under the pin that still stands.
        let entry = unsafe { entry.as_ref() };
        let word = if planted("commit_blind_cas") { entry.load() } else { opened.word };
        let settled = match worker.settle(word) {
            Ok(settled) => settled,
            Err(held) => return held.into(),
        };
        if !settled.means_the_same(opened.seen) && !planted("commit_blind_cas") {
            return Outcome::Conflict;
        }
        let stamp = draw_stamp(worker, stamp_of(opened.seen), settled.was_read());
        let Some(new) = opened.stamped(stamp) else { return self.finish_unseen() };
        let is_tombstone = opened.is_deleted();
        let new = if is_tombstone { new.keeping(settled).queued() } else { new.keeping(settled) };
        if entry.compare_exchange(word, new).is_err() {
            return Outcome::Conflict;
        }
        if is_tombstone {
            worker.after_delete(table, entry, word, stamp, pin);
        }
        settle_accounts(worker, table, entry, opened, pin);
        self.retire_nodes();
        Outcome::Committed
    }

    /// One key that has no entry: the insertion publishes the value.
    fn insert_one(&mut self) -> Outcome {
        let worker = self.section.worker();
        let pin = self.section.pin();
        let stamp = worker.draw_stamp(0);
        let opened = &mut self.scratch.opened[0];
        let Some(word) = opened.stamped(stamp) else { return self.finish_unseen() };
        let opened = &self.scratch.opened[0];
        let table = worker.store().table(usize::from(opened.database), pin);
        match table.insert(opened.hash, self.key_of(opened), word, pin) {
            Inserted::New(entry) => {
                settle_accounts(worker, table, entry, &mut self.scratch.opened[0], pin);
                self.retire_nodes();
                Outcome::Committed
            }
            Inserted::Exists(_) => Outcome::Conflict,
        }
    }

    /// A key that was made and deleted within the attempt: nobody has seen it, but its nodes must go.
    fn finish_unseen(&mut self) -> Outcome {
        self.retire_nodes();
        Outcome::Committed
    }

    /// Several keys, at least one of them changed: claim all, decide, release all.
    fn commit_many(&mut self) -> Outcome {
        let no_unwind = NoUnwind;
        let worker = self.section.worker();
        self.make_placeholders();
        let scratch = &mut *self.scratch;
        let mut order = std::mem::take(&mut scratch.order);
        order.clear();
        order.extend(0..scratch.opened.len() as u32);
        let opened = &scratch.opened;
        // One total order for all commits: by hash, and by address among equal hashes. Of two commits over a common set, the one that claims
        // its first member first has it to itself.
        order.sort_unstable_by_key(|position| {
            let opened = &opened[*position as usize];
            (opened.hash, opened.entry)
        });
        let mut record = Record::new(opened.len(), false);
        let failed = order
            .iter()
            .map(|position| claim(worker, &mut record, &mut scratch.opened[*position as usize]))
            .find(|outcome| *outcome != Outcome::Committed);
        let outcome = match failed {
            None => self.decide(record, &order),
            Some(outcome) => {
                record.abort();
                release(&record);
                self.section.pin().retire(Retired::Record(record));
                outcome
            }
        };
        self.scratch.order = order;
        drop(no_unwind);
        outcome
    }

    /// The elder's commit: everything it opened is claimed already, in the order of opening, and nobody aborts it.
    fn commit_as_elder(&mut self) -> Outcome {
        let no_unwind = NoUnwind;
        let record = self.elder.take().expect("the caller checked");
        for (claim, opened) in record.claims().zip(&mut self.scratch.opened) {
            opened.make_tombstone();
            claim.set_desired(opened.desired(claim.expected));
        }
        let order: Vec<u32> = (0..self.scratch.opened.len() as u32).collect();
        let outcome = self.decide(record, &order);
        self.section.worker().release_elder();
        drop(no_unwind);
        outcome
    }

    /// Decides a commit whose claims stand in the order of `order`, releases its words and settles its accounts.
    fn decide(&mut self, record: Box<Record>, order: &[u32]) -> Outcome {
        let worker = self.section.worker();
        let pin = self.section.pin();
        let opened = &mut self.scratch.opened;
        // Drawn after every word was claimed, so larger than the stamp of each root read or replaced. The roots are reachable through the
        // claims by now, but read by nobody before the decision.
        let seen = opened.iter().map(|opened| stamp_of(opened.seen)).max().unwrap_or(0);
        let stamp = draw_stamp(worker, seen, record.claims().any(|claim| claim.expected.was_read()));
        for one in opened.iter_mut() {
            one.stamped(stamp);
        }
        let queued = queue_abandoned(&record);
        if planted("commit_early_release") {
            release(&record);
        }
        let committed = record.commit();
        worker.statistics().multi_commits.add(u64::from(committed));
        release(&record);
        // In the order of the claims, so that one pass over both finds them.
        let mut queued = queued.iter().peekable();
        for (claim, position) in record.claims().zip(order) {
            let opened = &mut opened[*position as usize];
            let table = worker.store().table(usize::from(opened.database), pin);
            // SAFETY: the claim's entry was found in the table under the pin that still stands.
            let entry = unsafe { claim.entry.as_ref() };
            if queued.next_if(|one| **one == NonNull::from(claim)).is_some() {
                worker.after_delete(table, entry, Word::VACANT, if committed { stamp } else { 0 }, pin);
            }
            if committed {
                settle_accounts(worker, table, entry, opened, pin);
            }
        }
        pin.retire(Retired::Record(record));
        if !committed {
            return Outcome::Conflict;
        }
        self.retire_nodes();
        Outcome::Committed
    }

    /// Gives every opened key an entry, so that its absence can be claimed too (rule 7: only attempts that write do this).
    fn make_placeholders(&mut self) {
        let worker = self.section.worker();
        for position in 0..self.scratch.opened.len() {
            let opened = &self.scratch.opened[position];
            if opened.entry.is_some() {
                continue;
            }
            let pin = self.section.pin();
            let table = worker.store().table(usize::from(opened.database), pin);
            let entry = placeholder(worker, table, opened.hash, self.key_of(opened), pin);
            let (entry, word) = (NonNull::from(entry), entry.load());
            let opened = &mut self.scratch.opened[position];
            opened.entry = Some(entry);
            // Where somebody else has given the key a value meanwhile, claiming finds that it is not what was read.
            opened.word = word;
        }
    }

    /// Claims a key's word for the elder as soon as it is read; gives the claimed word, or `None` where the key must be read again.
    pub(super) fn claim_as_elder(&mut self, entry: NonNull<Entry>, word: Word) -> Option<Word> {
        let worker = self.section.worker();
        // There is one elder, and it is this transaction: no other claim makes it wait.
        let expected = worker.settle(word).ok()?;
        let record = self.elder.as_mut()?;
        let claim = record.add(entry, expected, expected);
        // SAFETY: found in the table under the pin that still stands.
        let entry = unsafe { entry.as_ref() };
        if entry.compare_exchange(word, Word::claimed(claim).keeping(word)).is_err() {
            record.remove_last();
            return None;
        }
        Some(word)
    }

    /// Releases what the elder has claimed to what it found, after an attempt that came to nothing.
    pub(super) fn release_elder_claims(&mut self) {
        if let Some(record) = self.elder.as_mut() {
            let record = std::mem::replace(record, Record::new(1, true));
            record.abort();
            release(&record);
            self.section.pin().retire(Retired::Record(record));
        }
    }

    /// After success: what the attempt's trees replaced, and whole trees it overwrote, wait for their grace period.
    #[inline]
    fn retire_nodes(&mut self) {
        let pin = self.section.pin();
        let scratch = &mut *self.scratch;
        for node in scratch.attempt.succeed() {
            pin.retire_node(node);
        }
        for tree in scratch.abandoned.drain(..) {
            pin.retire(Retired::Root(tree.publish()));
        }
    }
}

/// The key's entry, made without a value where there is none, and then queued to be unlinked in case nobody gives it one.
pub(super) fn placeholder<'g>(worker: &Worker, table: &'g Table, hash: u64, key: &[u8], pin: Pin<'g>) -> &'g Entry {
    match table.insert(hash, key, Word::VACANT.queued(), pin) {
        Inserted::Exists(entry) => entry,
        Inserted::New(entry) => {
            worker.after_delete(table, entry, Word::VACANT, 0, pin);
            entry
        }
    }
}

/// Claims one key's word, if it still stands for what was read.
fn claim(worker: &Worker, record: &mut Record, opened: &mut Opened) -> Outcome {
    opened.make_tombstone();
    let entry_pointer = opened.entry.expect("placeholders were made");
    // SAFETY: found in the table under the pin that still stands.
    let entry = unsafe { entry_pointer.as_ref() };
    loop {
        let word = entry.load();
        let expected = match worker.settle(word) {
            Ok(settled) => settled,
            Err(held) => return held.into(),
        };
        if !expected.means_the_same(opened.seen) && !planted("commit_claims_unchecked") {
            return Outcome::Conflict;
        }
        let claim = record.add(entry_pointer, expected, opened.desired(expected));
        if entry.compare_exchange(word, Word::claimed(claim).keeping(word)).is_ok() {
            return Outcome::Committed;
        }
        // Somebody changed the word, or only its tag or flags: look again. Ends because each round means another's progress.
        record.remove_last();
    }
}

/// Takes a decided commit's claims off their words, but where another thread has already put its own word in the place.
fn release(record: &Record) {
    for claim in record.claims() {
        // SAFETY: entries of claims were found in the table under the pin that still stands.
        let entry = unsafe { claim.entry.as_ref() };
        release_one(entry, claim);
    }
}

fn release_one(entry: &Entry, claim: &Claim) {
    let left = claim.resolve();
    loop {
        let word = entry.load();
        if word.state() != State::Claimed(NonNull::from(claim))
            || entry.compare_exchange(word, left.queued_as(word)).is_ok()
        {
            return;
        }
        // Only the queued bit can have changed, or another thread has replaced the claim: both are seen in the next round.
    }
}

/// Gives the claimed words that are to be left without value and hook their *queued* bit, before anybody else can put a word in the claim's place;
/// the caller queues the entries of these claims whatever comes of the commit.
fn queue_abandoned(record: &Record) -> smallvec::SmallVec<[NonNull<Claim>; 8]> {
    let mut queued = smallvec::SmallVec::new();
    for claim in record.claims() {
        let is_kept = |word: Word| word.is_hooked() || matches!(word.state(), State::Live(_));
        if is_kept(claim.desired()) || !is_kept(claim.expected) {
            continue;
        }
        // SAFETY: entries of claims were found in the table under the pin that still stands.
        let entry = unsafe { claim.entry.as_ref() };
        loop {
            let word = entry.load();
            if word.is_queued() || word.state() != State::Claimed(NonNull::from(claim)) {
                break;
            }
            if entry.compare_exchange(word, word.queued()).is_ok() {
                queued.push(NonNull::from(claim));
                break;
            }
        }
    }
    queued
}

/// Draws a commit's stamp, larger than `seen`; `was_read` where another commit has read one of its words since.
#[inline]
fn draw_stamp(worker: &Worker, seen: u64, was_read: bool) -> u64 {
    if was_read { worker.draw_stamp_after_reader(seen) } else { worker.draw_stamp(seen) }
}

/// The stamp of a resolved word's root.
#[inline]
fn stamp_of(word: Word) -> u64 {
    // SAFETY: the word was read under the pin that still stands.
    word.root_pointer().map_or(0, |root| unsafe { root.as_ref() }.stamp())
}

/// After a key has changed: gives the new root away, retires the old one, counts, and files the new deadline.
#[inline]
fn settle_accounts(worker: &Worker, table: &Table, entry: &Entry, opened: &mut Opened, pin: Pin<'_>) {
    let after = match std::mem::replace(&mut opened.pending, Pending::Unchanged) {
        Pending::Value(root) | Pending::Tombstone(root) => root.publish(),
        Pending::Unchanged | Pending::Deleted => return,
    };
    // SAFETY: published by this commit, and pinned since.
    let after = unsafe { after.as_ref() };
    let before = opened.seen.root_pointer();
    // SAFETY: read under the pin that still stands.
    let before_root = before.map(|root| unsafe { root.as_ref() });
    let was_live = before_root.is_some_and(|root| !root.is_tombstone());
    let did_expire = before_root.is_some_and(|root| root.expiry_ms().is_some());
    let deadline = after.expiry_ms();
    table.count_change(pin.worker_index(), was_live, !after.is_tombstone(), did_expire, deadline.is_some());
    if let Some(deadline_ms) = deadline {
        worker.note_deadline(table, entry, deadline_ms);
    }
    if let Some(root) = before {
        pin.retire(if opened.shares_nodes { Retired::Header(root) } else { Retired::Root(root) });
    }
}

impl Opened {
    /// Makes the tombstone that a deletion installs. A key that had no value and was given one in this very attempt has not changed, but for those who
    /// want to hear of it.
    fn make_tombstone(&mut self) {
        if let Pending::Deleted = self.pending {
            self.pending = match self.seen_root() {
                None if !self.hooked => Pending::Unchanged,
                _ => Pending::Tombstone(NewRoot::tombstone()),
            };
        }
    }

    fn is_deleted(&self) -> bool {
        matches!(self.pending, Pending::Tombstone(_))
    }

    /// Stamps the new root; gives the word for it, or `None` where there is no change.
    fn stamped(&mut self, stamp: u64) -> Option<Word> {
        match &mut self.pending {
            Pending::Value(root) | Pending::Tombstone(root) => {
                root.stamp(stamp);
                let is_tombstone = root.root().is_tombstone();
                Some(Word::root(root.address(), is_tombstone))
            }
            Pending::Unchanged | Pending::Deleted => None,
        }
    }

    /// The word that a multi-word commit leaves where it found `expected`.
    fn desired(&self, expected: Word) -> Word {
        let word = match &self.pending {
            Pending::Value(root) => Word::root(root.address(), false).keeping(expected),
            Pending::Tombstone(root) => Word::root(root.address(), true).keeping(expected),
            Pending::Unchanged | Pending::Deleted if planted("commit_no_tag") => expected,
            // Rule 5: a CAS prepared before the claim must fail.
            Pending::Unchanged | Pending::Deleted => expected.next_tag(),
        };
        word.with_hook(self.hooked)
    }
}

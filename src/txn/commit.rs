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
use crate::types::{NewRoot, Root};
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

/// What one changed key was, and what it has become.
struct Change {
    /// The word that was replaced, resolved.
    before: Word,
    /// The new root; `None` where the key was absent and stays so.
    after: Option<NonNull<Root>>,
}

impl Transaction<'_> {
    /// Tries to make the attempt's writes visible at one moment at which everything it read is still true.
    pub(super) fn commit(&mut self) -> Outcome {
        if self.elder_holds {
            return Outcome::ElderHolds;
        }
        if self.elder.is_some() {
            return self.commit_as_elder();
        }
        match self.scratch.opened.as_slice() {
            [] => Outcome::Committed,
            // One word is a snapshot by itself.
            [only] if !only.is_changed() => Outcome::Committed,
            [_] => self.commit_one(),
            all if all.iter().all(|opened| !opened.is_changed()) => self.validate(),
            _ => self.commit_many(),
        }
    }

    /// The second collect of a read-only attempt over several keys.
    fn validate(&self) -> Outcome {
        if planted("commit_no_second_collect") {
            return Outcome::Committed;
        }
        let pin = self.pin();
        let unchanged = self.scratch.opened.iter().all(|opened| match opened.entry {
            // SAFETY: found in the table under the pin that still stands.
            Some(entry) => unsafe { entry.as_ref() }.load().resolve().state() == opened.seen.state(),
            // No entry before and none now: a key that came and went meanwhile would have left its tombstone (rule 7).
            None => {
                let table = self.table_of(usize::from(opened.database));
                table.find(opened.hash, self.key_of(opened), pin).is_none()
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
        let Some(entry) = opened.entry else { return self.insert_one() };
        // SAFETY: found in the table under the pin that still stands.
        let entry = unsafe { entry.as_ref() };
        let word = if planted("commit_blind_cas") { entry.load() } else { opened.word };
        match worker.settle(word) {
            Ok(settled) if settled.state() == opened.seen.state() || planted("commit_blind_cas") => {}
            Ok(_) => return Outcome::Conflict,
            Err(held) => return held.into(),
        }
        if opened.seen_root().is_none() && !matches!(opened.pending, Pending::Value(_)) {
            return Outcome::Committed;
        }
        let stamp = worker.draw_stamp(stamp_of(opened.seen));
        let (root, is_tombstone) = new_root(&mut opened.pending, stamp);
        let mut new = Word::root(root, is_tombstone).keeping(word);
        if is_tombstone {
            new = new.queued();
        }
        if entry.compare_exchange(word, new).is_err() {
            // SAFETY: published to nobody: the CAS failed.
            opened.pending = unsafe { give_back(root, is_tombstone) };
            return Outcome::Conflict;
        }
        let change = Change { before: opened.seen, after: Some(root) };
        let shares_nodes = opened.shares_nodes;
        if is_tombstone {
            worker.after_delete(table, entry, word, stamp, pin);
        }
        settle_accounts(worker, table, entry, &change, shares_nodes, pin);
        self.retire_nodes();
        Outcome::Committed
    }

    /// One key that has no entry: the insertion publishes the value.
    fn insert_one(&mut self) -> Outcome {
        let opened = &mut self.scratch.opened[0];
        if !matches!(opened.pending, Pending::Value(_)) {
            return Outcome::Committed;
        }
        let worker = self.section.worker();
        let pin = self.section.pin();
        let table = worker.store().table(usize::from(opened.database), pin);
        let stamp = worker.draw_stamp(0);
        let (root, _) = new_root(&mut opened.pending, stamp);
        let opened = &self.scratch.opened[0];
        match table.insert(opened.hash, self.key_of(opened), Word::root(root, false), pin) {
            Inserted::New(entry) => {
                let change = Change { before: Word::VACANT, after: Some(root) };
                settle_accounts(worker, table, entry, &change, false, pin);
                self.retire_nodes();
                Outcome::Committed
            }
            Inserted::Exists(_) => {
                // SAFETY: published to nobody: the insertion was refused.
                self.scratch.opened[0].pending = unsafe { give_back(root, false) };
                Outcome::Conflict
            }
        }
    }

    /// Several keys, at least one of them changed: claim all, decide, release all.
    fn commit_many(&mut self) -> Outcome {
        let no_unwind = NoUnwind;
        let worker = self.section.worker();
        self.make_placeholders();
        let scratch = &mut *self.scratch;
        scratch.order.clear();
        scratch.order.extend(0..scratch.opened.len() as u32);
        let opened = &scratch.opened;
        // One total order for all commits: by hash, and by address among equal hashes. Of two commits over a common set, the one that claims
        // its first member first has it to itself.
        scratch.order.sort_unstable_by_key(|position| {
            let opened = &opened[*position as usize];
            (opened.hash, opened.entry)
        });
        let mut record = Record::new(opened.len(), false);
        let mut outcome = Outcome::Committed;
        for position in &scratch.order {
            outcome = claim(worker, &mut record, &opened[*position as usize]);
            if outcome != Outcome::Committed {
                break;
            }
        }
        if outcome == Outcome::Committed {
            let positions: Vec<u32> = self.scratch.order.clone();
            outcome = self.decide(record, &positions);
        } else {
            record.abort();
            release(&record);
            self.section.pin().retire(Retired::Record(record));
        }
        drop(no_unwind);
        outcome
    }

    /// The elder's commit: everything it opened is claimed already, and nobody aborts it.
    fn commit_as_elder(&mut self) -> Outcome {
        let no_unwind = NoUnwind;
        let record = self.elder.take().expect("the caller checked");
        let positions: Vec<u32> = (0..self.scratch.opened.len() as u32).collect();
        let outcome = self.decide(record, &positions);
        self.section.worker().release_elder();
        drop(no_unwind);
        outcome
    }

    /// Decides a commit whose claims stand in the order of `positions`, releases its words and settles its accounts.
    fn decide(&mut self, record: Box<Record>, positions: &[u32]) -> Outcome {
        let worker = self.section.worker();
        let pin = self.section.pin();
        // Drawn after every word was claimed, so larger than the stamp of each root read or replaced.
        let seen = self.scratch.opened.iter().map(|opened| stamp_of(opened.seen)).max().unwrap_or(0);
        let stamp = worker.draw_stamp(seen);
        let mut changes: smallvec::SmallVec<[(u32, Change); 16]> = smallvec::SmallVec::new();
        for (claim, position) in record.claims().zip(positions) {
            let opened = &mut self.scratch.opened[*position as usize];
            let before = opened.seen;
            let after = match (&opened.pending, opened.seen_root()) {
                (Pending::Unchanged, _) | (Pending::Deleted, None) => None,
                _ => Some(new_root(&mut opened.pending, stamp)),
            };
            match after {
                Some((root, is_tombstone)) => claim.set_desired(Word::root(root, is_tombstone).keeping(claim.expected)),
                None if planted("commit_no_tag") => {}
                // Rule 5: a CAS prepared before the claim must fail.
                None => claim.set_desired(claim.expected.next_tag()),
            }
            changes.push((*position, Change { before, after: after.map(|(root, _)| root) }));
        }
        let queued = queue_deletions(&record);
        if planted("commit_early_release") {
            release(&record);
        }
        let committed = record.commit();
        for (claim, position) in record.claims().zip(positions) {
            if queued.contains(&NonNull::from(claim)) {
                let opened = &self.scratch.opened[*position as usize];
                let table = worker.store().table(usize::from(opened.database), pin);
                // SAFETY: the claim's entry was found in the table under the pin that still stands.
                let entry = unsafe { claim.entry.as_ref() };
                worker.after_delete(table, entry, Word::VACANT, if committed { stamp } else { 0 }, pin);
            }
        }
        if !committed {
            release(&record);
            pin.retire(Retired::Record(record));
            for (position, change) in changes {
                if let Some(root) = change.after {
                    // SAFETY: visible to nobody: the commit was aborted, so its desired words were never resolved.
                    let is_tombstone = unsafe { root.as_ref() }.is_tombstone();
                    // SAFETY: as above.
                    self.scratch.opened[position as usize].pending = unsafe { give_back(root, is_tombstone) };
                }
            }
            return Outcome::Conflict;
        }
        worker.statistics().multi_commits.add(1);
        release(&record);
        for (claim, (position, change)) in record.claims().zip(&changes) {
            let opened = &self.scratch.opened[*position as usize];
            let table = worker.store().table(usize::from(opened.database), pin);
            // SAFETY: found in the table under the pin that still stands.
            let entry = unsafe { claim.entry.as_ref() };
            if change.after.is_some() {
                settle_accounts(worker, table, entry, change, opened.shares_nodes, pin);
            }
        }
        pin.retire(Retired::Record(record));
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
        let settled = worker.settle(word).ok()?;
        let record = self.elder.as_mut()?;
        let claim = record.add(entry, settled.keeping(word));
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
fn claim(worker: &Worker, record: &mut Record, opened: &Opened) -> Outcome {
    let entry_pointer = opened.entry.expect("placeholders were made");
    // SAFETY: found in the table under the pin that still stands.
    let entry = unsafe { entry_pointer.as_ref() };
    loop {
        let word = entry.load();
        let settled = match worker.settle(word) {
            Ok(settled) => settled,
            Err(held) => return held.into(),
        };
        if settled.state() != opened.seen.state() && !planted("commit_claims_unchecked") {
            return Outcome::Conflict;
        }
        let claim = record.add(entry_pointer, settled.keeping(word));
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
            || entry.compare_exchange(word, left.keeping(word)).is_ok()
        {
            return;
        }
        // Only the hooked bit can have changed, or another thread has replaced the claim: both are seen in the next round.
    }
}

/// Gives the claimed words of keys to be deleted their *queued* bit, before anybody else can put a word in the claim's place; the caller queues
/// the entries of these claims whatever comes of the commit.
fn queue_deletions(record: &Record) -> smallvec::SmallVec<[NonNull<Claim>; 8]> {
    let mut queued = smallvec::SmallVec::new();
    for claim in record.claims() {
        let deletes =
            matches!(claim.desired().state(), State::Tombstone(_)) && matches!(claim.expected.state(), State::Live(_));
        if !deletes {
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

/// The root that a key is to be left with, stamped and given away, and whether it is a tombstone.
#[inline]
fn new_root(pending: &mut Pending, stamp: u64) -> (NonNull<Root>, bool) {
    let (mut root, is_tombstone) = match std::mem::replace(pending, Pending::Unchanged) {
        Pending::Value(value) => (value, false),
        Pending::Deleted | Pending::Unchanged => (NewRoot::tombstone(), true),
    };
    root.stamp(stamp);
    (root.publish(), is_tombstone)
}

/// Makes a root pending again that could not be installed.
///
/// # Safety
/// Nobody else has seen the root.
unsafe fn give_back(root: NonNull<Root>, is_tombstone: bool) -> Pending {
    // SAFETY: the caller's promise.
    let root = unsafe { NewRoot::take_back(root) };
    if is_tombstone { Pending::Deleted } else { Pending::Value(root) }
}

/// The stamp of a resolved word's root.
#[inline]
fn stamp_of(word: Word) -> u64 {
    // SAFETY: the word was read under the pin that still stands.
    word.root_pointer().map_or(0, |root| unsafe { root.as_ref() }.stamp())
}

/// After a key has changed: retires the old root, counts, and files the new deadline.
#[inline]
fn settle_accounts(worker: &Worker, table: &Table, entry: &Entry, change: &Change, shares_nodes: bool, pin: Pin<'_>) {
    let Some(after) = change.after else { return };
    // SAFETY: published by this commit, and pinned since.
    let after = unsafe { after.as_ref() };
    let before = change.before.root_pointer();
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
        pin.retire(if shares_nodes { Retired::Header(root) } else { Retired::Root(root) });
    }
}

//! What a command sees of the keyspace: a read set of entries with the roots seen, and a write set of roots to install.
//!
//! A command opens keys, reads roots, and leaves new roots; it does nothing else. [`Transaction::run`] runs it, commits, and runs it again
//! when another thread was faster. The commit itself is in `commit.rs`.

use super::commit::Outcome;
use super::limits::RuntimeLimits;
use crate::clock::Moment;
use crate::limits::{LOST_ATTEMPTS_BEFORE_ELDER, SCRATCH_KEY_BYTES_KEPT, SCRATCH_KEYS_KEPT};
use crate::store::claim::Record;
use crate::store::entry::Entry;
use crate::store::events::{EventClass, EventOrder, Events};
use crate::store::table::Table;
use crate::store::word::{State, Word};
use crate::store::worker::ElderHolds;
use crate::store::{Pin, Section, Worker};
use crate::sync::planted;
use crate::types::{Attempt, NewRoot, Root};
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::MutexGuard;

/// A key opened by this attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyId(pub(crate) u32);

/// What the attempt wants to leave in a key.
#[derive(Debug)]
pub(super) enum Pending {
    /// Nothing else than what is there.
    Unchanged,
    /// This value.
    Value(NewRoot),
    /// No value.
    Deleted,
    /// No value, and the tombstone that says so: what the commit makes of `Deleted`.
    Tombstone(NewRoot),
}

/// One key that the attempt has opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) hash: u64,
    key: (u32, u32),
    pub(super) database: u16,
    /// The seen root's nodes live on, in the pending root or in one moved to another key: only its header is retired.
    pub(super) shares_nodes: bool,
    pub(super) pending: Pending,
    pub(super) entry: Option<NonNull<Entry>>,
    /// The word as it was read; what a CAS expects.
    pub(super) word: Word,
    /// What the word stood for; what validation compares.
    pub(super) seen: Word,
    /// Whether the key's word is to have its *hooked* bit; a change needs another changed key in the same attempt.
    pub(super) hooked: bool,
}

impl Opened {
    /// The value that was there.
    pub(super) fn seen_root(&self) -> Option<NonNull<Root>> {
        match self.seen.state() {
            State::Live(root) => Some(root),
            _ => None,
        }
    }

    /// Whether its word is to change.
    pub(super) fn is_changed(&self) -> bool {
        !matches!(self.pending, Pending::Unchanged) || self.hooked != self.seen.is_hooked()
    }

    /// Whether its value is to change.
    pub(super) fn is_written(&self) -> bool {
        !matches!(self.pending, Pending::Unchanged)
    }
}

/// What a command asks for that has found nothing: to be run again when one of its keys has a value of the right type, or to give up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The positions of its keys among its arguments.
    pub keys: std::ops::Range<usize>,
    /// How long it waits at most, in milliseconds; for ever where `None`.
    pub timeout_ms: Option<u64>,
    /// What it answers when it gives up.
    pub otherwise: Otherwise,
}

/// What a command answers that has waited in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// The null of an array.
    NullArray,
    /// Zero.
    Zero,
}

/// Memory that transactions of one thread use again and again.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(super) opened: Vec<Opened>,
    /// The opened keys' bytes, one after the other.
    keys: Vec<u8>,
    /// Open addressing from hash to position in `opened`, used once there are more than [`LINEAR_SEARCH_MAX`].
    index: Vec<u32>,
    pub(super) attempt: Attempt,
    /// Trees that were pending and then overwritten in the same attempt.
    pub(super) abandoned: Vec<NewRoot>,
    pub(super) order: Vec<u32>,
    events: Events,
    /// The stripes of the events' keys.
    event_stripes: u64,
    /// The keys that were written, while somebody wants to know of them.
    written: Events,
    /// Whether somebody wants to hear of one of the opened keys.
    any_hooked: bool,
    /// Clients that this attempt has something for.
    wakes: Vec<u64>,
    hits: u64,
    misses: u64,
}

/// The event of a key that did not exist before.
const NEW_KEY: &str = "new";

/// Opened keys up to which a key is looked for one by one.
const LINEAR_SEARCH_MAX: usize = 8;

/// One attempt of a command (or of a whole EXEC or script), within one section.
pub struct Transaction<'w> {
    pub(super) section: Section<'w>,
    pub(super) scratch: &'w mut Scratch,
    database: usize,
    limits: RuntimeLimits,
    /// The elder's commit, which claims each key as it is opened.
    pub(super) elder: Option<Box<Record>>,
    /// An opened key could not be read because the elder holds it: the attempt is void.
    pub(super) elder_holds: bool,
    /// A hash computed ahead of the command, with the place of the key's bytes.
    hint: Option<(*const [u8], u64)>,
    may_wait: bool,
    wait: Option<Wait>,
    /// The attempt's one reading of the clock (rule 9), also of an attempt that outlives its section.
    now: Moment,
    /// Something that the attempt has read is not true any more: it is void.
    pub(super) lost: bool,
    /// The locks of the events' stripes, from before the commit until the events are published.
    ordered: SmallVec<[MutexGuard<'w, Events>; 2]>,
}

/// Something that the attempt has read has changed: it is void and will be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl<'w> Transaction<'w> {
    /// Begins a section on `worker`; commands run in `database` under these settings.
    pub fn new(worker: &'w Worker, scratch: &'w mut Scratch, database: usize, limits: RuntimeLimits) -> Self {
        let section = worker.enter();
        debug_assert!(scratch.opened.is_empty());
        let now = section.now();
        Self {
            section,
            scratch,
            database,
            limits,
            elder: None,
            elder_holds: false,
            hint: None,
            may_wait: false,
            wait: None,
            now,
            lost: false,
            ordered: SmallVec::new(),
        }
    }

    /// Runs `step` and commits what it left, again and again until the commit succeeds. `step` is pure but for the transaction and what it
    /// resets itself: it may run many times. Nothing of its result may be shown to anybody before this returns.
    ///
    /// Ends because a lost attempt means that another thread's commit succeeded or aborted this one, and after some losses
    /// the transaction becomes the elder, which loses to nobody.
    #[inline]
    pub fn run<T>(&mut self, mut step: impl FnMut(&mut Self) -> T) -> T {
        let mut lost = 0;
        loop {
            self.begin();
            let result = step(self);
            // In the section that commits: see `Store::record_writes`.
            if self.section.worker().store().records_writes() {
                self.record_writes();
            }
            if !self.scratch.events.is_empty() {
                self.order_events();
            }
            match self.commit() {
                Outcome::Committed => {
                    self.finish();
                    return result;
                }
                outcome => {
                    self.ordered.clear();
                    self.prepare_retry(outcome, &mut lost);
                }
            }
        }
    }

    /// Takes the locks that keep the attempt's events behind those of earlier commits and before those of later ones.
    #[cold]
    fn order_events(&mut self) {
        let store = self.section.worker().store();
        self.ordered.extend(store.event_order().lock(self.scratch.event_stripes));
    }

    #[inline]
    fn begin(&mut self) {
        self.now = self.section.now();
        self.ordered.clear();
        let attempt = self.section.worker().next_attempt();
        self.scratch.attempt.begin(attempt);
    }

    /// After a successful commit: counts, and forgets the read and write sets.
    #[inline]
    fn finish(&mut self) {
        debug_assert!(self.elder.is_none());
        if planted("budget_shared_write") {
            self.section.worker().release_elder();
        }
        let statistics = self.section.worker().statistics();
        if self.scratch.hits != 0 {
            statistics.keyspace_hits.add(self.scratch.hits);
        }
        if self.scratch.misses != 0 {
            statistics.keyspace_misses.add(self.scratch.misses);
        }
        self.clear();
    }

    /// Records the keys of which the commit is to change the values, of databases that clients can select.
    #[cold]
    fn record_writes(&mut self) {
        let databases = self.databases();
        let scratch = &mut *self.scratch;
        for opened in scratch.opened.iter().filter(|opened| opened.is_written()) {
            let (from, length) = opened.key;
            if usize::from(opened.database) < databases {
                let key = &scratch.keys[from as usize..][..length as usize];
                scratch.written.add("written", opened.database.into(), key);
            }
        }
    }

    #[inline]
    fn clear(&mut self) {
        let scratch = &mut *self.scratch;
        if scratch.opened.len() > LINEAR_SEARCH_MAX {
            scratch.index.clear();
        }
        scratch.opened.clear();
        scratch.keys.clear();
        scratch.any_hooked = false;
        scratch.hits = 0;
        scratch.misses = 0;
        self.hint = None;
    }

    /// Undoes an attempt: frees what it made and nothing that it shares (rule 2).
    fn undo(&mut self) {
        self.release_elder_claims();
        self.elder_holds = false;
        self.scratch.events.clear();
        self.scratch.event_stripes = 0;
        self.scratch.written.clear();
        self.lost = false;
        self.clear();
        self.wait = None;
        self.scratch.wakes.clear();
        self.scratch.abandoned.clear();
        self.scratch.attempt.fail();
    }

    /// Forgets all that this attempt has read and wants to write; what it does from here on begins anew.
    pub fn abandon(&mut self) {
        self.undo();
    }

    /// Whether the attempt cannot commit any more, so that what it sees means nothing.
    #[inline]
    pub fn is_void(&self) -> bool {
        self.elder_holds || self.lost
    }

    /// How many keys the attempt has opened.
    pub fn opened_count(&self) -> usize {
        self.scratch.opened.len()
    }

    /// Makes the transaction to come the elder, if there is none. Models and tests call it; a server's transactions become elders by losing.
    pub fn become_elder(&mut self) -> bool {
        let taken = self.elder.is_none() && self.section.worker().take_elder();
        if taken {
            self.elder = Some(Record::new(LINEAR_SEARCH_MAX, true));
        }
        taken
    }

    #[cold]
    fn prepare_retry(&mut self, outcome: Outcome, lost: &mut u32) {
        let worker = self.section.worker();
        worker.statistics().conflicts.add(1);
        self.undo();
        *lost += 1;
        match outcome {
            // Unpinned and idle while the elder works, so that neither garbage nor the gate waits for it.
            Outcome::ElderHolds => self.section.renew_after(|| worker.wait_for_elder()),
            Outcome::Conflict if *lost >= LOST_ATTEMPTS_BEFORE_ELDER => {
                self.become_elder();
            }
            _ => {}
        }
    }

    /// In the middle of a long attempt, between two of its steps: ends the section and begins another, so that neither garbage nor the gate's holder
    /// waits for the attempt's end, and looks up again what the attempt has read (rules 8, 10 and 12). O(n) with n the keys opened.
    ///
    /// What is pending stays: a root that still has its stamp has been in place all the while, with all its nodes.
    ///
    /// # Errors
    /// If something has changed: the attempt is void, and its steps must come to an end.
    pub fn breathe(&mut self) -> Result<(), Lost> {
        let is_elder = self.elder.is_some();
        // Claims must not outlive the section: whoever has the gate may put another table in the place of this one.
        self.release_elder_claims();
        let stamps: Vec<(u64, Word)> =
            (0u32..).zip(&self.scratch.opened).map(|(id, opened)| (self.seen_stamp(KeyId(id)), opened.seen)).collect();
        self.section.renew();
        debug_assert_eq!(is_elder, self.elder.is_some());
        for (position, (stamp, before)) in stamps.into_iter().enumerate() {
            let opened = &self.scratch.opened[position];
            let (database, hash) = (usize::from(opened.database), opened.hash);
            let key = self.key_of(opened).to_vec();
            let Ok((entry, word, seen)) = self.read(database, hash, &key) else {
                self.elder_holds = true;
                return Err(Lost);
            };
            let opened = &mut self.scratch.opened[position];
            (opened.entry, opened.word, opened.seen) = (entry, word, seen);
            let is_same = matches!(before.state(), State::Live(_)) == matches!(seen.state(), State::Live(_))
                && before.is_hooked() == seen.is_hooked();
            let is_lost = !is_same || self.seen_stamp(KeyId(position as u32)) != stamp;
            if is_lost && !planted("commit_breath_unchecked") {
                self.lost = true;
                return Err(Lost);
            }
        }
        Ok(())
    }

    /// Whether somebody waits for this attempt's section to end.
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.section.worker().is_gate_wanted()
    }

    /// Ends the section and begins another between two commands (rule 10), so that garbage is freed and the gate's holder does not wait
    /// long.
    pub fn renew(&mut self) {
        debug_assert!(self.scratch.opened.is_empty() && self.elder.is_none());
        self.section.renew();
    }

    /// The settings that commands obey.
    #[inline]
    pub fn limits(&self) -> RuntimeLimits {
        self.limits
    }

    /// The attempt's one reading of the wall clock, in milliseconds of Unix time (rule 9).
    #[inline]
    pub fn now_ms(&self) -> i64 {
        self.now.unix_ms
    }

    /// The client's database.
    #[inline]
    pub fn database(&self) -> usize {
        self.database
    }

    /// Sets the client's database for the commands to come.
    pub fn select(&mut self, database: usize) {
        debug_assert!(database < self.databases());
        self.database = database;
    }

    /// How often a database has been exchanged for another.
    pub fn swaps_of(&self, database: usize) -> u64 {
        self.section.worker().store().swaps(database)
    }

    /// Number of databases.
    pub fn databases(&self) -> usize {
        self.section.worker().store().databases()
    }

    /// The database's table, for prefetching.
    #[inline]
    pub fn table(&self) -> &Table {
        self.table_of(self.database)
    }

    /// Proof of being inside a section.
    #[inline]
    pub fn pin(&self) -> Pin<'_> {
        self.section.pin()
    }

    #[inline]
    pub(super) fn table_of(&self, database: usize) -> &Table {
        self.section.worker().store().table(database, self.section.pin())
    }

    /// Gives the hash of a key that the next command will open, if it is the very same slice.
    #[inline]
    pub fn hint(&mut self, key: &[u8], hash: u64) {
        self.hint = Some((std::ptr::from_ref(key), hash));
    }

    /// Opens a key of the client's database. The same key always gives the same id. An expired value is deleted first.
    #[inline]
    pub fn open(&mut self, key: &[u8]) -> KeyId {
        self.open_in(self.database, key)
    }

    /// Opens a key of another database, `database < self.databases()`, or of the internal one.
    #[inline]
    pub fn open_in(&mut self, database: usize, key: &[u8]) -> KeyId {
        let hash = match self.hint {
            Some((place, hash)) if std::ptr::eq(place, key) => hash,
            _ => self.section.worker().store().hash(key),
        };
        let position = self.scratch.opened.len();
        if position > 0
            && let Some(known) = self.find_opened(database, hash, key)
        {
            return known;
        }
        let (entry, word, seen) = match self.read(database, hash, key) {
            Ok(read) => read,
            Err(ElderHolds) => {
                self.elder_holds = true;
                (None, Word::VACANT, Word::VACANT)
            }
        };
        let from = self.scratch.keys.len() as u32;
        self.scratch.keys.extend_from_slice(key);
        self.scratch.opened.push(Opened {
            hash,
            key: (from, key.len() as u32),
            database: database as u16,
            shares_nodes: false,
            pending: Pending::Unchanged,
            entry,
            word,
            seen,
            hooked: seen.is_hooked(),
        });
        self.scratch.any_hooked |= seen.is_hooked();
        if position >= LINEAR_SEARCH_MAX {
            self.add_to_index();
        }
        KeyId(position as u32)
    }

    pub(super) fn key_of(&self, opened: &Opened) -> &[u8] {
        let (from, length) = opened.key;
        &self.scratch.keys[from as usize..][..length as usize]
    }

    fn find_opened(&self, database: usize, hash: u64, key: &[u8]) -> Option<KeyId> {
        let scratch = &*self.scratch;
        let is_it = |opened: &Opened| {
            opened.hash == hash && usize::from(opened.database) == database && self.key_of(opened) == key
        };
        if scratch.opened.len() <= LINEAR_SEARCH_MAX {
            return scratch.opened.iter().position(is_it).map(|position| KeyId(position as u32));
        }
        let mask = scratch.index.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match scratch.index[place] {
                0 => return None,
                found if is_it(&scratch.opened[found as usize - 1]) => return Some(KeyId(found - 1)),
                _ => place = (place + 1) & mask,
            }
        }
    }

    /// Files the key opened last, making the index anew when it is half full.
    fn add_to_index(&mut self) {
        let scratch = &mut *self.scratch;
        let count = scratch.opened.len();
        let first = if scratch.index.len() < 2 * count {
            let room = (4 * count).next_power_of_two();
            scratch.index.clear();
            scratch.index.resize(room, 0);
            0
        } else {
            count - 1
        };
        let mask = scratch.index.len() - 1;
        for position in first..count {
            let mut place = scratch.opened[position].hash as usize & mask;
            while scratch.index[place] != 0 {
                place = (place + 1) & mask;
            }
            scratch.index[place] = position as u32 + 1;
        }
    }

    /// Reads a key's word, deleting an expired root first. As the elder, claims it.
    #[inline]
    fn read(
        &mut self,
        database: usize,
        hash: u64,
        key: &[u8],
    ) -> Result<(Option<NonNull<Entry>>, Word, Word), ElderHolds> {
        loop {
            let worker = self.section.worker();
            let pin = self.section.pin();
            let table = worker.store().table(database, pin);
            let entry = match table.find(hash, key, pin) {
                Some(entry) => entry,
                None if self.elder.is_none() => return Ok((None, Word::VACANT, Word::VACANT)),
                None => super::commit::placeholder(worker, table, hash, key, pin),
            };
            let word = entry.load();
            let seen = word.resolve();
            match seen.state() {
                State::Dead => continue,
                State::Live(root) => {
                    // SAFETY: read from the entry's word under the pin.
                    let root = unsafe { root.as_ref() };
                    if root.is_expired(self.now.unix_ms) {
                        if planted("expiry_no_tombstone") {
                            return Ok((Some(NonNull::from(entry)), word, Word::VACANT));
                        }
                        worker.expire(table, entry, word, root, pin)?;
                        continue;
                    }
                }
                _ => {}
            }
            let entry = NonNull::from(entry);
            if self.elder.is_some() {
                match self.claim_as_elder(entry, word) {
                    Some(word) => return Ok((Some(entry), word, seen)),
                    None => continue,
                }
            }
            return Ok((Some(entry), word, seen));
        }
    }

    /// Brings the memory of many keys nearer before they are opened one by one (MGET, MSET, DEL of many).
    pub fn prefetch<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]> + Clone) {
        let store = self.section.worker().store();
        let pin = self.section.pin();
        let table = store.table(self.database, pin);
        let hashes: smallvec::SmallVec<[u64; 64]> = keys.map(|key| store.hash(key)).collect();
        hashes.iter().for_each(|hash| table.prefetch_head(*hash));
        hashes.iter().for_each(|hash| table.prefetch_entry(*hash, pin));
        hashes.iter().for_each(|hash| table.prefetch_root(*hash, pin));
    }

    /// The key's value as this attempt sees it (its own writes included); `None` where there is none.
    #[inline]
    pub fn root(&self, key: KeyId) -> Option<&Root> {
        let opened = &self.scratch.opened[key.0 as usize];
        // A value that this attempt has made with a deadline in the past is gone for its next steps.
        root_of(opened).filter(|root| !opened.is_written() || !root.is_expired(self.now.unix_ms))
    }

    /// The key's value together with the attempt, for a new tree made from what is read (COPY, a string that becomes a rope).
    pub fn root_and_attempt(&mut self, key: KeyId) -> (Option<&Root>, &mut Attempt) {
        let scratch = &mut *self.scratch;
        (root_of(&scratch.opened[key.0 as usize]), &mut scratch.attempt)
    }

    /// The stamp of the value, or of the deletion, that this attempt found at the key; 0 where it has never had a value. Unlike every other's.
    pub fn seen_stamp(&self, key: KeyId) -> u64 {
        let seen = self.scratch.opened[key.0 as usize].seen;
        // SAFETY: read from the entry's word under the pin that the transaction holds since before.
        seen.root_pointer().map_or(0, |root| unsafe { root.as_ref() }.stamp())
    }

    /// Says whether the commands to come may wait: not in EXEC and scripts.
    pub fn allow_waiting(&mut self, may_wait: bool) {
        self.may_wait = may_wait;
    }

    /// Whether a command that finds nothing may [`wait`](Self::wait_for) instead of answering so.
    pub fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// Instead of a reply: the command has found nothing and waits.
    pub fn wait_for(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    /// Whether the command run last waits, and for what.
    #[inline]
    pub fn take_wait(&mut self) -> Option<Wait> {
        self.wait.take()
    }

    /// Notes that this attempt has something for a client, which is to be told after the commit.
    pub fn wake(&mut self, client: u64) {
        self.scratch.wakes.push(client);
    }

    /// After a commit: the clients to be told of it.
    #[inline]
    pub fn take_wakes(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.scratch.wakes)
    }

    /// Whether somebody wants to hear of one of the opened keys.
    #[inline]
    pub fn has_hooked(&self) -> bool {
        self.scratch.any_hooked
    }

    /// The hooked keys that this attempt gives another value, in the order of opening.
    pub fn hooked_and_written(&self) -> Vec<KeyId> {
        let is_it = |opened: &Opened| opened.hooked && matches!(opened.pending, Pending::Value(_));
        (0u32..).zip(&self.scratch.opened).filter(|(_, opened)| is_it(opened)).map(|(id, _)| KeyId(id)).collect()
    }

    /// The database and the bytes of an opened key.
    pub fn name_of(&self, key: KeyId) -> (usize, &[u8]) {
        let opened = &self.scratch.opened[key.0 as usize];
        (usize::from(opened.database), self.key_of(opened))
    }

    /// Replaces the key's value, whatever it was.
    #[inline]
    pub fn set(&mut self, key: KeyId, value: NewRoot) {
        if self.limits.events.meets(EventClass::NEW) && self.root(key).is_none() {
            self.note(NEW_KEY, key);
        }
        let mut value = value;
        value.set_access(self.new_access());
        self.put(key, Pending::Value(value));
    }

    #[inline]
    fn put(&mut self, key: KeyId, pending: Pending) {
        let scratch = &mut *self.scratch;
        let before = std::mem::replace(&mut scratch.opened[key.0 as usize].pending, pending);
        if let Pending::Value(before) = before
            && before.root().has_nodes()
        {
            scratch.abandoned.push(before);
        }
    }

    /// Deletes the key; whether there was a value.
    pub fn delete(&mut self, key: KeyId) -> bool {
        let existed = self.root(key).is_some();
        if existed {
            self.put(key, Pending::Deleted);
        }
        existed
    }

    /// The key's value to be changed in place: a pending root that shares all nodes with the present one, made at the first call of this
    /// attempt (for `List` and `Rope`; short strings are replaced with `set`). `None` where there is no value.
    pub fn edit(&mut self, key: KeyId) -> Option<(&mut NewRoot, &mut Attempt)> {
        let access = self.new_access();
        let scratch = &mut *self.scratch;
        let opened = &mut scratch.opened[key.0 as usize];
        if let Pending::Unchanged = opened.pending {
            let root = root_of(opened)?;
            let mut copy = NewRoot::with_expiry(root, root.expiry_ms());
            copy.set_access(access);
            opened.shares_nodes = root.has_nodes();
            opened.pending = Pending::Value(copy);
        }
        match &mut opened.pending {
            Pending::Value(value) => Some((value, &mut scratch.attempt)),
            _ => None,
        }
    }

    /// Gives the key's value another deadline. The key must have a value.
    pub fn set_expiry(&mut self, key: KeyId, expiry_ms: Option<i64>) {
        let opened = &mut self.scratch.opened[key.0 as usize];
        let Some(root) = root_of(opened) else { return };
        let mut value = NewRoot::with_expiry(root, expiry_ms);
        value.set_access(root.access());
        if !opened.is_written() {
            opened.shares_nodes = root.has_nodes();
        }
        // A pending root that is replaced here frees its header only: the new one has its nodes.
        opened.pending = Pending::Value(value);
    }

    /// Moves the value out: the key is deleted and the value, with its nodes and its deadline, can be `set` to another key (RENAME, MOVE).
    pub fn take(&mut self, key: KeyId) -> Option<NewRoot> {
        let opened = &mut self.scratch.opened[key.0 as usize];
        if let Pending::Unchanged = opened.pending {
            let root = root_of(opened)?;
            let moved = NewRoot::with_expiry(root, root.expiry_ms());
            opened.shares_nodes = root.has_nodes();
            opened.pending = Pending::Deleted;
            return Some(moved);
        }
        match std::mem::replace(&mut opened.pending, Pending::Deleted) {
            Pending::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Where nodes of new trees are listed (COPY, first push to a list).
    pub fn attempt(&mut self) -> &mut Attempt {
        &mut self.scratch.attempt
    }

    /// Bytes that a key takes with its entry, its root and all nodes; `None` where there is no value.
    pub fn memory_bytes(&self, key: KeyId) -> Option<usize> {
        let opened = &self.scratch.opened[key.0 as usize];
        let value_bytes = crate::store::root_bytes(root_of(opened)?);
        // SAFETY: found in the table under the pin that still stands.
        let entry_bytes = opened.entry.map_or(0, |entry| unsafe { entry.as_ref() }.bytes());
        Some(value_bytes + entry_bytes)
    }

    /// Records that something happened to a key, to be told once the attempt has committed; nothing if nobody wants to know of this class.
    #[inline]
    pub fn notify(&mut self, class: EventClass, name: &'static str, key: KeyId) {
        if self.limits.events.meets(class) {
            self.note(name, key);
        }
    }

    #[cold]
    fn note(&mut self, name: &'static str, key: KeyId) {
        let scratch = &mut *self.scratch;
        let opened = &scratch.opened[key.0 as usize];
        let (from, length) = opened.key;
        let bytes = &scratch.keys[from as usize..][..length as usize];
        scratch.events.add(name, opened.database.into(), bytes);
        scratch.event_stripes |= EventOrder::stripe(opened.hash);
    }

    /// After a commit: gives its events to `publish`, behind those of earlier commits that wait. Until then, events of later commits on these keys
    /// wait too.
    #[inline]
    pub fn publish_events(&mut self, mut publish: impl FnMut(&Events)) {
        if self.ordered.is_empty() && self.scratch.events.is_empty() {
            return;
        }
        for waiting in self.ordered.iter_mut().filter(|waiting| !waiting.is_empty()) {
            publish(waiting);
            waiting.clear();
        }
        publish(&self.scratch.events);
        self.scratch.events.clear();
        self.scratch.event_stripes = 0;
        self.ordered.clear();
    }

    /// Takes the events that the commands run so far have recorded, to be published without the order of other commits'; `None` for none.
    #[inline]
    pub fn take_events(&mut self) -> Option<Events> {
        self.scratch.event_stripes = 0;
        if self.scratch.events.is_empty() { None } else { Some(std::mem::take(&mut self.scratch.events)) }
    }

    /// How many events the commands run so far have recorded.
    pub fn event_count(&self) -> usize {
        self.scratch.events.len()
    }

    /// Takes the keys that the commits so far have written, if they are recorded; `None` for none.
    #[inline]
    pub fn take_written(&mut self) -> Option<Events> {
        if self.scratch.written.is_empty() { None } else { Some(std::mem::take(&mut self.scratch.written)) }
    }

    /// Counts one look-up for INFO's keyspace_hits and keyspace_misses (once, after commit).
    #[inline]
    pub fn count_lookup(&mut self, hit: bool) {
        if hit {
            self.scratch.hits += 1;
        } else {
            self.scratch.misses += 1;
        }
    }

    /// Marks the key's value as used now, for OBJECT IDLETIME and eviction.
    #[inline]
    pub fn touch(&self, key: KeyId) {
        if let Some(root) = self.root(key) {
            root.touch(self.limits.touched(root.access(), self.now_ms()));
        }
    }

    /// The access clock word of a value made now.
    #[inline]
    fn new_access(&self) -> u32 {
        self.limits.new_access(self.now_ms())
    }

    /// Visits the live keys of the client's database that lie in the next `buckets` buckets from `cursor` on, and gives the next
    /// cursor (0 at the end). Redis' guarantees: a key present throughout is visited at least once. The cursor is the bucket's
    /// number with its bits reversed, as Redis' is, so it stays valid when the table grows (rule 20).
    pub fn scan(&mut self, cursor: u64, buckets: usize, visit: &mut dyn FnMut(&[u8], &Root)) -> u64 {
        let pin = self.section.pin();
        let table = self.section.worker().store().table(self.database, pin);
        let bits = table.bits();
        let from = (cursor & ((1 << bits) - 1)).reverse_bits() >> (64 - bits);
        let next = table.walk(from, bits, buckets.max(1) as u64, pin, &mut |entry| {
            if let Some(root) = self.live(entry) {
                visit(entry.key(), root);
            }
        });
        next.map_or(0, |bucket| bucket.reverse_bits() >> (64 - bits))
    }

    /// The entry's value, unless it is deleted or expired.
    fn live<'a>(&'a self, entry: &'a Entry) -> Option<&'a Root> {
        let State::Live(root) = entry.load().resolve().state() else { return None };
        // SAFETY: read from the entry's word under the pin, which `self` holds.
        let root = unsafe { root.as_ref() };
        (!root.is_expired(self.now_ms())).then_some(root)
    }

    /// A live key chosen uniformly from the client's database (rule 21): a random bucket, accepted with a probability that grows with its
    /// number of keys, then a random key of it. In a table that is almost empty a whole walk takes the place of many blind draws.
    pub fn random_key(&mut self) -> Option<Vec<u8>> {
        const DRAWS_MAX: usize = 256;
        const KEYS_PER_BUCKET: usize = 8;
        let pin = self.section.pin();
        let table = self.section.worker().store().table(self.database, pin);
        let bits = table.bits();
        let mut random = crate::random::Random::from_entropy();
        let mut keys: Vec<&[u8]> = Vec::new();
        for _ in 0..DRAWS_MAX {
            keys.clear();
            table.walk(random.below(1 << bits), bits, 1, pin, &mut |entry| {
                if self.live(entry).is_some() {
                    keys.push(entry.key());
                }
            });
            if !keys.is_empty() && random.below(KEYS_PER_BUCKET as u64) < keys.len() as u64 {
                return Some(keys[random.below(keys.len() as u64) as usize].to_vec());
            }
        }
        let mut seen = 0;
        let mut chosen = None;
        table.walk(0, bits, u64::MAX, pin, &mut |entry| {
            if self.live(entry).is_some() {
                seen += 1;
                if random.below(seen) == 0 {
                    chosen = Some(entry.key());
                }
            }
        });
        chosen.map(<[u8]>::to_vec)
    }

    /// Number of keys in the client's database (expired ones not yet deleted included, as in Redis).
    pub fn key_count(&mut self) -> u64 {
        self.table().keys()
    }
}

impl Drop for Transaction<'_> {
    /// Where a command panicked: releases its claims and frees what it made (rule 17).
    fn drop(&mut self) {
        if !self.scratch.opened.is_empty() || self.elder.is_some() {
            self.undo();
            if self.elder.take().is_some() {
                self.section.worker().release_elder();
            }
        }
        self.scratch.shrink();
    }
}

impl Scratch {
    /// Gives back the room that a command over very many keys, or with very long ones, has left behind. Nothing is open any more.
    #[inline]
    fn shrink(&mut self) {
        if self.opened.capacity() > SCRATCH_KEYS_KEPT || self.keys.capacity() > SCRATCH_KEY_BYTES_KEPT {
            self.opened = Vec::new();
            self.keys = Vec::new();
            self.index = Vec::new();
            self.order = Vec::new();
            self.abandoned.shrink_to(SCRATCH_KEYS_KEPT);
            self.attempt.shrink_to(SCRATCH_KEYS_KEPT);
        }
    }
}

#[inline]
fn root_of(opened: &Opened) -> Option<&Root> {
    match &opened.pending {
        Pending::Value(value) => Some(value.root()),
        Pending::Deleted | Pending::Tombstone(_) => None,
        // SAFETY: read from the entry's word under the pin that the transaction holds since before.
        Pending::Unchanged => opened.seen_root().map(|root| unsafe { root.as_ref() }),
    }
}

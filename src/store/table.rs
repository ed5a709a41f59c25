//! The table: a split-ordered list that grows without moving an item.
//!
//! The problem: find, insert and remove entries by key from all threads, and double the number of buckets without a pause. One linked
//! list holds all entries by growing (hash, key). A bucket is a prefix of the hash, and its *head* is a link into the list: an 8-byte
//! element of a growing array that is itself spliced into the list, before the first entry with that prefix. Doubling adds heads between the
//! present ones, each when it is first needed; entries stay where they are. No bit is reversed on the way: bucket `p` of `2^k` is
//! `hash >> (64 - k)`, and its head lies in the segment of the level that first had such a bucket.
//!
//! ```text
//! a link:  63..4                            3         2        1        0
//!         | entry address, or bucket id   | LINKING | LINKED | BUCKET | MARK |
//! ```
//!
//! *BUCKET*: the target is a bucket's head, named by its id (`1 << level | prefix`), else an entry; zero is the end. *MARK* (in an entry's
//! link): the entry is being removed, and the link never changes again. *LINKED* (in a head): one may start here. *LINKING* (in
//! a head): one claimant is splicing it in; one may pass through but not start here. A head of zero is Empty.
//!
//! Invariants
//! 1. Reachable elements stand in growing order; a head stands before every entry of its bucket (loom: `table_bucket_initialisation`).
//! 2. A head is spliced in by the one thread whose CAS took it from Empty to LINKING; until it is LINKED everybody else starts from the
//!    nearest linked bucket before it (rule 18; loom: `table_bucket_initialisation`, `table_growth`).
//! 3. At most one entry of a key is not Dead: an inserter that meets a Dead entry of its key unlinks it first (rule 19; loom:
//!    `table_insert_remove_lookup`).
//! 4. An entry is marked only when its word is Dead, and retired by the thread whose CAS unlinked it (loom: `table_insert_remove_lookup`).
//!
//! Linearization: insert at the CAS of the link before it; lookup at the load of the entry's word, or at the load of the last link before the
//! place where the key would be; removal was linearized by the word (Tombstone), unlinking is housekeeping.
//! Progress: lookups are wait-free between growths (nobody makes them start again); insert and unlink are lock-free.
//!
//! Papers: Shalev, Shavit, *Split-Ordered Lists: Lock-Free Extensible Hash Tables*, JACM 2006 (here: prefix instead of reversed bits, heads
//! in the array instead of dummy nodes). Harris, DISC 2001, and Michael, SPAA 2002 (marked next pointers).

use super::entry::Entry;
use super::word::Word;
use super::worker::Pin;
use crate::limits::{TABLE_BITS_MAX, TABLE_BITS_MIN, TABLE_GROW_CHECK_INTERVAL, TABLE_LOAD_PERCENT};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, CachePadded, Ordering, OwnedCounter, planted};
use std::ptr::NonNull;

const MARK: u64 = 1;
const BUCKET: u64 = 2;
const LINKED: u64 = 4;
const LINKING: u64 = 8;
const FLAGS: u64 = LINKED | LINKING;
const EMPTY: u64 = 0;

/// A bucket head, or an entry's `next`.
type Slot = AtomicU64;

/// A bucket under a name that does not depend on the table's present size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BucketId(u64);

impl BucketId {
    /// Bucket `prefix` of `2^bits`, named by the level that first had it.
    #[inline]
    fn new(prefix: u64, bits: u32) -> Self {
        let level = (bits - prefix.trailing_zeros().min(bits)).max(TABLE_BITS_MIN);
        Self(1 << level | prefix >> (bits - level))
    }

    fn level(self) -> u32 {
        63 - self.0.leading_zeros()
    }

    fn prefix(self) -> u64 {
        self.0 ^ (1 << self.level())
    }

    /// The smallest hash of the bucket.
    fn start(self) -> u64 {
        self.prefix() << (64 - self.level())
    }
}

/// What a link points to.
enum Target<'g> {
    End,
    Bucket(BucketId),
    Entry(&'g Entry),
}

/// Where an element belongs: the link to it or to its successor, as it was read.
struct Place<'g> {
    slot: &'g Slot,
    link: u64,
    found: Option<&'g Entry>,
}

/// What [`Table::insert`] did.
pub enum Inserted<'g> {
    /// The new entry is in the table.
    New(&'g Entry),
    /// The key has an entry already; the new one was given back.
    Exists(&'g Entry),
}

/// Entries and keys added and removed by one worker.
#[derive(Debug, Default)]
pub struct Counts {
    entries_added: OwnedCounter,
    entries_removed: OwnedCounter,
    keys_added: OwnedCounter,
    keys_removed: OwnedCounter,
    expiring_added: OwnedCounter,
    expiring_removed: OwnedCounter,
}

/// The entries of one database.
#[derive(Debug)]
pub struct Table {
    /// Unlike every other table's of the process.
    id: u64,
    bits: AtomicU32,
    base: Box<[Slot]>,
    /// By level; level `l` holds the `2^(l-1)` heads that came with the doubling to `2^l`.
    segments: Box<[AtomicPtr<Slot>]>,
    counts: Box<[CachePadded<Counts>]>,
}

impl Table {
    /// An empty table that `workers` workers count for.
    pub fn new(id: u64, workers: usize) -> Self {
        let buckets = 1u64 << TABLE_BITS_MIN;
        let base = (0..buckets)
            .map(|prefix| {
                let next = match prefix + 1 {
                    end if end == buckets => 0,
                    next => BucketId::new(next, TABLE_BITS_MIN).0 << 4 | BUCKET,
                };
                Slot::new(next | LINKED)
            })
            .collect();
        Self {
            id,
            bits: AtomicU32::new(TABLE_BITS_MIN),
            base,
            segments: (0..=TABLE_BITS_MAX).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect(),
            counts: (0..workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// The table's identity: no other table of the store ever has the same.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of buckets is two to this power.
    #[inline]
    pub fn bits(&self) -> u32 {
        // Acquire: pairs with the Release in `grow`: the segments of all levels up to this one are visible.
        self.bits.load(Ordering::Acquire)
    }

    #[inline]
    fn slot_of(&self, bucket: BucketId) -> &Slot {
        let (level, prefix) = (bucket.level(), bucket.prefix());
        if level == TABLE_BITS_MIN {
            return &self.base[prefix as usize];
        }
        // Acquire: pairs with the Release in `grow`, for ids that were found in a link rather than computed from `bits`.
        let segment = self.segments[level as usize].load(Ordering::Acquire);
        debug_assert!(!segment.is_null());
        // SAFETY: a bucket of this level exists only after `grow` installed its segment of 2^(level-1) heads, which stays until the
        // table is dropped; `prefix >> 1` is below 2^(level-1).
        unsafe { &*segment.add((prefix >> 1) as usize) }
    }

    #[inline]
    fn target<'g>(&self, link: u64, _pin: Pin<'g>) -> Target<'g> {
        let value = link >> 4;
        if value == 0 {
            Target::End
        } else if link & BUCKET != 0 {
            Target::Bucket(BucketId(value))
        } else {
            let address = (link & !0xf) as usize;
            // SAFETY: a link without BUCKET holds an entry's address. The entry was reachable during this pin, or linked to by one
            // that was, so it is not freed before the pin ends.
            Target::Entry(unsafe { &*std::ptr::with_exposed_provenance::<Entry>(address) })
        }
    }

    /// The head to start from for this hash: its bucket's, or the nearest linked one before it.
    #[inline]
    fn start<'g>(&'g self, hash: u64, pin: Pin<'g>) -> &'g Slot {
        let bits = self.bits();
        let prefix = hash >> (64 - bits);
        let slot = self.slot_of(BucketId::new(prefix, bits));
        // Acquire: pairs with the Release that set LINKED in `link_bucket`: the head is reachable and its link is current.
        let linked = if planted("table_start_unlinked") { FLAGS } else { LINKED };
        if slot.load(Ordering::Acquire) & linked != 0 {
            return slot;
        }
        self.link_bucket(prefix, bits, pin)
    }

    /// Splices a bucket's head into the list, unless somebody else is at it; gives the head to start from either way.
    #[cold]
    fn link_bucket<'g>(&'g self, prefix: u64, bits: u32, pin: Pin<'g>) -> &'g Slot {
        let bucket = BucketId::new(prefix, bits);
        let slot = self.slot_of(bucket);
        // Acquire: as in `start`.
        if slot.load(Ordering::Acquire) & LINKED != 0 {
            return slot;
        }
        if planted("table_links_no_bucket") {
            return &self.base[0];
        }
        // The bucket of which this one was split off; ends at bucket 0, which is linked from the start. At most one call a bit.
        let before = self.link_bucket(prefix & (prefix - 1), bits, pin);
        // Relaxed on both sides: the CAS only elects the claimant; what the head holds is published by the CAS of the link before it.
        let elected = slot.compare_exchange(EMPTY, LINKING, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !elected && !planted("table_two_linkers") {
            return before;
        }
        loop {
            let place = self.place(before, bucket.start(), None, pin);
            // Relaxed: nobody can reach the head until the CAS below publishes it with Release.
            slot.store(place.link & !(FLAGS | MARK) | LINKING, Ordering::Relaxed);
            let link = bucket.0 << 4 | BUCKET | place.link & FLAGS;
            // Release: publishes the head's link to whoever comes through here. Relaxed on failure: the place is looked for again.
            if place.slot.compare_exchange(place.link, link, Ordering::Release, Ordering::Relaxed).is_ok() {
                break;
            }
            // Lost to a thread that inserted or unlinked at this very place, which made progress.
        }
        // Release: pairs with the Acquire in `start`: whoever starts here sees that the head is reachable from the buckets before it.
        slot.fetch_xor(LINKING | LINKED, Ordering::Release);
        slot
    }

    /// Finds where (hash, key) belongs, from the head `from` on, unlinking the marked entries it meets. With no key: before the first entry
    /// that has the hash or a larger one.
    fn place<'g>(&'g self, from: &'g Slot, hash: u64, key: Option<&[u8]>, pin: Pin<'g>) -> Place<'g> {
        'again: loop {
            let mut slot = from;
            // Acquire: pairs with the Release of the CAS that linked the target, which is thereby visible.
            let mut link = slot.load(Ordering::Acquire);
            loop {
                steps::count();
                match self.target(link, pin) {
                    Target::End => return Place { slot, link, found: None },
                    Target::Bucket(bucket) => {
                        if bucket.start() > hash || key.is_none() && bucket.start() == hash {
                            return Place { slot, link, found: None };
                        }
                        slot = self.slot_of(bucket);
                        // Acquire: as above.
                        link = slot.load(Ordering::Acquire);
                    }
                    Target::Entry(entry) => {
                        // Acquire: as above.
                        let mut next = entry.next.load(Ordering::Acquire);
                        let order = match key {
                            None => entry.hash.cmp(&hash).then(std::cmp::Ordering::Greater),
                            Some(key) => entry.hash.cmp(&hash).then_with(|| entry.key().cmp(key)),
                        };
                        if next & MARK == 0
                            && order.is_eq()
                            && entry.load() == Word::DEAD
                            && !planted("table_keeps_dead")
                        {
                            // Rule 19: mark it on behalf of its reaper.
                            // Acquire: as above; Relaxed would do for the mark itself, which publishes nothing.
                            next = entry.next.fetch_or(MARK, Ordering::Acquire) | MARK;
                        }
                        if next & MARK != 0 {
                            let without = next & !MARK | link & FLAGS;
                            // Release: passes on the visibility of what the removed entry linked to. Relaxed on failure: start again.
                            if slot.compare_exchange(link, without, Ordering::Release, Ordering::Relaxed).is_err() {
                                // Somebody changed this link, and so made progress.
                                continue 'again;
                            }
                            pin.retire_entry(NonNull::from(entry));
                            link = without;
                            continue;
                        }
                        match order {
                            std::cmp::Ordering::Less => {
                                slot = &entry.next;
                                link = next;
                            }
                            std::cmp::Ordering::Equal => return Place { slot, link, found: Some(entry) },
                            std::cmp::Ordering::Greater => return Place { slot, link, found: None },
                        }
                    }
                }
            }
        }
    }

    /// The key's entry, unless it is Dead or there is none. Expected constant time.
    #[inline]
    pub fn find<'g>(&'g self, hash: u64, key: &[u8], pin: Pin<'g>) -> Option<&'g Entry> {
        // Acquire: pairs with the Release of the CAS that linked the target, which is thereby visible.
        let mut link = self.start(hash, pin).load(Ordering::Acquire);
        loop {
            match self.target(link, pin) {
                Target::End => return None,
                Target::Bucket(bucket) if bucket.start() > hash => return None,
                // Acquire: as above.
                Target::Bucket(bucket) => link = self.slot_of(bucket).load(Ordering::Acquire),
                Target::Entry(entry) if entry.hash < hash => {
                    // Acquire: as above. A mark is no matter: a removed entry still leads to its successors.
                    link = entry.next.load(Ordering::Acquire);
                }
                Target::Entry(entry) if entry.hash > hash => return None,
                Target::Entry(entry) => {
                    if entry.key() == key && entry.load() != Word::DEAD {
                        return Some(entry);
                    }
                    // Acquire: as above.
                    link = entry.next.load(Ordering::Acquire);
                }
            }
        }
    }

    /// Adds an entry with this word, unless the key has one. Expected constant time; grows the table when it is due.
    pub fn insert<'g>(&'g self, hash: u64, key: &[u8], word: Word, pin: Pin<'g>) -> Inserted<'g> {
        let start = self.start(hash, pin);
        let mut made = None;
        loop {
            let place = self.place(start, hash, Some(key), pin);
            if let Some(found) = place.found {
                if let Some(entry) = made {
                    // SAFETY: made below and never linked.
                    unsafe { Entry::free(entry) };
                }
                return Inserted::Exists(found);
            }
            let entry = *made.get_or_insert_with(|| Entry::allocate(hash, key, word));
            // SAFETY: made above, and ours until it is linked.
            let entry_ref: &'g Entry = unsafe { entry.as_ref() };
            // Relaxed: the CAS below publishes the entry with Release.
            entry_ref.next.store(place.link & !(FLAGS | MARK), Ordering::Relaxed);
            let link = entry.as_ptr().expose_provenance() as u64 | place.link & FLAGS;
            // Release: publishes the entry, its key, word and next link. Relaxed on failure: the place is looked for again.
            if planted("table_blind_link") {
                // Release: as below.
                place.slot.store(link, Ordering::Release);
                return Inserted::New(entry_ref);
            }
            if place.slot.compare_exchange(place.link, link, Ordering::Release, Ordering::Relaxed).is_ok() {
                let counts = &self.counts[pin.worker_index()];
                counts.entries_added.add(1);
                if counts.entries_added.get().is_multiple_of(TABLE_GROW_CHECK_INTERVAL) || self.bits() < 10 {
                    self.grow_if_due(pin);
                }
                return Inserted::New(entry_ref);
            }
            // Lost to a thread that changed this very link, and so made progress.
        }
    }

    /// Unlinks an entry whose word the caller has made Dead.
    pub fn unlink(&self, entry: &Entry, pin: Pin<'_>) {
        debug_assert_eq!(entry.load(), Word::DEAD);
        // Acquire: pairs with the Release of whoever linked the successor. The mark itself publishes nothing.
        entry.next.fetch_or(MARK, Ordering::Acquire);
        // Whoever passes first unlinks it; `place` passes all of the key's entries.
        self.place(self.start(entry.hash, pin), entry.hash, Some(entry.key()), pin);
        self.counts[pin.worker_index()].entries_removed.add(1);
    }

    /// Entries now in the table, deleted ones that still wait for their grace period included.
    pub fn entries(&self) -> u64 {
        self.difference(|counts| &counts.entries_added, |counts| &counts.entries_removed)
    }

    /// Keys that have a value (rule 21).
    pub fn keys(&self) -> u64 {
        self.difference(|counts| &counts.keys_added, |counts| &counts.keys_removed)
    }

    /// Keys that have a deadline.
    pub fn expiring_keys(&self) -> u64 {
        self.difference(|counts| &counts.expiring_added, |counts| &counts.expiring_removed)
    }

    /// Sums counters that only grow, removals first, until two rounds agree; then the difference stood at one moment. With writers that
    /// never pause the last of a bounded number of rounds is taken.
    fn difference(&self, added: impl Fn(&Counts) -> &OwnedCounter, removed: impl Fn(&Counts) -> &OwnedCounter) -> u64 {
        const ROUNDS_MAX: usize = 8;
        let read = || {
            let removed: u64 = self.counts.iter().map(|counts| removed(counts).get()).sum();
            let added: u64 = self.counts.iter().map(|counts| added(counts).get()).sum();
            (added, removed)
        };
        let mut last = read();
        for _ in 0..ROUNDS_MAX {
            let next = read();
            if next == last {
                break;
            }
            last = next;
        }
        last.0.saturating_sub(last.1)
    }

    /// Counts a key that got a value (+) or lost it (-), and one that got or lost a deadline.
    #[inline]
    pub fn count_change(&self, worker: usize, was_live: bool, is_live: bool, did_expire: bool, does_expire: bool) {
        let counts = &self.counts[worker];
        match (was_live, is_live) {
            (false, true) => counts.keys_added.add(1),
            (true, false) => counts.keys_removed.add(1),
            _ => {}
        }
        match (did_expire, does_expire) {
            (false, true) => counts.expiring_added.add(1),
            (true, false) => counts.expiring_removed.add(1),
            _ => {}
        }
    }

    #[cold]
    fn grow_if_due(&self, pin: Pin<'_>) {
        loop {
            let bits = self.bits();
            if bits >= TABLE_BITS_MAX || self.entries() as usize * 100 <= (1usize << bits) * TABLE_LOAD_PERCENT {
                return;
            }
            self.grow(bits);
            pin.count_growth();
        }
    }

    /// Doubles the number of buckets from `2^bits`, unless somebody else does.
    fn grow(&self, bits: u32) {
        let level = bits + 1;
        let segment = &self.segments[level as usize];
        if planted("table_grow_early") {
            // Release: as below, but too early.
            self.bits.store(level, Ordering::Release);
        }
        let made = segment_allocate(level);
        // Release: pairs with the Acquire in `slot_of`: the heads are seen zeroed. Relaxed on failure: ours is thrown away.
        if segment.compare_exchange(std::ptr::null_mut(), made, Ordering::Release, Ordering::Relaxed).is_err() {
            // SAFETY: made above and shared with nobody.
            unsafe { segment_free(made, level) };
        }
        // Release: pairs with the Acquire in `bits`: the segment is visible to whoever sees the new size. Relaxed on failure: somebody
        // else has doubled the table.
        let _ = self.bits.compare_exchange(bits, level, Ordering::Release, Ordering::Relaxed);
    }

    /// Bytes of all bucket heads.
    pub fn bucket_bytes(&self) -> usize {
        size_of::<Slot>() << self.bits()
    }

    /// Brings the head of this hash's bucket nearer. The first of three rounds over a batch of keys.
    #[inline]
    pub fn prefetch_head(&self, hash: u64) {
        let bits = self.bits();
        prefetch(self.slot_of(BucketId::new(hash >> (64 - bits), bits)));
    }

    /// Brings the first entry of this hash's bucket nearer: the second round.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64, pin: Pin<'_>) {
        let bits = self.bits();
        // Acquire: pairs with the Release of the CAS that linked the target.
        let link = self.slot_of(BucketId::new(hash >> (64 - bits), bits)).load(Ordering::Acquire);
        if let Target::Entry(entry) = self.target(link, pin) {
            prefetch(entry);
            prefetch(std::ptr::from_ref(entry).wrapping_byte_add(63));
        }
    }

    /// Brings the key's root nearer: the third round.
    #[inline]
    pub fn prefetch_root(&self, hash: u64, pin: Pin<'_>) {
        let bits = self.bits();
        // Acquire: as in `prefetch_entry`.
        let mut link = self.slot_of(BucketId::new(hash >> (64 - bits), bits)).load(Ordering::Acquire);
        // A bucket has more than two entries so rarely that a third look costs more than it brings.
        for _ in 0..2 {
            let Target::Entry(entry) = self.target(link, pin) else { return };
            if entry.hash == hash {
                let word = entry.load();
                if let Some(root) = word.pointer() {
                    prefetch(root);
                    prefetch(root.wrapping_byte_add(64));
                }
                return;
            }
            // Acquire: as in `prefetch_entry`.
            link = entry.next.load(Ordering::Acquire);
        }
    }

    /// Calls `visit` for each entry of the buckets `from ..` of the present `2^bits` (`bits` no larger than [`bits`](Self::bits)), in order, until
    /// `buckets` buckets are done or the table ends; gives the bucket to go on with.
    pub fn walk<'g>(
        &'g self,
        from: u64,
        bits: u32,
        buckets: u64,
        pin: Pin<'g>,
        visit: &mut dyn FnMut(&'g Entry),
    ) -> Option<u64> {
        let end = from.saturating_add(buckets).min(1 << bits);
        let first_hash = from << (64 - bits);
        // Acquire: pairs with the Release of the CAS that linked the target, here and below.
        let mut link = self.start(first_hash, pin).load(Ordering::Acquire);
        loop {
            match self.target(link, pin) {
                Target::End => break,
                Target::Bucket(bucket) if bucket.start() >> (64 - bits) >= end => break,
                Target::Bucket(bucket) => link = self.slot_of(bucket).load(Ordering::Acquire),
                Target::Entry(entry) if entry.hash >> (64 - bits) >= end => break,
                Target::Entry(entry) => {
                    if entry.hash >= first_hash {
                        visit(entry);
                    }
                    link = entry.next.load(Ordering::Acquire);
                }
            }
        }
        (end < 1 << bits).then_some(end)
    }

    /// Calls `visit` for each entry with exactly this hash.
    pub fn with_hash<'g>(&'g self, hash: u64, pin: Pin<'g>, visit: &mut dyn FnMut(&'g Entry)) {
        // Acquire: pairs with the Release of the CAS that linked the target, here and below.
        let mut link = self.start(hash, pin).load(Ordering::Acquire);
        loop {
            match self.target(link, pin) {
                Target::End => return,
                Target::Bucket(bucket) if bucket.start() > hash => return,
                Target::Bucket(bucket) => link = self.slot_of(bucket).load(Ordering::Acquire),
                Target::Entry(entry) if entry.hash > hash => return,
                Target::Entry(entry) => {
                    if entry.hash == hash {
                        visit(entry);
                    }
                    link = entry.next.load(Ordering::Acquire);
                }
            }
        }
    }
}

impl Drop for Table {
    /// Frees all entries and roots. Whoever drops a table has seen to it that no thread can reach it.
    fn drop(&mut self) {
        // Relaxed, here and below: the table is ours alone.
        let mut link = self.base[0].load(Ordering::Relaxed);
        loop {
            let value = link >> 4;
            if value == 0 {
                break;
            }
            if link & BUCKET != 0 {
                link = self.slot_of(BucketId(value)).load(Ordering::Relaxed);
                continue;
            }
            let address = (link & !0xf) as usize;
            let entry = NonNull::new(std::ptr::with_exposed_provenance_mut::<Entry>(address)).expect("checked above");
            // SAFETY: linked entries are alive, and nobody else can reach them any more.
            link = unsafe { entry.as_ref() }.next.load(Ordering::Relaxed);
            // SAFETY: as above.
            if let Some(root) = unsafe { entry.as_ref() }.load().resolve().root_pointer() {
                // SAFETY: the word owns its root, and the root its nodes (rule 1); nobody else can reach them.
                unsafe { super::garbage::free_root_and_nodes(root) };
            }
            // SAFETY: as above; the successor was read before.
            unsafe { Entry::free(entry) };
        }
        for (level, segment) in self.segments.iter_mut().enumerate() {
            let heads = segment.load(Ordering::Relaxed);
            if !heads.is_null() {
                // SAFETY: `grow` made it for this level; nobody else can reach it.
                unsafe { segment_free(heads, level as u32) };
            }
        }
    }
}

/// How many elements `place` has looked at on this thread: what an insertion costs beside one allocation. Counted in this file's tests only.
mod steps {
    #[cfg(test)]
    thread_local! {
        static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    #[inline(always)]
    pub(super) fn count() {
        #[cfg(test)]
        TAKEN.with(|taken| taken.set(taken.get() + 1));
    }

    /// The steps since the last call.
    #[cfg(test)]
    pub(super) fn take() -> u64 {
        TAKEN.with(std::cell::Cell::take)
    }
}

/// Asks the processor to load the line; changes nothing else.
#[inline(always)]
fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(caswell_loom)))]
    // SAFETY: a prefetch of any address is allowed; it faults on none.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(caswell_loom))))]
    let _ = address;
}

#[cfg(not(caswell_loom))]
fn segment_layout(level: u32) -> std::alloc::Layout {
    std::alloc::Layout::array::<Slot>(1 << (level - 1)).expect("TABLE_BITS_MAX keeps segments addressable")
}

/// The heads of one level, all Empty. The system gives zeroed pages as they are first touched, so a doubling costs no pause.
#[cfg(not(caswell_loom))]
fn segment_allocate(level: u32) -> *mut Slot {
    let layout = segment_layout(level);
    // SAFETY: the layout is not empty; a zeroed atomic is an Empty head.
    let segment = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Slot>();
    if segment.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    segment
}

/// # Safety
/// `segment` came from [`segment_allocate`] with this level and nobody can reach it.
#[cfg(not(caswell_loom))]
unsafe fn segment_free(segment: *mut Slot, level: u32) {
    // SAFETY: the caller's promise.
    unsafe { std::alloc::dealloc(segment.cast(), segment_layout(level)) }
}

#[cfg(caswell_loom)]
fn segment_allocate(level: u32) -> *mut Slot {
    let heads: Box<[Slot]> = (0..1u64 << (level - 1)).map(|_| Slot::new(EMPTY)).collect();
    Box::into_raw(heads).cast()
}

/// # Safety
/// `segment` came from [`segment_allocate`] with this level and nobody can reach it.
#[cfg(caswell_loom)]
unsafe fn segment_free(segment: *mut Slot, level: u32) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(segment, 1 << (level - 1))) });
}

#[cfg(all(test, not(caswell_loom)))]
mod tests {
    use super::*;
    use crate::store::{Store, StoreOptions, Worker};

    /// No insertion pays for a doubling: with a load of at most a half, buckets are linked one by one as they are needed, and a chain of buckets
    /// that nobody has needed yet is short, as a run of one value in coin throws is. (Planted fault: `table_links_no_bucket`.)
    #[test]
    fn no_insertion_touches_more_than_a_bounded_number_of_elements_while_the_table_grows() {
        const KEYS: u64 = if cfg!(caswell_checking) { 100_000 } else { 4_000_000 };
        const STEPS_MAX: u64 = 64;
        const SECTION_KEYS: u64 = 1000;
        let store = Store::new(StoreOptions::default());
        let worker = Worker::register(&store).expect("the slot is free");
        let mut worst = 0;
        let mut growths = 0;
        for first in (0..KEYS).step_by(SECTION_KEYS as usize) {
            let section = worker.enter();
            let pin = section.pin();
            let table = store.table(0, pin);
            for key in first..first + SECTION_KEYS {
                let (key, bits) = (key.to_le_bytes(), table.bits());
                steps::take();
                table.insert(store.hash(&key), &key, Word::VACANT, pin);
                worst = worst.max(steps::take());
                growths += table.bits() - bits;
            }
        }
        println!("{KEYS} keys, {growths} growths: at most {worst} elements looked at by one insertion");
        assert!(growths > 10, "the table grew only {growths} times");
        assert!(worst <= STEPS_MAX, "an insertion looked at {worst} elements");
    }
}

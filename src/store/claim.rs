//! Claims: how a multi-word commit holds the words it is about to change.
//!
//! A commit has one [`Record`] with its status, and one [`Claim`] per entry, which says what the word was and what it will be. Claiming is a
//! CAS of the entry's word from what was read to the claim; deciding is one CAS of the status; releasing is a CAS of each word
//! from the claim to its final root. In the spirit of Guerraoui, Kogan, Marathe, Zablotchi, *Efficient Multi-word Compare and Swap*
//! (DISC 2020); the departure is that others never help: they abort (see [`Record::abort`]), so only the owner claims, releases and retires.
//!
//! Invariants
//! 1. A claim's word resolves to `expected` while the status is not Committed, and to `desired` from then on
//!    (loom: `commit_readers_see_all_or_nothing`).
//! 2. The status changes at most once (loom: `commit_overlapping_sets`).
//! 3. Records outlive every pinned thread that can see one of their claims: they are retired, not freed, by their owner.
//!
//! Linearization: of the whole commit, the CAS Undecided -> Committed. Progress: readers take no notice; a writer that finds an undecided claim
//! aborts it after a bounded wait, unless it is the elder's.

use super::entry::Entry;
use super::word::{State, Word};
use crate::sync::{AtomicU8, AtomicU64, Ordering};
use std::ptr::NonNull;

const UNDECIDED: u8 = 0;
const COMMITTED: u8 = 1;
const ABORTED: u8 = 2;

/// What is known of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Still claiming.
    Undecided,
    /// Its words stand for what it wrote.
    Committed,
    /// Its words stand for what it found.
    Aborted,
}

/// One multi-word commit.
#[derive(Debug)]
pub struct Record {
    status: AtomicU8,
    /// An elder is not aborted by others.
    is_elder: bool,
    /// Chunks with fixed capacity, so that claims never move. Only the owner looks in here.
    chunks: Vec<Vec<Claim>>,
}

/// One entry of a multi-word commit.
#[derive(Debug)]
#[repr(align(16))]
pub struct Claim {
    record: NonNull<Record>,
    /// The entry whose word is claimed.
    pub entry: NonNull<Entry>,
    /// The word that the claim replaced: Vacant, Live or Tombstone.
    pub expected: Word,
    /// The word that the commit leaves, the bits of [`Word`]; set before the decision.
    desired: AtomicU64,
}

impl Record {
    /// A new commit with room for `claims` claims before another chunk is made.
    pub fn new(claims: usize, is_elder: bool) -> Box<Self> {
        Box::new(Self { status: AtomicU8::new(UNDECIDED), is_elder, chunks: vec![Vec::with_capacity(claims.max(1))] })
    }

    /// Whether others leave this commit alone.
    pub fn is_elder(&self) -> bool {
        self.is_elder
    }

    /// The commit's status.
    #[inline]
    pub fn status(&self) -> Status {
        // Acquire: pairs with the Release in `commit`; whoever sees Committed sees each claim's `desired` and the roots behind it.
        match self.status.load(Ordering::Acquire) {
            UNDECIDED => Status::Undecided,
            COMMITTED => Status::Committed,
            _ => Status::Aborted,
        }
    }

    /// Decides for the commit; false where somebody has aborted it.
    pub fn commit(&self) -> bool {
        // Release: pairs with the Acquire in `status`: desired words and new roots are visible to whoever sees Committed.
        // Acquire: pairs with the Release in `abort`; nothing is read behind it, it keeps the failure path ordered after the abort.
        self.status.compare_exchange(UNDECIDED, COMMITTED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Decides against the commit; false where it was decided already.
    pub fn abort(&self) -> bool {
        // Release: pairs with the Acquire in `status` and in the failing `commit`.
        // Acquire: on failure the caller goes on to read the claim's `desired`, as in `status`.
        self.status.compare_exchange(UNDECIDED, ABORTED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Adds a claim and gives its lasting address; its word is to be published by CAS.
    pub fn add(&mut self, entry: NonNull<Entry>, expected: Word, desired: Word) -> NonNull<Claim> {
        let record = NonNull::from(&mut *self);
        let last = self.chunks.last().expect("a record has a chunk from the start");
        if last.len() == last.capacity() {
            let capacity = 2 * last.capacity();
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let chunk = self.chunks.last_mut().expect("a record has a chunk from the start");
        chunk.push(Claim { record, entry, expected, desired: AtomicU64::new(desired.bits()) });
        NonNull::from(chunk.last_mut().expect("just pushed"))
    }

    /// Takes back the claim added last, whose word could not be claimed.
    pub fn remove_last(&mut self) {
        let chunk = self.chunks.last_mut().expect("a record has a chunk from the start");
        chunk.pop();
        if chunk.is_empty() && self.chunks.len() > 1 {
            self.chunks.pop();
        }
    }

    /// The claims made, in order.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.chunks.iter().flatten()
    }

    /// Bytes of the record with its claims.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<Claim>()).sum::<usize>()
    }
}

impl Claim {
    /// The commit that the claim belongs to.
    #[inline]
    pub fn record(&self) -> &Record {
        // SAFETY: invariant 3: whoever can see the claim is pinned since before the record was retired, or owns it.
        unsafe { self.record.as_ref() }
    }

    /// Says what the commit leaves in the word.
    pub fn set_desired(&self, word: Word) {
        // Relaxed: read by others only after they saw Committed, which the Release in `commit` orders after this.
        self.desired.store(word.bits(), Ordering::Relaxed);
    }

    /// What the commit leaves in the word.
    pub fn desired(&self) -> Word {
        // Relaxed: as in `set_desired`.
        Word::from_bits(self.desired.load(Ordering::Relaxed))
    }

    /// The word that the claim stands for now.
    #[inline]
    pub fn resolve(&self) -> Word {
        match self.record().status() {
            Status::Committed => self.desired(),
            Status::Undecided | Status::Aborted => self.expected,
        }
    }
}

impl Word {
    /// What the word stands for: itself, or the claimed word's present meaning. Never Claimed.
    #[inline]
    pub fn resolve(self) -> Word {
        match self.state() {
            // SAFETY: the caller read the word of an entry under its pin, so the claim is alive (invariant 3).
            State::Claimed(claim) => unsafe { claim.as_ref() }.resolve(),
            _ => self,
        }
    }
}

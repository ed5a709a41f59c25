//! The entry word: the one atomic word of a key.
//!
//! ```text
//!  63       62..48   47..4      3        2..0
//! | queued | tag   | pointer | hooked | state |
//! ```
//!
//! | state     | pointer                  | meaning |
//! | ---       | ---                      | --- |
//! | Vacant    | none                     | the key has had no value since this entry was made |
//! | Live      | [`Root`]                 | the value |
//! | Tombstone | [`Root`] without payload | deleted; the root carries only the stamp |
//! | Claimed   | [`Claim`]                | a multi-word commit has claimed the word |
//! | Dead      | none                     | the entry is being unlinked: look the key up again |
//!
//! *queued*: the entry stands in one worker's reaper, which alone may make it Dead; set with the tombstone or placeholder, cleared by the
//! reaper. *hooked*: somebody wants to hear of a change (`txn/interest.rs`); set and cleared by multi-word commits only, so that a claimed word's
//! true bit is that of the word it stands for. Both survive every other CAS ([`Word::keeping`]). *tag*: grows when a
//! claim is released to the root it found (rule 5), so that a CAS prepared before the claim fails; zero until then.

use super::claim::Claim;
use crate::sync::planted;
use crate::types::Root;
use std::ptr::NonNull;

const STATE: u64 = 0b111;
const HOOKED: u64 = 1 << 3;
const POINTER: u64 = ((1 << 48) - 1) & !0xf;
const TAG_SHIFT: u32 = 48;
const TAG: u64 = 0x7fff << TAG_SHIFT;
/// Set when the entry is given to a reaper, cleared by that reaper; every CAS keeps it.
const QUEUED: u64 = 1 << 63;

const VACANT: u64 = 0;
const LIVE: u64 = 1;
const TOMBSTONE: u64 = 2;
const CLAIMED: u64 = 3;
const DEAD: u64 = 4;

/// One value of an entry's word. Compared as a whole: equal words are the same state of the same entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(u64);

/// A word, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No value since the entry was made.
    Vacant,
    /// The value.
    Live(NonNull<Root>),
    /// Deleted.
    Tombstone(NonNull<Root>),
    /// Claimed by a multi-word commit.
    Claimed(NonNull<Claim>),
    /// Being unlinked.
    Dead,
}

fn pointer_bits<T>(pointer: NonNull<T>) -> u64 {
    let bits = pointer.as_ptr().expose_provenance() as u64;
    debug_assert_eq!(bits & !POINTER, 0, "pointers take 48 bits and are aligned to 16");
    bits
}

impl Word {
    /// A placeholder.
    pub const VACANT: Self = Self(VACANT);
    /// The entry is being unlinked.
    pub const DEAD: Self = Self(DEAD);

    /// From the atomic's value.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The atomic's value.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// A word for this root: Live, or Tombstone where the root is one.
    pub fn root(root: NonNull<Root>, is_tombstone: bool) -> Self {
        Self(pointer_bits(root) | if is_tombstone { TOMBSTONE } else { LIVE })
    }

    /// A claimed word.
    pub fn claimed(claim: NonNull<Claim>) -> Self {
        Self(pointer_bits(claim) | CLAIMED)
    }

    /// This word with the *hooked* and *queued* bits of `old`.
    pub fn keeping(self, old: Word) -> Self {
        Self(self.0 | old.0 & (HOOKED | QUEUED))
    }

    /// This word with the *queued* bit.
    pub fn queued(self) -> Self {
        Self(self.0 | QUEUED)
    }

    /// This word without the *queued* bit.
    pub fn not_queued(self) -> Self {
        Self(self.0 & !QUEUED)
    }

    /// This word with the *queued* bit of `now`, the same entry's word as it is at present.
    pub fn queued_as(self, now: Word) -> Self {
        Self(self.0 & !QUEUED | now.0 & QUEUED)
    }

    /// This word with the *hooked* bit set or cleared.
    pub fn with_hook(self, hooked: bool) -> Self {
        Self(self.0 & !HOOKED | if hooked { HOOKED } else { 0 })
    }

    /// Whether both stand for the same root, or the same absence, and the same interest in it.
    pub fn means_the_same(self, other: Word) -> bool {
        self.state() == other.state() && (self.is_hooked() == other.is_hooked() || planted("commit_ignores_hook"))
    }

    /// Whether a reaper has the entry.
    pub fn is_queued(self) -> bool {
        self.0 & QUEUED != 0
    }

    /// Whether somebody wants to hear of changes.
    pub fn is_hooked(self) -> bool {
        self.0 & HOOKED != 0
    }

    /// The same state under the next tag, which is never zero.
    pub fn next_tag(self) -> Self {
        let tag = self.0.wrapping_add(1 << TAG_SHIFT) & TAG;
        Self(self.0 & !TAG | if tag == 0 { 1 << TAG_SHIFT } else { tag })
    }

    /// Whether a commit has read the word, without changing it, since its root was installed. Whoever changes it next draws a stamp from a new
    /// reading of the clock, so that it is larger than that commit's.
    pub fn was_read(self) -> bool {
        self.0 & TAG != 0
    }

    /// The address behind the word, whatever it is.
    #[inline]
    pub fn pointer(self) -> Option<*const u8> {
        let address = (self.0 & POINTER) as usize;
        (address != 0).then(|| std::ptr::with_exposed_provenance(address))
    }

    /// The root of a Live or Tombstone word.
    #[inline]
    pub fn root_pointer(self) -> Option<NonNull<Root>> {
        match self.state() {
            State::Live(root) | State::Tombstone(root) => Some(root),
            _ => None,
        }
    }

    /// Decodes the word.
    #[inline]
    pub fn state(self) -> State {
        let address = (self.0 & POINTER) as usize;
        match self.0 & STATE {
            VACANT => State::Vacant,
            LIVE => State::Live(from_address(address)),
            TOMBSTONE => State::Tombstone(from_address(address)),
            CLAIMED => State::Claimed(from_address(address)),
            _ => State::Dead,
        }
    }
}

#[inline]
fn from_address<T>(address: usize) -> NonNull<T> {
    debug_assert_ne!(address, 0);
    // SAFETY: the three callers decode words made by `Word::root` and `Word::claimed`, from pointers that are never null.
    unsafe { NonNull::new_unchecked(std::ptr::with_exposed_provenance_mut(address)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::NewRoot;

    #[test]
    fn words_keep_their_parts_apart() {
        let new = NewRoot::integer(1, None);
        let root = NonNull::from(new.root());
        let live = Word::root(root, false);
        assert_eq!(live.state(), State::Live(root));
        assert_eq!(live.queued().state(), State::Live(root));
        assert!(live.queued().is_queued() && !live.is_queued());
        assert_ne!(live.next_tag(), live);
        assert_eq!(live.next_tag().state(), State::Live(root));
        let mut turning = live.queued();
        for _ in 0..=0x7fff {
            turning = turning.next_tag();
            assert!(turning.was_read());
        }
        assert_eq!(turning, live.queued().next_tag(), "the tag turns round without touching its neighbours");
        assert!(!live.was_read());
        assert_eq!(Word::VACANT.keeping(live.queued()), Word::VACANT.queued());
        let hooked = live.with_hook(true);
        assert!(hooked.is_hooked() && !hooked.means_the_same(live) && hooked.with_hook(false) == live);
        assert_eq!(hooked.queued_as(live.queued()), live.queued().with_hook(true));
        assert_eq!(hooked.queued().queued_as(live), hooked);
    }
}

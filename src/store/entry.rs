//! An entry of the table: one key and its word.
//!
//! ```text
//! 0      8      16     24         28           32
//! | next | word | hash | deadline | key length | key bytes ...
//! ```

use super::word::Word;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The head of an entry; the key's bytes lie behind it.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Entry {
    /// The link to the next entry or bucket; the table's own.
    pub(super) next: AtomicU64,
    word: AtomicU64,
    /// The key's hash, which is also its place in the table's order.
    pub hash: u64,
    /// The earliest tick of the deadline index at which somebody will look at this entry; 0 for none (see `expiry.rs`).
    pub(super) deadline: AtomicU32,
    key_length: u32,
}

const HEADER_BYTES: usize = std::mem::offset_of!(Entry, key_length) + 4;
const _: () = assert!(cfg!(caswell_loom) || HEADER_BYTES == 32);

impl Entry {
    fn layout_of(key_length: usize) -> Layout {
        let size = (HEADER_BYTES + key_length).max(size_of::<Entry>());
        Layout::from_size_align(size, 16).expect("a key is shorter than 4 GiB")
    }

    /// Makes an entry that nobody else sees yet.
    pub fn allocate(hash: u64, key: &[u8], word: Word) -> NonNull<Self> {
        let layout = Self::layout_of(key.len());
        let key_length = u32::try_from(key.len()).expect("a key is at most 512 MiB (proto-max-bulk-len)");
        // SAFETY: the layout is never empty: it holds the header.
        let Some(entry) = NonNull::new(unsafe { alloc(layout) }.cast::<Entry>()) else { handle_alloc_error(layout) };
        // SAFETY: a fresh allocation of at least the header and the key, aligned to 16.
        unsafe {
            entry.as_ptr().write(Entry {
                next: AtomicU64::new(0),
                word: AtomicU64::new(word.bits()),
                hash,
                deadline: AtomicU32::new(0),
                key_length,
            });
        }
        // SAFETY: `layout_of` gave `key.len()` bytes behind the header.
        unsafe {
            let to = entry.as_ptr().cast::<u8>().add(HEADER_BYTES);
            std::ptr::copy_nonoverlapping(key.as_ptr(), to, key.len());
        }
        entry
    }

    /// Frees an entry, not the root in its word.
    ///
    /// # Safety
    /// Nobody can reach the entry any more.
    pub unsafe fn free(entry: NonNull<Self>) {
        // SAFETY: the caller owns the entry, which is alive.
        let layout = Self::layout_of(unsafe { entry.as_ref() }.key_length as usize);
        // Loom's atomics must be dropped; the standard library's need not be.
        // SAFETY: as above; nothing reads the fields afterwards.
        unsafe { std::ptr::drop_in_place(entry.as_ptr()) };
        // SAFETY: `allocate` made it with this layout.
        unsafe { dealloc(entry.as_ptr().cast(), layout) }
    }

    /// Bytes of the entry's allocation.
    pub fn bytes(&self) -> usize {
        Self::layout_of(self.key_length as usize).size()
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: `allocate` wrote `key_length` bytes behind the header; they never change.
        unsafe {
            let from = std::ptr::from_ref(self).cast::<u8>().add(HEADER_BYTES);
            std::slice::from_raw_parts(from, self.key_length as usize)
        }
    }

    /// The entry's word.
    #[inline]
    pub fn load(&self) -> Word {
        // Acquire: pairs with the Release of the CAS that installed the word: the root or claim behind it is visible.
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    /// Replaces the word if it is still `current`. This is the linearization point of every single-key write.
    #[inline]
    pub fn compare_exchange(&self, current: Word, new: Word) -> Result<(), Word> {
        // Release: publishes the new root or claim to whoever loads the word.
        // Acquire: on failure the caller may follow the word it was given; on success it frees what the old word pointed to, after
        // having seen it.
        self.word
            .compare_exchange(current.bits(), new.bits(), Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Word::from_bits)
    }
}

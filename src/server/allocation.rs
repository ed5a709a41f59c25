//! The allocator: mimalloc, and a count of the bytes that are in use.
//!
//! Every thread has a slot of its own, alone on its cache line, that only it writes: counting is a load, an addition and a
//! store, all relaxed. A thread that frees what another one allocated makes its own slot negative; only the sum has a
//! meaning. Threads beyond the slots share the last one and pay an atomic addition. Slots are not given back: a thread that
//! ends leaves its balance behind, which still counts.
//!
//! Counted are the bytes asked for; what the allocator rounds up or keeps ready shows in the resident size.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use crossbeam_utils::CachePadded;
use mimalloc::MiMalloc;

use crate::limits::{ALLOCATION_SLOTS, TRIM_BYTES_MIN, TRIM_REPEATS};
use crate::sync::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// mimalloc with a count. Installed by `main.rs` only: tests and benches of the library run without.
pub struct CountingAllocator;

/// The last slot is the shared one.
static BALANCES: [CachePadded<AtomicI64>; ALLOCATION_SLOTS + 1] =
    [const { CachePadded::new(AtomicI64::new(0)) }; ALLOCATION_SLOTS + 1];
static THREADS: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

const UNASSIGNED: usize = usize::MAX;

thread_local! {
    /// Constant and without a destructor, so that reading it never allocates and works while a thread ends.
    static SLOT: Cell<usize> = const { Cell::new(UNASSIGNED) };
}

#[inline]
fn count(bytes: i64) {
    let slot = SLOT.get();
    if slot < ALLOCATION_SLOTS {
        let balance = &BALANCES[slot];
        // Relaxed, both: this thread is the only writer of its slot; readers want the sum and nothing ordered by it.
        balance.store(balance.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    } else {
        count_elsewhere(slot, bytes);
    }
}

#[cold]
fn count_elsewhere(mut slot: usize, bytes: i64) {
    if slot == UNASSIGNED {
        // Relaxed: only the number counts, which no other thread gets.
        slot = THREADS.fetch_add(1, Ordering::Relaxed).min(ALLOCATION_SLOTS);
        SLOT.set(slot);
    }
    // Relaxed: as above, but for the threads that share the last slot, whose additions must not be lost.
    BALANCES[slot].fetch_add(bytes, Ordering::Relaxed);
}

// SAFETY: every call goes to mimalloc with the arguments it came with; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    /// # Safety
    /// As [`GlobalAlloc::alloc`].
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout` is passed on.
        let pointer = unsafe { MiMalloc.alloc(layout) };
        if !pointer.is_null() {
            count(layout.size() as i64);
        }
        pointer
    }

    /// # Safety
    /// As [`GlobalAlloc::alloc_zeroed`].
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about `layout` is passed on.
        let pointer = unsafe { MiMalloc.alloc_zeroed(layout) };
        if !pointer.is_null() {
            count(layout.size() as i64);
        }
        pointer
    }

    /// # Safety
    /// As [`GlobalAlloc::dealloc`].
    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise that `pointer` came from here with `layout` is passed on.
        unsafe { MiMalloc.dealloc(pointer, layout) };
        count(-(layout.size() as i64));
    }

    /// # Safety
    /// As [`GlobalAlloc::realloc`].
    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promises about all three are passed on.
        let pointer = unsafe { MiMalloc.realloc(pointer, layout, new_size) };
        if !pointer.is_null() {
            count(new_size as i64 - layout.size() as i64);
        }
        pointer
    }
}

/// Bytes in use: asked for and not given back. Zero where the allocator is not installed. O(threads).
pub fn used() -> u64 {
    // Relaxed, both: a sum of figures that may each be a moment old.
    let threads = THREADS.load(Ordering::Relaxed).min(ALLOCATION_SLOTS + 1);
    let sum: i64 = BALANCES[..threads].iter().map(|balance| balance.load(Ordering::Relaxed)).sum();
    sum.max(0) as u64
}

/// The most bytes that were in use whenever somebody asked here or [`note_peak`] looked (ten times a second).
pub fn peak() -> u64 {
    note_peak()
}

/// Looks whether more is in use than ever before; the most so far.
pub fn note_peak() -> u64 {
    let used = used();
    // Relaxed: the figure orders nothing.
    PEAK.fetch_max(used, Ordering::Relaxed).max(used)
}

/// Gives memory back to the system after much has become free at once: many clients that left, a database that was emptied. By
/// itself the allocator does so only while it is in use. One for each thread that allocates; it is to be called from there now and then.
#[derive(Debug, Default)]
pub struct Trim {
    /// The most bytes in use since memory was given back last.
    highest: u64,
    /// How many of the next looks give memory back again: the allocator lets only one thread at a time do so, and another may have been at it.
    again: u32,
}

impl Trim {
    /// Looks at the bytes in use. O(threads); O(pages of the thread) if much has become free.
    pub fn tick(&mut self) {
        let used = used();
        if used + (self.highest / 8).max(TRIM_BYTES_MIN) <= self.highest {
            self.highest = used;
            self.again = TRIM_REPEATS;
        } else {
            self.highest = self.highest.max(used);
            if self.again == 0 {
                return;
            }
            self.again -= 1;
        }
        // SAFETY: the function may be called at any time from any thread; it looks at the thread's own pages.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test for both, because the sum is the process's.
    #[test]
    fn what_is_asked_for_and_given_back_is_counted_once() {
        a_larger_size_counts_the_difference();
        what_another_thread_frees_is_counted_once();
    }

    fn what_another_thread_frees_is_counted_once() {
        let before = used();
        let layout = Layout::from_size_align(1 << 20, 64).expect("a valid layout");
        // SAFETY: the layout's size is not zero.
        let address = unsafe { CountingAllocator.alloc(layout) } as usize;
        assert_ne!(address, 0);
        assert_eq!(used(), before + (1 << 20));
        let free = move || {
            // SAFETY: allocated above with the same layout, and freed nowhere else.
            unsafe { CountingAllocator.dealloc(address as *mut u8, layout) };
        };
        std::thread::spawn(free).join().expect("the thread ends");
        assert_eq!(used(), before);
        assert!(peak() >= before);
    }

    fn a_larger_size_counts_the_difference() {
        let layout = Layout::from_size_align(1 << 20, 8).expect("a valid layout");
        let before = used();
        // SAFETY: the layout's size is not zero.
        let pointer = unsafe { CountingAllocator.alloc_zeroed(layout) };
        // SAFETY: allocated just above with this layout; the new size is not zero.
        let pointer = unsafe { CountingAllocator.realloc(pointer, layout, 3 << 20) };
        assert_eq!(used(), before + (3 << 20));
        let grown = Layout::from_size_align(3 << 20, 8).expect("a valid layout");
        // SAFETY: allocated above and grown to this layout.
        unsafe { CountingAllocator.dealloc(pointer, grown) };
        assert_eq!(used(), before);
    }
}

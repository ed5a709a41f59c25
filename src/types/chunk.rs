//! Packed chunks of list elements, and windows onto them.
//!
//! ```text
//! grows at the back:   | bytes of elements 0 1 2 ... ->      free      <- ... lengths of 2 1 0 |
//! grows at the front:  | lengths of ... 2 1 0 (from the back) ->  free  <- bytes of elements   |
//! ```
//!
//! A length takes two bytes and stands apart from the elements' bytes. In both kinds of chunk, whoever walks the elements from front to back
//! finds the bytes at growing addresses and the lengths at falling ones, so one loop reads both, in either direction, and an index is
//! found by summing neighbouring lengths.
//!
//! A [`Window`] is the part of a chunk that a list shows. To pop is to narrow the window; to push is to claim room beyond its outer edge
//! (rule 4 of docs/commit-protocol.md):
//!
//! 1. `claimed` (slots and bytes, counted from where the chunk began to grow) never falls once the chunk is published.
//! 2. A push claims by CAS, and only from exactly the edge of its own window; else it copies what it needs into a new chunk. So no two pushes
//!    ever own the same slot, and a slot that any reader can see is never written again.
//! 3. Elements beyond one's own window are touched through raw pointers only.
//! 4. What was written becomes visible with the CAS on the entry word (Release) that publishes the window; readers load that word with Acquire.
//!
//! A push that loses leaves its claimed slots behind as a gap that ends the chunk's growth: the next push finds the edge and the claim apart
//! and begins another chunk. Checked by `deque_*` in loom-tests.
//!
//! An element too large for a packed chunk has a [`blob`] of its own, and a window that shows just that.

use super::blob;
use super::node::{Attempt, NodeHeader, NodeKind, NodePtr, Witness};
use super::seq::{Leaf, Side};
use crate::limits::{LIST_CHUNK_BYTES, LIST_PACKED_ELEMENT_BYTES_MAX};
use crate::sync::{AtomicU32, Ordering, planted};
use bytes::Bytes;
use std::alloc::Layout;
use std::ops::Range;

#[repr(C)]
struct Chunk {
    header: NodeHeader,
    /// Claimed slots (upper half) and claimed bytes (lower half).
    claimed: AtomicU32,
    capacity: u16,
    grows: Side,
    witness: Witness,
}

const SLOT_BYTES: usize = size_of::<u16>();
const OVERHEAD_BYTES: usize = if cfg!(caswell_loom) { 24 } else { size_of::<Chunk>() };
const ALLOCATION_BYTES_MIN: usize = 64;
/// Payload bytes of the largest packed chunk.
pub(super) const CAPACITY_MAX: usize = LIST_CHUNK_BYTES - OVERHEAD_BYTES;
const _: () = assert!(cfg!(caswell_loom) || OVERHEAD_BYTES == 24);
const _: () = assert!(
    LIST_CHUNK_BYTES.is_power_of_two() && LIST_CHUNK_BYTES <= 1 << 15 && align_of::<Chunk>() >= align_of::<u16>()
);
// Splitting one chunk around a new element gives two that fit.
const _: () = assert!(2 * (LIST_PACKED_ELEMENT_BYTES_MAX + SLOT_BYTES) <= CAPACITY_MAX);

/// The payload of a new chunk for `used` bytes. With room to grow, allocations are powers of two; a chunk that need not grow fits closely.
pub(super) fn capacity_for(used: usize, spare: usize) -> usize {
    let allocation = (used + spare).min(CAPACITY_MAX) + OVERHEAD_BYTES;
    let allocation =
        if spare > 0 { allocation.next_power_of_two() } else { allocation.next_multiple_of(ALLOCATION_BYTES_MIN) };
    allocation.max(ALLOCATION_BYTES_MIN) - OVERHEAD_BYTES
}

fn layout_for(capacity: usize) -> Layout {
    let size = size_of::<Chunk>() + capacity;
    // SAFETY: the alignment is a power of two, and a chunk's size is at most some KiB.
    unsafe { Layout::from_size_align_unchecked(size, align_of::<Chunk>()) }
}

/// # Safety
/// The node is alive and a packed chunk.
unsafe fn of<'a>(node: NodePtr) -> &'a Chunk {
    // SAFETY: the caller says so; after `build`, only the claim among these fields changes, which is atomic.
    unsafe { &*node.cast::<Chunk>() }
}

/// # Safety
/// The node is alive and a packed chunk.
pub(super) unsafe fn layout(node: NodePtr) -> Layout {
    // SAFETY: passed on to the caller.
    layout_for(usize::from(unsafe { of(node) }.capacity))
}

/// # Safety
/// The node is alive, a packed chunk, ours alone, and about to be deallocated.
pub(super) unsafe fn drop_fields(node: NodePtr) {
    let chunk = node.cast::<Chunk>();
    // SAFETY: the caller says that nobody else uses the node; the capacity, which `layout` needs, stays.
    unsafe { std::ptr::drop_in_place(&raw mut (*chunk).claimed) };
    // SAFETY: as the line before.
    unsafe { std::ptr::drop_in_place(&raw mut (*chunk).witness) };
}

/// The part of a chunk that a list shows; all elements of it, from front to back.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Window {
    /// `None` where there is no element.
    chunk: Option<NodePtr>,
    /// Where the length of the first element stands, in slots from the start of the payload; [`LARGE`] for an element on its own.
    first: u16,
    count: u16,
    /// The bytes of all elements, from the start of the payload. Of an element on its own: its length's lower and upper half, in as far
    /// as that fits.
    start: u16,
    end: u16,
}

const LARGE: u16 = u16::MAX;
const _: () = assert!(size_of::<Window>() == 16);

impl Leaf for Window {
    fn weight(&self) -> u64 {
        u64::from(self.count)
    }
    fn node(&self) -> NodePtr {
        self.chunk.expect("a window in a sequence has elements")
    }
}

/// What a new chunk is built from, in order.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Some elements of a packed window.
    Run(Window, usize, usize),
    /// One small element.
    Element(&'a [u8]),
}

impl Source<'_> {
    /// Elements and their bytes.
    ///
    /// # Safety
    /// The windows' chunks are alive.
    unsafe fn size(&self) -> (usize, usize) {
        match *self {
            Source::Run(_, from, to) if from >= to => (0, 0),
            // SAFETY: passed on to the caller.
            Source::Run(window, from, to) => (to - from, unsafe { window.byte_range(from, to) }.len()),
            Source::Element(element) => (1, element.len()),
        }
    }
}

/// Payload bytes that the sources take in a chunk.
///
/// # Safety
/// The windows' chunks are alive.
pub(super) unsafe fn used_by(sources: &[Source<'_>]) -> usize {
    sources
        .iter()
        .map(|source| {
            // SAFETY: passed on to the caller.
            let (count, bytes) = unsafe { source.size() };
            bytes + count * SLOT_BYTES
        })
        .sum()
}

impl Window {
    pub(super) const EMPTY: Self = Self { chunk: None, first: 0, count: 0, start: 0, end: 0 };

    pub(super) fn is_empty(&self) -> bool {
        self.chunk.is_none()
    }

    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        usize::from(self.count)
    }

    pub(super) fn is_large(&self) -> bool {
        self.first == LARGE
    }

    /// About how many bytes the window's chunk takes, without a look at it.
    pub(super) fn bytes(&self) -> usize {
        match (self.chunk, self.is_large()) {
            (None, _) => 0,
            (_, false) => OVERHEAD_BYTES + self.used(),
            (_, true) => blob::OVERHEAD_BYTES + usize::from(self.start) + (usize::from(self.end) << 16),
        }
    }

    /// Payload bytes that the elements of a packed window take.
    pub(super) fn used(&self) -> usize {
        debug_assert!(!self.is_large());
        usize::from(self.end - self.start) + self.len() * SLOT_BYTES
    }

    pub(super) fn node(&self) -> Option<NodePtr> {
        self.chunk
    }

    /// A window onto one element in a chunk of its own.
    pub(super) fn large(element: &[u8], attempt: &mut Attempt) -> Self {
        let length = u32::try_from(element.len()).unwrap_or(u32::MAX);
        let (start, end) = (length as u16, (length >> 16) as u16);
        Self { chunk: Some(blob::make_of(element, attempt)), first: LARGE, count: 1, start, end }
    }

    /// A window onto a new chunk with these elements, and room for `spare` more bytes that grows at `side`.
    ///
    /// # Safety
    /// The windows' chunks are alive.
    ///
    /// # Panics
    /// When all that does not fit in one chunk ([`CAPACITY_MAX`]).
    pub(super) unsafe fn build(side: Side, spare: usize, sources: &[Source<'_>], attempt: &mut Attempt) -> Self {
        let (mut count, mut bytes) = (0, 0);
        for source in sources {
            // SAFETY: passed on to the caller.
            let (more, more_bytes) = unsafe { source.size() };
            count += more;
            bytes += more_bytes;
        }
        if count == 0 {
            return Self::EMPTY;
        }
        let used = bytes + count * SLOT_BYTES;
        assert!(used <= CAPACITY_MAX, "the sources fit in one chunk");
        let capacity = capacity_for(used, spare);
        let node = attempt.make(NodeKind::Chunk, layout_for(capacity));
        let chunk = node.cast::<Chunk>();
        // SAFETY: the node was just made with a chunk's layout; the header is initialised and stays as it is.
        unsafe { (&raw mut (*chunk).claimed).write(AtomicU32::new(claim_word(count, bytes))) };
        // SAFETY: as the line before: the field lies within the fresh allocation.
        unsafe { (&raw mut (*chunk).capacity).write(capacity as u16) };
        // SAFETY: as the line before: the field lies within the fresh allocation.
        unsafe { (&raw mut (*chunk).grows).write(side) };
        // SAFETY: as the line before: the field lies within the fresh allocation.
        unsafe { (&raw mut (*chunk).witness).write(Witness::new(capacity / SLOT_BYTES)) };
        let (first, start) = match side {
            Side::Front => (count - 1, capacity - bytes),
            Side::Back => (capacity / SLOT_BYTES - 1, 0),
        };
        let window = Self {
            chunk: Some(node),
            first: first as u16,
            count: count as u16,
            start: start as u16,
            end: (start + bytes) as u16,
        };
        // SAFETY: the attempt made the chunk, and the whole window was sized for these sources.
        unsafe { window.fill(0, 0, sources) };
        for source in sources {
            if let Source::Run(..) = source {
                // SAFETY: passed on to the caller.
                attempt.count_copied(unsafe { source.size() }.1);
            }
        }
        window
    }

    /// Writes the sources into the window, from element `at` on, whose bytes begin `skipped` bytes behind the window's first byte.
    ///
    /// # Safety
    /// All chunks are alive; the elements are claimed by the caller and seen by nobody else; the sources take that much room.
    unsafe fn fill(&self, mut at: usize, skipped: usize, sources: &[Source<'_>]) {
        let node = self.node().expect("a window that is filled has a chunk");
        // SAFETY: the caller says that the chunk is alive and that these elements lie within it.
        let mut to = unsafe { payload(node).add(usize::from(self.start) + skipped) };
        for source in sources {
            // SAFETY: passed on to the caller.
            let (count, bytes) = unsafe { source.size() };
            if count == 0 {
                continue;
            }
            // Lengths stand at falling addresses: `lengths` is where that of the source's last element goes.
            // SAFETY: the caller says that the elements lie within the chunk.
            let lengths = unsafe { self.length_ptr(at + count - 1) };
            // SAFETY: passed on to the caller.
            unsafe { self.witness(at..at + count, Witness::write) };
            let (from, from_lengths) = match *source {
                Source::Element(element) => {
                    debug_assert!(element.len() <= LIST_PACKED_ELEMENT_BYTES_MAX);
                    // SAFETY: the slot is claimed, and as slots count from an even payload it is aligned.
                    unsafe { lengths.write(element.len() as u16) };
                    (element.as_ptr(), None)
                }
                Source::Run(window, first, end) => {
                    // SAFETY: passed on to the caller.
                    unsafe { window.witness(first..end, Witness::read) };
                    // SAFETY: a window that has elements has a live chunk, and the range lies within it.
                    let start = unsafe { window.byte_range(first, end) }.start;
                    let node = window.node().expect("a run has elements");
                    // SAFETY: as the line before.
                    (unsafe { payload(node).add(start).cast_const() }, Some(unsafe { window.length_ptr(end - 1) }))
                }
            };
            if let Some(from_lengths) = from_lengths {
                // SAFETY: `count` lengths end at each of the two places, in chunks of their own or in claimed slots that no source shows.
                unsafe { std::ptr::copy_nonoverlapping(from_lengths.cast_const(), lengths, count) };
            }
            // SAFETY: the source has these bytes and the window has room for them, which no source shows.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            // SAFETY: the window ends at or behind the bytes just written.
            to = unsafe { to.add(bytes) };
            at += count;
        }
    }

    /// Tells loom of a read or write of elements' slots.
    ///
    /// # Safety
    /// The chunk is alive and packed.
    #[inline(always)]
    unsafe fn witness(&self, elements: Range<usize>, tell: fn(&Witness, Range<usize>)) {
        if cfg!(caswell_loom) && !elements.is_empty() {
            let first = usize::from(self.first);
            let node = self.node().expect("a window with elements has a chunk");
            // SAFETY: passed on to the caller.
            tell(&unsafe { of(node) }.witness, first + 1 - elements.end..first + 1 - elements.start);
        }
    }

    /// Where the length of element `at` stands.
    ///
    /// # Safety
    /// The window is packed and has such an element (or has claimed it).
    #[inline]
    unsafe fn length_ptr(&self, at: usize) -> *mut u16 {
        let node = self.node().expect("a window with elements has a chunk");
        // SAFETY: the caller says that the element exists, so its slot lies within the payload, which is even.
        unsafe { payload(node).cast::<u16>().add(usize::from(self.first) - at) }
    }

    /// The bytes of elements `from..to`, from the start of the payload. Sums the fewer lengths from either end.
    ///
    /// # Safety
    /// The window is packed, its chunk alive, and `from <= to <= len`.
    unsafe fn byte_range(&self, from: usize, to: usize) -> Range<usize> {
        // SAFETY: passed on to the caller.
        let start = usize::from(self.start) + unsafe { self.sum(0, from) };
        let end = if to == self.len() {
            usize::from(self.end)
        } else {
            // SAFETY: passed on to the caller.
            start + unsafe { self.sum(from, to) }
        };
        start..end
    }

    /// The sum of the lengths of elements `from..to`.
    ///
    /// # Safety
    /// The window is packed, its chunk alive, and `from <= to <= len`.
    unsafe fn sum(&self, from: usize, to: usize) -> usize {
        if from >= to {
            return 0;
        }
        // SAFETY: passed on to the caller.
        unsafe { self.witness(from..to, Witness::read) };
        // SAFETY: these elements are published (or the caller's attempt wrote them), and their lengths stand side by side.
        let lengths = unsafe { std::slice::from_raw_parts(self.length_ptr(to - 1).cast_const(), to - from) };
        lengths.iter().map(|length| u32::from(*length)).sum::<u32>() as usize
    }

    /// The element at `at`.
    ///
    /// # Safety
    /// The chunk is alive, and the bytes are not changed while the slice lives; `at < len`.
    #[inline]
    pub(super) unsafe fn get<'a>(&self, at: usize) -> &'a [u8] {
        debug_assert!(at < self.len());
        let node = self.node().expect("a window with elements has a chunk");
        if self.is_large() {
            // SAFETY: a large window's node is a blob that is published as a whole.
            return unsafe { blob::bytes(node, 0..blob::capacity(node)) };
        }
        // SAFETY: passed on to the caller.
        unsafe { self.witness(at..at + 1, Witness::read) };
        // SAFETY: the caller says that the element exists.
        let length = usize::from(unsafe { self.length_ptr(at).read() });
        let offset = if at >= self.len() / 2 {
            // SAFETY: passed on to the caller.
            usize::from(self.end) - unsafe { self.sum(at, self.len()) }
        } else {
            // SAFETY: passed on to the caller.
            usize::from(self.start) + unsafe { self.sum(0, at) }
        };
        // SAFETY: the element's bytes lie within the payload and are initialised, as its length is.
        unsafe { std::slice::from_raw_parts(payload(node).add(offset).cast_const(), length) }
    }

    /// The element of a large window, with a count of its own on the chunk.
    ///
    /// # Safety
    /// The window is large and its chunk alive.
    pub(super) unsafe fn share(&self) -> Bytes {
        let node = self.node().expect("a large window has an element");
        // SAFETY: passed on to the caller; the chunk is published as a whole and never changed in place.
        unsafe { blob::share(node, 0..blob::capacity(node)) }
    }

    /// The window without its first (or last) `count` elements; the chunk stays as it is.
    ///
    /// # Safety
    /// The chunk is alive; `count < len`.
    #[inline]
    pub(super) unsafe fn narrow(&mut self, side: Side, count: usize) {
        debug_assert!(count < self.len() && !self.is_large());
        match side {
            Side::Front => {
                // SAFETY: passed on to the caller.
                self.start += unsafe { self.sum(0, count) } as u16;
                self.first -= count as u16;
            }
            Side::Back => {
                // SAFETY: passed on to the caller.
                self.end -= unsafe { self.sum(self.len() - count, self.len()) } as u16;
            }
        }
        self.count -= count as u16;
    }

    /// Payload bytes of a packed window's chunk.
    ///
    /// # Safety
    /// The chunk is alive and packed.
    pub(super) unsafe fn capacity(&self) -> usize {
        let node = self.node().expect("a window with a capacity has a chunk");
        // SAFETY: passed on to the caller.
        usize::from(unsafe { of(node) }.capacity)
    }

    /// Adds the sources' elements at `side` in the chunk's spare room. False where there is no room there, or another push has claimed it.
    ///
    /// # Safety
    /// The chunk is alive, and so are the sources'.
    #[inline]
    pub(super) unsafe fn try_push(&mut self, side: Side, source: Source<'_>, attempt: &mut Attempt) -> bool {
        let Some(node) = self.node().filter(|_| !self.is_large()) else { return false };
        // SAFETY: the caller says that the chunk is alive; a window that is not large is packed.
        let chunk = unsafe { of(node) };
        if chunk.grows != side {
            return false;
        }
        let capacity = usize::from(chunk.capacity);
        let (slots, bytes) = match side {
            Side::Front => (usize::from(self.first) + 1, capacity - usize::from(self.start)),
            Side::Back => (capacity / SLOT_BYTES - 1 - usize::from(self.first) + self.len(), usize::from(self.end)),
        };
        // SAFETY: passed on to the caller.
        let (more, more_bytes) = unsafe { source.size() };
        if bytes + more_bytes + (slots + more) * SLOT_BYTES > capacity {
            return false;
        }
        let claim = claim_word(slots + more, bytes + more_bytes);
        // SAFETY: passed on to the caller.
        if unsafe { attempt.owns(node) } || planted("list_push_unclaimed") {
            // Relaxed: nobody else sees the chunk before the Release CAS that publishes it.
            chunk.claimed.store(claim, Ordering::Relaxed);
        } else if chunk
            .claimed
            // Relaxed: only one claim can succeed from this edge, and nobody has written or read beyond it; what is written there is
            // published by the Release CAS on the entry word.
            .compare_exchange(claim_word(slots, bytes), claim, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        let mut wider = *self;
        wider.count += more as u16;
        let (at, skipped) = match side {
            Side::Front => {
                wider.first += more as u16;
                wider.start -= more_bytes as u16;
                (0, 0)
            }
            Side::Back => {
                wider.end += more_bytes as u16;
                (self.len(), usize::from(self.end - self.start))
            }
        };
        // SAFETY: the elements beyond the old edge have just been claimed, and there is room for them.
        unsafe { wider.fill(at, skipped, std::slice::from_ref(&source)) };
        *self = wider;
        true
    }

    /// The elements from `at` on, walked towards `side`.
    ///
    /// # Safety
    /// The chunk is alive, and stays so and unchanged while the run is used; `at < len`.
    pub(super) unsafe fn run(&self, at: usize, side: Side) -> Run {
        // SAFETY: passed on to the caller.
        let element = unsafe { self.get(at) };
        let remaining = if side == Side::Back { self.len() - at } else { at + 1 };
        if self.is_large() {
            return Run {
                bytes: element.as_ptr(),
                lengths: std::ptr::null(),
                remaining,
                large_length: element.len(),
                #[cfg(caswell_loom)]
                window: *self,
                #[cfg(caswell_loom)]
                at,
            };
        }
        let bytes = if side == Side::Back { element.as_ptr() } else { element.as_ptr_range().end };
        // SAFETY: the caller says that the element exists.
        let lengths = unsafe { self.length_ptr(at) }.cast_const();
        Run {
            bytes,
            lengths,
            remaining,
            large_length: 0,
            #[cfg(caswell_loom)]
            window: *self,
            #[cfg(caswell_loom)]
            at,
        }
    }
}

/// Elements of one window that are still to be walked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The next element's first byte (walking to the back), or the byte behind its last one (walking to the front).
    bytes: *const u8,
    /// The next element's length; null for an element on its own.
    lengths: *const u16,
    pub(super) remaining: usize,
    large_length: usize,
    #[cfg(caswell_loom)]
    window: Window,
    #[cfg(caswell_loom)]
    at: usize,
}

impl Run {
    pub(super) const EMPTY: Self = Self {
        bytes: std::ptr::null(),
        lengths: std::ptr::null(),
        remaining: 0,
        large_length: 0,
        #[cfg(caswell_loom)]
        window: Window::EMPTY,
        #[cfg(caswell_loom)]
        at: 0,
    };

    /// The next element towards `side`.
    ///
    /// # Safety
    /// The chunk is alive, and the elements are not changed while the slice lives; `side` is the one given to [`Window::run`].
    #[inline]
    pub(super) unsafe fn next<'a>(&mut self, side: Side) -> Option<&'a [u8]> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        if self.lengths.is_null() {
            // SAFETY: `Window::run` took these from the element itself.
            return Some(unsafe { std::slice::from_raw_parts(self.bytes, self.large_length) });
        }
        #[cfg(caswell_loom)]
        {
            // SAFETY: `at` counts the elements that `remaining` counts.
            unsafe { self.window.witness(self.at..self.at + 1, Witness::read) };
            self.at = if side == Side::Back { self.at + 1 } else { self.at.wrapping_sub(1) };
        }
        // SAFETY: `remaining` says that there is another element, whose length stands here.
        let length = usize::from(unsafe { self.lengths.read() });
        Some(match side {
            Side::Back => {
                // SAFETY: the element's bytes begin here.
                let element = unsafe { std::slice::from_raw_parts(self.bytes, length) };
                self.bytes = self.bytes.wrapping_add(length);
                self.lengths = self.lengths.wrapping_sub(1);
                element
            }
            Side::Front => {
                self.bytes = self.bytes.wrapping_sub(length);
                self.lengths = self.lengths.wrapping_add(1);
                // SAFETY: the element's bytes end where the bytes of the one behind it begin.
                unsafe { std::slice::from_raw_parts(self.bytes, length) }
            }
        })
    }
}

/// The first payload byte; what others may write is reached through this raw pointer only.
#[inline]
fn payload(node: NodePtr) -> *mut u8 {
    node.cast::<u8>().wrapping_add(size_of::<Chunk>())
}

#[inline]
fn claim_word(slots: usize, bytes: usize) -> u32 {
    (slots as u32) << 16 | bytes as u32
}

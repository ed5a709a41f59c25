//! Large payload chunks: parts of ropes, and large list elements. They alone carry a count.
//!
//! ```text
//! | header | count | claimed | capacity | bytes: published ... | claimed ... | free ... |
//! ```
//!
//! The root that reaches a chunk owns one count, and each reply that holds the chunk across a socket write another one (rule 3 of
//! docs/commit-protocol.md); whoever gives up the last count frees it. Bytes are changed in place only by the attempt that made the chunk, and
//! only while nobody else holds a count. Room behind the published bytes is claimed before it is written (rule 4; see
//! [`chunk`](super::chunk), where the same protocol is told in full).

use super::node::{Attempt, NodeHeader, NodeKind, NodePtr, Witness};
use crate::sync::{AtomicU32, Ordering, fence, planted};
use bytes::Bytes;
use std::alloc::Layout;

#[repr(C)]
struct Blob {
    header: NodeHeader,
    count: AtomicU32,
    /// Bytes that somebody has claimed; never falls once the chunk is published. Chunks of 4 GiB and more have no room to claim.
    claimed: AtomicU32,
    capacity: usize,
    witness: Witness,
}

/// Bytes of a chunk's allocation that are not payload.
pub(super) const OVERHEAD_BYTES: usize = size_of::<Blob>();

fn layout_for(capacity: usize) -> Layout {
    Layout::from_size_align(OVERHEAD_BYTES + capacity, align_of::<Blob>())
        .map(|layout| layout.pad_to_align())
        .expect("a payload fits in memory")
}

/// # Safety
/// The node is alive and a blob.
unsafe fn of<'a>(node: NodePtr) -> &'a Blob {
    // SAFETY: the caller says so; after `make`, only the atomics of these fields change.
    unsafe { &*node.cast::<Blob>() }
}

/// The first payload byte; bytes that others may write are reached through this raw pointer only.
fn payload(node: NodePtr) -> *mut u8 {
    // The fields end where the payload begins; `wrapping_add` because a node that is not alive may be asked, too.
    node.cast::<u8>().wrapping_add(OVERHEAD_BYTES)
}

/// # Safety
/// The node is alive and a blob.
pub(super) unsafe fn layout(node: NodePtr) -> Layout {
    // SAFETY: passed on to the caller.
    layout_for(unsafe { of(node) }.capacity)
}

/// # Safety
/// The node is alive and a blob.
pub(super) unsafe fn capacity(node: NodePtr) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { of(node) }.capacity
}

/// A new chunk whose first `claimed` bytes the caller writes next.
pub(super) fn make(capacity: usize, claimed: usize, attempt: &mut Attempt) -> NodePtr {
    debug_assert!(claimed <= capacity);
    let node = attempt.make(NodeKind::Blob, layout_for(capacity));
    let blob = node.cast::<Blob>();
    // SAFETY: the node was just made with a blob's layout; the header is initialised and stays as it is.
    unsafe { (&raw mut (*blob).count).write(AtomicU32::new(1)) };
    // SAFETY: as the line before: the field lies within the fresh allocation.
    unsafe { (&raw mut (*blob).claimed).write(AtomicU32::new(claimed as u32)) };
    // SAFETY: as the line before: the field lies within the fresh allocation.
    unsafe { (&raw mut (*blob).capacity).write(capacity) };
    // SAFETY: as the line before: the field lies within the fresh allocation.
    unsafe { (&raw mut (*blob).witness).write(Witness::new(capacity)) };
    node
}

/// A new chunk of exactly these bytes.
pub(super) fn make_of(bytes: &[u8], attempt: &mut Attempt) -> NodePtr {
    let node = make(bytes.len(), bytes.len(), attempt);
    // SAFETY: `make` gave this attempt a chunk with so many claimed bytes.
    unsafe { write(node, 0, bytes) };
    node
}

/// Copies bytes into the chunk.
///
/// # Safety
/// The node is alive and a blob; the range lies within its capacity and was claimed by the caller, or the caller's attempt made the chunk and
/// nobody else holds a count.
pub(super) unsafe fn write(node: NodePtr, at: usize, bytes: &[u8]) {
    // SAFETY: the caller says that the node is alive.
    unsafe { of(node) }.witness.write(at..at + bytes.len());
    // SAFETY: the caller says that the range lies within the capacity and that nobody else touches it; the source is another object.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), payload(node).add(at), bytes.len()) }
}

/// Sets bytes of the chunk to zero.
///
/// # Safety
/// As [`write()`].
pub(super) unsafe fn write_zeros(node: NodePtr, at: usize, length: usize) {
    // SAFETY: the caller says that the node is alive.
    unsafe { of(node) }.witness.write(at..at + length);
    // SAFETY: the caller says that the range lies within the capacity and that nobody else touches it.
    unsafe { std::ptr::write_bytes(payload(node).add(at), 0, length) }
}

/// Bytes of the chunk.
///
/// # Safety
/// The node is alive and a blob, the range has been published (or written by the caller's attempt), and is not changed while the slice lives.
pub(super) unsafe fn bytes<'a>(node: NodePtr, range: std::ops::Range<usize>) -> &'a [u8] {
    // SAFETY: the caller says that the node is alive.
    unsafe { of(node) }.witness.read(range.clone());
    // SAFETY: the caller says that the range is initialised and stays unchanged.
    unsafe { std::slice::from_raw_parts(payload(node).add(range.start), range.len()) }
}

/// Claims `length` bytes behind the first `published` ones; false where there is no room or somebody else was faster.
///
/// # Safety
/// The node is alive and a blob.
pub(super) unsafe fn claim(node: NodePtr, published: usize, length: usize, attempt: &Attempt) -> bool {
    // SAFETY: passed on to the caller.
    let blob = unsafe { of(node) };
    if length > blob.capacity - published {
        return false;
    }
    // SAFETY: passed on to the caller.
    if unsafe { attempt.owns(node) } || planted("rope_append_unclaimed") {
        // Relaxed: nobody else sees the chunk before the Release CAS that publishes it.
        blob.claimed.store((published + length) as u32, Ordering::Relaxed);
        return true;
    }
    // Relaxed: only one claim can succeed from this length, and nobody has written or read behind it; what is written there is
    // published by the Release CAS on the entry word.
    blob.claimed
        .compare_exchange(published as u32, (published + length) as u32, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

/// Whether the attempt may change published bytes of the chunk in place.
///
/// # Safety
/// The node is alive and a blob.
pub(super) unsafe fn is_exclusive(node: NodePtr, attempt: &Attempt) -> bool {
    // Acquire: pairs with the Release in `release`: a reply that has let go of the chunk has read it before.
    // SAFETY: passed on to the caller.
    unsafe { attempt.owns(node) && (of(node).count.load(Ordering::Acquire) == 1 || planted("rope_write_shared")) }
}

/// Gives up one count, and frees the chunk with the last one.
///
/// # Safety
/// The node is alive and a blob; the caller owns the count and does not use the node afterwards.
pub(super) unsafe fn release(node: NodePtr) {
    // SAFETY: passed on to the caller.
    let blob = unsafe { of(node) };
    // Release: what this holder read or wrote comes before the free; pairs with the fence below and the load in `is_exclusive`.
    if blob.count.fetch_sub(1, Ordering::Release) == 1 {
        // Acquire: pairs with the Release of every other holder's decrement.
        fence(Ordering::Acquire);
        // SAFETY: the count was the last one, so nobody else can reach the node.
        unsafe { drop_fields(node) };
        // SAFETY: as the line before; nothing touches the node below.
        unsafe { node.deallocate() }
    }
}

/// # Safety
/// The node is alive, a blob, ours alone, and about to be deallocated.
unsafe fn drop_fields(node: NodePtr) {
    let blob = node.cast::<Blob>();
    // SAFETY: the caller says that nobody else uses the node; the capacity, which `layout` needs, stays.
    unsafe { std::ptr::drop_in_place(&raw mut (*blob).witness) };
    // SAFETY: as the line before.
    unsafe { std::ptr::drop_in_place(&raw mut (*blob).count) };
    // SAFETY: as the line before.
    unsafe { std::ptr::drop_in_place(&raw mut (*blob).claimed) };
}

/// A count on a chunk, held by a reply: some of its published bytes, which stay as they are while it lives.
struct Hold {
    node: NodePtr,
    start: usize,
    length: usize,
}

// SAFETY: the bytes held are never changed while a count is held, and the count is atomic.
unsafe impl Send for Hold {}

impl AsRef<[u8]> for Hold {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the count keeps the node alive, and `share` was given published bytes.
        unsafe { bytes(self.node, self.start..self.start + self.length) }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: the count is this value's own, taken in `share`.
        unsafe { release(self.node) }
    }
}

/// Published bytes of the chunk with a count of their own, so that they outlive the pin.
///
/// # Safety
/// As [`bytes()`]; from now on nobody changes the range in place (`is_exclusive` sees the count).
pub(super) unsafe fn share(node: NodePtr, range: std::ops::Range<usize>) -> Bytes {
    // Relaxed: the caller reaches the node, so its owner's count keeps it alive meanwhile.
    // SAFETY: passed on to the caller.
    unsafe { of(node) }.count.fetch_add(1, Ordering::Relaxed);
    Bytes::from_owner(Hold { node, start: range.start, length: range.len() })
}

//! Nodes of the persistent structures, and the attempt that makes and replaces them.
//!
//! The current root owns every node reachable from it; there are no reference counts (but for large payload chunks, see
//! [`blob`]). An update lists the nodes it made and the nodes it replaced: success retires the replaced ones, failure frees the
//! made ones (rule 2 of docs/commit-protocol.md).
//!
//! Invariants:
//! 1. A node is listed as made by at most one attempt, the one whose id its header carries, and only until that attempt ends.
//! 2. A published node's header and payload never change, but for atomics and for room that nobody has published yet.
//! 3. A node that an attempt made and then replaced was never visible to anybody else: it is freed at once and leaves both lists.

use super::{blob, chunk, seq};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// What a node is; says how large it is and how it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum NodeKind {
    /// A node of the counted sequence tree.
    Sequence,
    /// A packed chunk of list elements.
    Chunk,
    /// A counted payload chunk: part of a rope, or one large list element.
    Blob,
}

/// Begins every node: what kind it is, which attempt made it, where it stands in that attempt's list.
#[repr(C)]
#[derive(Debug)]
pub struct NodeHeader {
    /// The attempt that made the node; never changes.
    attempt: u64,
    /// The node's place in that attempt's list of made nodes; nobody else reads it, and it means nothing once the attempt has ended.
    made_index: u32,
    kind: NodeKind,
    /// Of a sequence node: its height above the leaves.
    pub(super) level: u8,
    /// Of a sequence node: how many of its slots are filled.
    pub(super) fill: u16,
}

const _: () = assert!(size_of::<NodeHeader>() == 16);

/// A node of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodePtr(NonNull<NodeHeader>);

// SAFETY: a node pointer is only a number until somebody follows it, which is unsafe wherever it is done.
unsafe impl Send for NodePtr {}

impl NodePtr {
    /// The node as what its kind says it is.
    pub(super) fn cast<T>(self) -> *mut T {
        self.0.as_ptr().cast()
    }

    /// # Safety
    /// The node is alive.
    pub(super) unsafe fn kind(self) -> NodeKind {
        // SAFETY: the caller says that the node is alive; every node begins with its header.
        unsafe { (*self.0.as_ptr()).kind }
    }

    /// The attempt that made the node.
    ///
    /// # Safety
    /// The node is alive.
    unsafe fn attempt(self) -> u64 {
        // SAFETY: the caller says that the node is alive; every node begins with its header.
        unsafe { (*self.0.as_ptr()).attempt }
    }

    /// # Safety
    /// The node is alive.
    unsafe fn layout(self) -> Layout {
        // SAFETY: the caller says that the node is alive.
        match unsafe { self.kind() } {
            NodeKind::Sequence => seq::LAYOUT,
            // SAFETY: the node is alive, and its kind was just read.
            NodeKind::Chunk => unsafe { chunk::layout(self) },
            // SAFETY: the node is alive, and its kind was just read.
            NodeKind::Blob => unsafe { blob::layout(self) },
        }
    }

    /// Bytes of the node's allocation.
    ///
    /// # Safety
    /// The node is alive.
    pub unsafe fn bytes(self) -> usize {
        // SAFETY: passed on to the caller.
        unsafe { self.layout() }.size()
    }

    /// Frees the node alone, not the nodes it points to (a counted chunk loses one count).
    ///
    /// # Safety
    /// Nobody can reach the node any more (a holder of a chunk's count aside), and it is freed once.
    pub unsafe fn free(self) {
        // SAFETY: the caller says that the node is alive.
        match unsafe { self.kind() } {
            // SAFETY: the caller gives up the root's count, which it owned.
            NodeKind::Blob => unsafe { blob::release(self) },
            NodeKind::Chunk => {
                // SAFETY: nobody else can reach the node; what it holds beside plain bytes is dropped once.
                unsafe { chunk::drop_fields(self) };
                // SAFETY: nobody else can reach the node, and nothing touches it below.
                unsafe { self.deallocate() }
            }
            // SAFETY: nobody else can reach the node, and nothing touches it below.
            NodeKind::Sequence => unsafe { self.deallocate() },
        }
    }

    /// Gives the allocation back.
    ///
    /// # Safety
    /// Nobody can reach the node any more, and nobody touches it afterwards.
    pub(super) unsafe fn deallocate(self) {
        // SAFETY: the node is still alive here.
        let layout = unsafe { self.layout() };
        // SAFETY: `Attempt::make` allocated the node with the layout that its kind and fields still give.
        unsafe { dealloc(self.0.as_ptr().cast(), layout) }
    }
}

/// In model builds, one loom cell for each unit of a payload whose room is claimed piece by piece, so that loom sees every plain read and
/// write of it. Nothing in other builds.
pub(super) struct Witness {
    #[cfg(caswell_loom)]
    cells: Box<[loom::cell::UnsafeCell<()>]>,
}

#[cfg(not(caswell_loom))]
impl Witness {
    #[inline(always)]
    pub(super) fn new(_units: usize) -> Self {
        Self {}
    }
    #[inline(always)]
    pub(super) fn read(&self, _units: std::ops::Range<usize>) {}
    #[inline(always)]
    pub(super) fn write(&self, _units: std::ops::Range<usize>) {}
}

#[cfg(caswell_loom)]
impl Witness {
    pub(super) fn new(units: usize) -> Self {
        Self { cells: (0..units).map(|_| loom::cell::UnsafeCell::new(())).collect() }
    }
    pub(super) fn read(&self, units: std::ops::Range<usize>) {
        self.cells[units].iter().for_each(|cell| cell.with(|_| ()));
    }
    pub(super) fn write(&self, units: std::ops::Range<usize>) {
        self.cells[units].iter().for_each(|cell| cell.with_mut(|_| ()));
    }
}

/// The nodes one attempt made and replaced. An attempt that is dropped has failed.
#[derive(Debug, Default)]
pub struct Attempt {
    id: u64,
    made: Vec<NodePtr>,
    replaced: Vec<NodePtr>,
    copied_bytes: u64,
}

impl Attempt {
    /// Begins an attempt with an id that no other attempt of the process ever has (0 is nobody's).
    ///
    /// # Panics
    /// When the attempt before has neither succeeded nor failed.
    pub fn begin(&mut self, id: u64) {
        assert!(self.made.is_empty() && self.replaced.is_empty(), "an attempt ends before the next one begins");
        self.id = id;
        self.copied_bytes = 0;
    }

    /// The attempt succeeded: forgets what it made and gives what it replaced, to be freed after a grace period.
    pub fn succeed(&mut self) -> impl Iterator<Item = NodePtr> + '_ {
        self.made.clear();
        self.replaced.drain(..)
    }

    /// The attempt failed: frees what it made and forgets what it replaced.
    pub fn fail(&mut self) {
        self.replaced.clear();
        for node in self.made.drain(..) {
            // SAFETY: a node in `made` was never published (else `succeed` had forgotten it) and is listed once.
            unsafe { node.free() }
        }
    }

    /// Gives back room for more nodes than this.
    pub fn shrink_to(&mut self, nodes: usize) {
        self.made.shrink_to(nodes);
        self.replaced.shrink_to(nodes);
    }

    /// Bytes that this attempt has copied from existing nodes into new ones.
    pub fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Gives up a node that the value being made no longer reaches: frees it if this attempt made it, else lists it as replaced.
    ///
    /// # Safety
    /// The node is alive, belongs to the value that this attempt changes, and is given up once.
    pub unsafe fn replace(&mut self, node: NodePtr) {
        // SAFETY: the caller says that the node is alive.
        if !unsafe { self.owns(node) } {
            self.replaced.push(node);
            return;
        }
        // SAFETY: the node is alive, and as the header carries this attempt's id the index is this attempt's to read.
        let index = unsafe { (*node.0.as_ptr()).made_index } as usize;
        let removed = self.made.swap_remove(index);
        debug_assert_eq!(removed, node);
        if let Some(moved) = self.made.get(index) {
            // SAFETY: nodes in `made` are alive, and their index belongs to this attempt, which runs on one thread.
            unsafe { (*moved.0.as_ptr()).made_index = index as u32 }
        }
        // SAFETY: the node just left `made`: it was never published, and the caller gives it up.
        unsafe { node.free() }
    }

    /// Whether this attempt made the node, so that nobody else can reach it.
    ///
    /// # Safety
    /// The node is alive.
    #[inline]
    pub(super) unsafe fn owns(&self, node: NodePtr) -> bool {
        // SAFETY: passed on to the caller.
        unsafe { node.attempt() == self.id }
    }

    /// Allocates a node and lists it as made. Only its header is initialised.
    #[inline]
    pub(super) fn make(&mut self, kind: NodeKind, layout: Layout) -> NodePtr {
        debug_assert!(self.id != 0 && layout.size() >= size_of::<NodeHeader>());
        // SAFETY: a node's layout is never empty: it holds the header.
        let Some(node) = NonNull::new(unsafe { alloc(layout) }.cast::<NodeHeader>()) else {
            handle_alloc_error(layout)
        };
        let made_index = u32::try_from(self.made.len()).expect("an attempt makes fewer than 2^32 nodes");
        // SAFETY: a fresh allocation of at least the header; each layout is aligned to eight or more.
        unsafe { node.as_ptr().write(NodeHeader { attempt: self.id, made_index, kind, level: 0, fill: 0 }) };
        self.made.push(NodePtr(node));
        NodePtr(node)
    }

    /// Counts bytes copied from an existing node into a new one.
    #[inline]
    pub(super) fn count_copied(&mut self, bytes: usize) {
        self.copied_bytes += bytes as u64;
    }

    /// The nodes made so far, for tests that keep a ledger of what is alive.
    #[cfg(test)]
    pub(crate) fn made(&self) -> &[NodePtr] {
        &self.made
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.fail();
    }
}

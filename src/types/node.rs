//! Nodes of the persistent structures, and the attempt that makes and replaces them.
//!
//! The current root owns every node reachable from it; there are no reference counts (but for large payload chunks). An update lists the
//! nodes it made and the nodes it replaced: success retires the replaced ones, failure frees the made ones (rule 2 of
//! docs/commit-protocol.md).
#![allow(missing_docs, unused_variables, reason = "signatures only until the types branch lands")]

use std::ptr::NonNull;

/// Begins every node: what kind it is, which attempt made it, where it stands in that attempt's list.
#[repr(C)]
pub struct NodeHeader {}

/// A node of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePtr(NonNull<NodeHeader>);

// SAFETY: a node pointer is only a number until somebody follows it, which is unsafe wherever it is done.
unsafe impl Send for NodePtr {}

impl NodePtr {
    /// Bytes of the node's allocation.
    ///
    /// # Safety
    /// The node is alive.
    pub unsafe fn bytes(self) -> usize {
        unimplemented!()
    }

    /// Frees the node alone, not the nodes it points to (a counted chunk loses one count).
    ///
    /// # Safety
    /// Nobody can reach the node any more, and it is freed once.
    pub unsafe fn free(self) {
        unimplemented!()
    }
}

/// The nodes one attempt made and replaced.
#[derive(Debug, Default)]
pub struct Attempt {}

impl Attempt {
    /// Begins an attempt with an id that no other attempt of the process ever has (0 is nobody's).
    pub fn begin(&mut self, id: u64) {}

    /// The attempt succeeded: forgets what it made and gives what it replaced, to be freed after a grace period.
    pub fn succeed(&mut self) -> impl Iterator<Item = NodePtr> {
        std::iter::empty()
    }

    /// The attempt failed: frees what it made and forgets what it replaced.
    pub fn fail(&mut self) {}
}

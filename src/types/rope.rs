//! Long strings.
#![allow(missing_docs, unused_variables, reason = "signatures only until the types branch lands")]

use super::{Attempt, NodePtr};
use bytes::Bytes;

/// A long string: a fixed-size head that lives in the root and points to its chunks. No `Drop`.
#[derive(Debug)]
#[repr(C)]
pub struct Rope {
    length: u64,
}

impl Rope {
    /// A rope of these bytes.
    pub fn new(parts: &[&[u8]], attempt: &mut Attempt) -> Self {
        unimplemented!()
    }
    pub fn len(&self) -> usize {
        unimplemented!()
    }
    pub fn append(&mut self, bytes: &[u8], attempt: &mut Attempt) {
        unimplemented!()
    }
    /// Overwrites from `offset` on, padding with zero bytes where the string ends before.
    pub fn write(&mut self, offset: usize, bytes: &[u8], attempt: &mut Attempt) {
        unimplemented!()
    }
    /// The bytes of a range, chunk by chunk.
    pub fn chunks(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &[u8]> {
        std::iter::empty()
    }
    /// The bytes of a range, chunk by chunk, each holding a count on its chunk so that it may outlive the pin.
    pub fn shared_chunks(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Bytes> {
        std::iter::empty()
    }
    pub fn copy(&self, attempt: &mut Attempt) -> Rope {
        unimplemented!()
    }
    pub fn share(&self) -> Rope {
        unimplemented!()
    }
    /// # Safety
    /// The tree is alive.
    pub unsafe fn for_each_node(&self, visit: &mut dyn FnMut(NodePtr)) {
        unimplemented!()
    }
}

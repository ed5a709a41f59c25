//! Lists.
#![allow(missing_docs, unused_variables, reason = "signatures only until the types branch lands")]

use super::{Attempt, NodePtr};

/// A list: a fixed-size head that lives in the root and points to its nodes. No `Drop`: nodes belong to attempts and roots.
#[derive(Debug)]
#[repr(C)]
pub struct List {
    length: u64,
}

impl List {
    pub fn new() -> Self {
        unimplemented!()
    }
    pub fn len(&self) -> usize {
        unimplemented!()
    }
    pub fn is_empty(&self) -> bool {
        unimplemented!()
    }
    pub fn push_front(&mut self, element: &[u8], attempt: &mut Attempt) {
        unimplemented!()
    }
    pub fn push_back(&mut self, element: &[u8], attempt: &mut Attempt) {
        unimplemented!()
    }
    pub fn pop_front(&mut self, attempt: &mut Attempt) -> Option<Vec<u8>> {
        unimplemented!()
    }
    pub fn pop_back(&mut self, attempt: &mut Attempt) -> Option<Vec<u8>> {
        unimplemented!()
    }
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        unimplemented!()
    }
    /// Elements from `start` on, forwards.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        std::iter::empty()
    }
    /// Elements from `start` on, backwards.
    pub fn iter_back_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        std::iter::empty()
    }
    pub fn set(&mut self, index: usize, element: &[u8], attempt: &mut Attempt) {
        unimplemented!()
    }
    /// Inserts before `index` (`index == len` appends).
    pub fn insert(&mut self, index: usize, element: &[u8], attempt: &mut Attempt) {
        unimplemented!()
    }
    pub fn remove_range(&mut self, range: std::ops::Range<usize>, attempt: &mut Attempt) {
        unimplemented!()
    }
    /// A list of the same elements that shares no node with this one (COPY).
    pub fn copy(&self, attempt: &mut Attempt) -> List {
        unimplemented!()
    }
    /// The same head, for a root that replaces this one's.
    pub fn share(&self) -> List {
        unimplemented!()
    }
    /// # Safety
    /// The tree is alive.
    pub unsafe fn for_each_node(&self, visit: &mut dyn FnMut(NodePtr)) {
        unimplemented!()
    }
    /// Whether Redis 7.2 would call it a listpack under this list-max-listpack-size, else a quicklist.
    pub fn bytes(&self) -> usize {
        unimplemented!()
    }
}

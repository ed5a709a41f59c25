//! Long strings: ropes of counted chunks.
//!
//! The head below lives in the root. All chunks but the last stand in a counted tree; the last one, the tail, has spare room that an APPEND claims
//! (rule 4 of docs/commit-protocol.md; the protocol is told in [`chunk`](super::chunk)). A change in the middle copies the chunks that it
//! touches, [`ROPE_CHUNK_BYTES`] each, and the path to them, whatever the length of the string.

use super::blob;
use super::node::{Attempt, NodePtr};
use super::seq::{Cursor, Leaf, Sequence, Side};
use crate::limits::ROPE_CHUNK_BYTES;
use bytes::Bytes;
use std::ops::Range;

/// Payload of each of a rope's chunks; only the tail may hold fewer bytes.
const CAPACITY: usize = if cfg!(caswell_loom) { ROPE_CHUNK_BYTES } else { ROPE_CHUNK_BYTES - blob::OVERHEAD_BYTES };

/// A chunk in the tree and how many bytes of it belong to the string, from its first one on.
#[derive(Clone, Copy)]
#[repr(C)]
struct Piece {
    blob: NodePtr,
    length: u64,
}

impl Leaf for Piece {
    fn weight(&self) -> u64 {
        self.length
    }
    fn node(&self) -> NodePtr {
        self.blob
    }
}

/// A long string: a fixed-size head that lives in the root and points to its chunks. No `Drop`: nodes belong to attempts and roots.
///
/// Invariant: as for [`List`](super::List), the nodes are alive while the rope can be reached, and each method that takes an attempt changes a
/// rope of that attempt's own.
#[repr(C)]
pub struct Rope {
    middle: Sequence<Piece>,
    tail: Option<NodePtr>,
    tail_length: u64,
    length: u64,
}

impl Rope {
    /// A rope of these bytes.
    pub fn new(parts: &[&[u8]], attempt: &mut Attempt) -> Self {
        let mut rope = Self { middle: Sequence::EMPTY, tail: None, tail_length: 0, length: 0 };
        for part in parts {
            rope.append(part, attempt);
        }
        rope
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds bytes at the end. Copies at most the last chunk, and that only where its spare room was claimed by somebody else.
    pub fn append(&mut self, bytes: &[u8], attempt: &mut Attempt) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (tail, from, count) = self.claim(rest.len(), attempt);
            let (now, later) = rest.split_at(count);
            // SAFETY: `claim` has claimed these bytes of a live chunk.
            unsafe { blob::write(tail, from, now) };
            rest = later;
        }
    }

    fn append_zeros(&mut self, mut count: usize, attempt: &mut Attempt) {
        while count > 0 {
            let (tail, from, claimed) = self.claim(count, attempt);
            // SAFETY: `claim` has claimed these bytes of a live chunk.
            unsafe { blob::write_zeros(tail, from, claimed) };
            count -= claimed;
        }
    }

    /// Lengthens the string by up to `wanted` bytes, which the caller writes next: the chunk, where in it they begin, and how many.
    fn claim(&mut self, wanted: usize, attempt: &mut Attempt) -> (NodePtr, usize, usize) {
        debug_assert!(wanted > 0);
        let mut used = self.tail_length as usize;
        let room = self.tail.map_or(0, |_| CAPACITY - used);
        let count = wanted.min(if room == 0 { CAPACITY } else { room });
        let tail = match self.tail {
            // SAFETY: the rope's invariant keeps the tail alive.
            Some(tail) if room > 0 && unsafe { blob::claim(tail, used, count, attempt) } => tail,
            Some(tail) if room > 0 => {
                let copy = blob::make(CAPACITY, used + count, attempt);
                // SAFETY: the tail's first `used` bytes are the string's, and the copy is the attempt's own.
                unsafe { blob::write(copy, 0, blob::bytes(tail, 0..used)) };
                attempt.count_copied(used);
                // SAFETY: the tail is replaced in the line after.
                unsafe { attempt.replace(tail) };
                self.tail = Some(copy);
                copy
            }
            full => {
                if let Some(blob) = full {
                    let piece = Piece { blob, length: self.tail_length };
                    // SAFETY: the rope's invariant keeps the tree alive.
                    unsafe { self.middle.push(Side::Back, piece, attempt) };
                }
                used = 0;
                let tail = blob::make(CAPACITY, count, attempt);
                self.tail = Some(tail);
                tail
            }
        };
        self.tail_length = (used + count) as u64;
        self.length += count as u64;
        (tail, used, count)
    }

    /// Overwrites from `offset` on, padding with zero bytes where the string ends before. Copies the chunks that it touches (but those that it
    /// overwrites whole), and the path to each.
    pub fn write(&mut self, offset: usize, bytes: &[u8], attempt: &mut Attempt) {
        if offset > self.len() {
            self.append_zeros(offset - self.len(), attempt);
        }
        let (mut over, beyond) = bytes.split_at(bytes.len().min(self.len() - offset));
        let mut position = offset;
        while !over.is_empty() {
            let middle_length = (self.length - self.tail_length) as usize;
            let count;
            if position >= middle_length {
                count = over.len();
                let tail = self.tail.expect("the bytes behind the tree are the tail's");
                let piece = Piece { blob: tail, length: self.tail_length };
                self.tail = Some(overwrite(piece, position - middle_length, over, true, attempt).blob);
            } else {
                let mut written = 0;
                // SAFETY: the rope's invariant keeps the tree alive; the position lies within it.
                unsafe {
                    self.middle.update(position as u64, attempt, |piece, at, may_be_own, attempt| {
                        written = over.len().min((piece.length - at) as usize);
                        overwrite(piece, at as usize, &over[..written], may_be_own, attempt)
                    });
                }
                count = written;
            }
            over = &over[count..];
            position += count;
        }
        self.append(beyond, attempt);
    }

    /// The bytes of a range, chunk by chunk.
    ///
    /// # Panics
    /// When the range does not lie within the string.
    pub fn chunks(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        // SAFETY: the rope's invariant keeps the chunks alive and unchanged while the rope is borrowed.
        self.pieces(range).map(|(blob, range)| unsafe { blob::bytes(blob, range) })
    }

    /// The bytes of a range, chunk by chunk, each holding a count on its chunk so that it may outlive the pin.
    ///
    /// # Panics
    /// When the range does not lie within the string.
    pub fn shared_chunks(&self, range: Range<usize>) -> impl Iterator<Item = Bytes> {
        // SAFETY: the rope's invariant keeps the chunks alive while the rope is borrowed.
        self.pieces(range).map(|(blob, range)| unsafe { blob::share(blob, range) })
    }

    fn pieces(&self, range: Range<usize>) -> Pieces<'_> {
        assert!(range.start <= range.end && range.end <= self.len(), "the range lies within the string");
        let middle_length = (self.length - self.tail_length) as usize;
        let mut pieces = Pieces {
            rope: self,
            cursor: None,
            skip: range.start.saturating_sub(middle_length),
            remaining: range.len(),
        };
        if range.start < middle_length && !range.is_empty() {
            // SAFETY: the rope's invariant keeps the tree alive while the rope is borrowed; the position lies within it.
            let (cursor, within) = unsafe { self.middle.cursor(range.start as u64) };
            pieces.cursor = Some(cursor);
            pieces.skip = within as usize;
        }
        pieces
    }

    /// A rope of the same bytes that shares no chunk with this one (COPY).
    pub fn copy(&self, attempt: &mut Attempt) -> Rope {
        let mut copy = Self::new(&[], attempt);
        for chunk in self.chunks(0..self.len()) {
            copy.append(chunk, attempt);
        }
        copy
    }

    /// The same head, for a root that replaces this one's.
    pub fn share(&self) -> Rope {
        Rope { middle: self.middle, tail: self.tail, tail_length: self.tail_length, length: self.length }
    }

    /// Calls `visit` for every node, children first: `visit` may free what it is given.
    ///
    /// # Safety
    /// The tree is alive, and if `visit` frees nodes, the rope is not used afterwards.
    pub unsafe fn for_each_node(&self, visit: &mut dyn FnMut(NodePtr)) {
        // SAFETY: passed on to the caller.
        unsafe { self.middle.for_each_node(visit) };
        self.tail.into_iter().for_each(visit);
    }

    /// About how many bytes the nodes take. Walks the tree, but looks into no chunk.
    pub fn bytes(&self) -> usize {
        let tail = if self.tail.is_some() { ROPE_CHUNK_BYTES } else { 0 };
        // SAFETY: the rope's invariant keeps the tree alive.
        tail + unsafe { self.middle.bytes(&|piece| blob::OVERHEAD_BYTES + piece.length as usize) }
    }
}

impl std::fmt::Debug for Rope {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rope").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The piece with `bytes` from `at` on: the same chunk if the attempt may change it, else a new one.
fn overwrite(piece: Piece, at: usize, bytes: &[u8], may_be_own: bool, attempt: &mut Attempt) -> Piece {
    let Piece { blob, length } = piece;
    // SAFETY: the piece came out of a rope of the attempt's own, whose invariant keeps the chunk alive.
    if may_be_own && unsafe { blob::is_exclusive(blob, attempt) } {
        // SAFETY: the chunk is exclusive, and the caller says that the bytes lie within the piece.
        unsafe { blob::write(blob, at, bytes) };
        return piece;
    }
    let length = length as usize;
    let copy = blob::make(CAPACITY, length, attempt);
    let end = at + bytes.len();
    // The chunk in one piece, unless much of it is overwritten: that is faster than around the bytes.
    if bytes.len() * 4 < length {
        // SAFETY: the piece's bytes are published, and the copy is the attempt's own.
        unsafe { blob::write(copy, 0, blob::bytes(blob, 0..length)) };
    } else {
        // SAFETY: the piece's bytes are published, and the copy is the attempt's own.
        unsafe { blob::write(copy, 0, blob::bytes(blob, 0..at)) };
        // SAFETY: as the line before.
        unsafe { blob::write(copy, end, blob::bytes(blob, end..length)) };
    }
    // SAFETY: the copy is the attempt's own.
    unsafe { blob::write(copy, at, bytes) };
    attempt.count_copied(length);
    // SAFETY: the caller puts the copy in the chunk's place.
    unsafe { attempt.replace(blob) };
    Piece { blob: copy, length: length as u64 }
}

/// Parts of chunks that make up a range.
struct Pieces<'a> {
    rope: &'a Rope,
    /// The present chunk's place in the tree; `None` for the tail.
    cursor: Option<Cursor<Piece>>,
    /// Bytes of the present chunk that come before the range.
    skip: usize,
    remaining: usize,
}

impl Iterator for Pieces<'_> {
    type Item = (NodePtr, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        let start = std::mem::take(&mut self.skip);
        let piece = match &mut self.cursor {
            Some(cursor) => {
                // SAFETY: the rope is borrowed, and its invariant keeps the tree alive.
                let piece = unsafe { cursor.leaf() };
                // SAFETY: as the line before.
                if !unsafe { cursor.advance(Side::Back) } {
                    self.cursor = None;
                }
                piece
            }
            None => Piece { blob: self.rope.tail?, length: self.rope.tail_length },
        };
        let count = self.remaining.min(piece.length as usize - start);
        self.remaining -= count;
        Some((piece.blob, start..start + count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ledger::{Ledger, Random, seeds};

    fn nodes(rope: &Rope) -> Vec<NodePtr> {
        let mut nodes = Vec::new();
        // SAFETY: the test keeps the rope's nodes alive, and the visitor frees nothing.
        unsafe { rope.for_each_node(&mut |node| nodes.push(node)) };
        nodes
    }

    fn assert_same(rope: &Rope, model: &[u8], random: &mut Random) {
        assert_eq!(rope.len(), model.len());
        let start = random.below(model.len() + 1);
        let end = start + random.below(model.len() - start + 1);
        for range in [0..model.len(), start..end] {
            assert!(rope.chunks(range.clone()).flatten().eq(&model[range]));
        }
        // SAFETY: the test keeps the rope's nodes alive.
        unsafe { rope.middle.check() };
    }

    #[test]
    fn a_rope_behaves_like_a_vector_and_so_do_its_snapshots_and_replies() {
        for seed in seeds(10, 1000) {
            eprintln!("seed {seed}");
            let mut random = Random::new(seed);
            let mut ledger = Ledger::default();
            let mut model = random.bytes(CAPACITY * 5);
            let mut rope = Rope::new(&[&model[..7], &model[7..]], ledger.begin());
            assert!(ledger.succeed().is_empty());
            let mut snapshots: Vec<(Rope, Vec<u8>, Vec<NodePtr>)> = Vec::new();
            let mut replies: Vec<(Vec<Bytes>, Vec<u8>)> = Vec::new();
            for _ in 0..100 {
                let (mut new, mut new_model) = (rope.share(), model.clone());
                let attempt = ledger.begin();
                for _ in 0..1 + random.below(3) {
                    match random.below(4) {
                        0 => {
                            let length = random.below(CAPACITY * 3);
                            let bytes = random.bytes(length);
                            new.append(&bytes, attempt);
                            new_model.extend_from_slice(&bytes);
                        }
                        1 => {
                            let bytes = random.bytes(8);
                            new.append(&bytes, attempt);
                            new_model.extend_from_slice(&bytes);
                        }
                        2 => {
                            let offset = random.below(new_model.len() + CAPACITY * 2);
                            let length = if random.below(2) == 0 { 1 } else { random.below(CAPACITY * 2) };
                            let bytes = random.bytes(length);
                            new.write(offset, &bytes, attempt);
                            if new_model.len() < offset + length {
                                new_model.resize(offset + length, 0);
                            }
                            new_model[offset..offset + length].copy_from_slice(&bytes);
                        }
                        _ => {
                            let start = random.below(new_model.len());
                            let range = start..start + random.below(new_model.len() - start);
                            replies.push((new.shared_chunks(range.clone()).collect(), new_model[range].to_vec()));
                        }
                    }
                }
                if random.below(4) == 0 {
                    ledger.fail();
                } else {
                    let replaced = ledger.succeed();
                    snapshots.push((rope, model, replaced));
                    (rope, model) = (new, new_model);
                }
                if random.below(4) == 0 {
                    ledger.check(nodes(&rope));
                    assert_same(&rope, &model, &mut random);
                    snapshots.iter().for_each(|(rope, model, _)| assert_same(rope, model, &mut random));
                }
                if random.below(10) == 0 {
                    snapshots.drain(..).for_each(|(.., replaced)| Ledger::free(replaced));
                }
            }
            snapshots.into_iter().for_each(|(.., replaced)| Ledger::free(replaced));
            let copy = rope.copy(ledger.begin());
            ledger.succeed();
            assert_same(&copy, &model, &mut random);
            ledger.end(nodes(&rope).into_iter().chain(nodes(&copy)));
            // Replies outlive the rope, and show what it was when they were made.
            for (chunks, bytes) in replies {
                assert!(chunks.iter().flatten().eq(&bytes));
            }
        }
    }

    #[test]
    fn a_change_in_a_long_string_copies_little() {
        let mut ledger = Ledger::default();
        let mut rope = Rope::new(&[&vec![b'x'; 20_000_000]], ledger.begin());
        ledger.succeed();
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let offset = random.below(rope.len());
            rope.write(offset, b"y", ledger.begin());
            assert!(ledger.attempt.copied_bytes() <= 128 * 1024);
            Ledger::free(ledger.succeed());
            rope.append(b"z", ledger.begin());
            assert!(ledger.attempt.copied_bytes() <= 128 * 1024);
            Ledger::free(ledger.succeed());
        }
        ledger.end(nodes(&rope));
    }
}

//! A string, whichever form its root keeps it in.

use super::args::parse_integer;
use super::error::CommandError;
use crate::limits::ROPE_THRESHOLD_BYTES;
use crate::resp::Reply;
use crate::txn::Transaction;
use crate::types::{Attempt, NewRoot, Root, Rope, StringEncoding, View};
use std::borrow::Cow;
use std::ops::Range;

/// The longest text of a 64-bit integer: a minus sign and 19 digits.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// A string value, borrowed from its root.
#[derive(Clone, Copy, Debug)]
pub enum StringValue<'a> {
    /// The decimal form of an integer.
    Integer(i64),
    /// Bytes that lie together.
    Bytes(&'a [u8]),
    /// Bytes in chunks.
    Rope(&'a Rope),
}

impl<'a> StringValue<'a> {
    /// The string that a root holds; an error when it holds another type.
    #[inline]
    pub fn of(root: &'a Root) -> Result<Self, CommandError> {
        match root.view() {
            Some(View::Integer(number)) => Ok(Self::Integer(number)),
            Some(View::Bytes(bytes)) => Ok(Self::Bytes(bytes)),
            Some(View::Rope(rope)) => Ok(Self::Rope(rope)),
            _ => Err(CommandError::WRONG_TYPE),
        }
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        match self {
            Self::Integer(number) => itoa::Buffer::new().format(number).len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Rope(rope) => rope.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The number that the string spells in its shortest form.
    #[inline]
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Bytes(bytes) => parse_integer(bytes),
            Self::Rope(_) => None,
        }
    }

    /// All bytes together: copied from a rope, written to `digits` from an integer, borrowed otherwise.
    pub fn bytes<'b>(self, digits: &'b mut itoa::Buffer) -> Cow<'b, [u8]>
    where
        'a: 'b,
    {
        match self {
            Self::Integer(number) => Cow::Borrowed(digits.format(number).as_bytes()),
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            Self::Rope(rope) => {
                let mut all = Vec::with_capacity(rope.len());
                rope.chunks(0..rope.len()).for_each(|chunk| all.extend_from_slice(chunk));
                Cow::Owned(all)
            }
        }
    }

    /// Answers with the whole string.
    #[inline]
    pub fn reply(self, reply: &mut Reply) {
        match self {
            Self::Integer(number) => reply.bulk_integer(number),
            Self::Bytes(bytes) => reply.bulk(bytes),
            Self::Rope(rope) => reply_rope(rope, 0..rope.len(), reply),
        }
    }

    /// Answers with the bytes of a range, which lies inside the string.
    pub fn reply_range(self, range: Range<usize>, reply: &mut Reply) {
        match self {
            Self::Integer(number) => reply.bulk(&itoa::Buffer::new().format(number).as_bytes()[range]),
            Self::Bytes(bytes) => reply.bulk(&bytes[range]),
            Self::Rope(rope) => reply_rope(rope, range, reply),
        }
    }
}

/// Chunks of long strings leave by reference; what is short is copied, which is cheaper than a count and a segment.
fn reply_rope(rope: &Rope, range: Range<usize>, reply: &mut Reply) {
    reply.bulk_begin(range.len());
    if range.len() <= ROPE_THRESHOLD_BYTES {
        rope.chunks(range).for_each(|chunk| reply.bulk_part(chunk));
    } else {
        rope.shared_chunks(range).for_each(|chunk| reply.bulk_shared(chunk));
    }
    reply.bulk_end();
}

/// A root for a string that a client has given whole: an integer where the text is one in its shortest form.
#[inline]
pub fn new_string(tx: &mut Transaction<'_>, bytes: &[u8], expiry_ms: Option<i64>) -> NewRoot {
    if bytes.len() <= INTEGER_TEXT_BYTES_MAX
        && let Some(number) = parse_integer(bytes)
    {
        return NewRoot::integer(number, expiry_ms);
    }
    new_text(tx, bytes, expiry_ms)
}

/// A root for a string that stays text even where it spells an integer.
#[inline]
pub fn new_text(tx: &mut Transaction<'_>, bytes: &[u8], expiry_ms: Option<i64>) -> NewRoot {
    if bytes.len() > ROPE_THRESHOLD_BYTES {
        return NewRoot::rope(Rope::new(&[bytes], tx.attempt()), expiry_ms);
    }
    NewRoot::bytes(bytes, StringEncoding::Whole, expiry_ms)
}

/// A root for a string made of parts.
pub fn from_parts(parts: &[&[u8]], encoding: StringEncoding, expiry_ms: Option<i64>, attempt: &mut Attempt) -> NewRoot {
    if parts.iter().map(|part| part.len()).sum::<usize>() > ROPE_THRESHOLD_BYTES {
        return NewRoot::rope(Rope::new(parts, attempt), expiry_ms);
    }
    NewRoot::concatenation(parts, encoding, expiry_ms)
}

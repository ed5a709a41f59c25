//! The encoder: one growing buffer of replies in either protocol version, with large payload chunks kept by reference.

use crate::command::error::CommandError;
use crate::limits::ROPE_THRESHOLD_BYTES;
use bytes::Bytes;

/// The protocol version a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2, the default.
    #[default]
    Resp2,
    /// RESP3, after `HELLO 3`.
    Resp3,
}

/// A payload that leaves by reference, inserted at an offset of the buffer.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Where in the buffer the payload belongs.
    pub offset: usize,
    /// The payload.
    pub payload: Bytes,
}

/// A place in the reply to go back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    buffer: usize,
    segments: usize,
}

/// Replies on their way to one client.
#[derive(Debug, Default)]
pub struct Reply {
    buffer: Vec<u8>,
    segments: Vec<Segment>,
    protocol: Protocol,
    /// What stands before this is no reply to the present command.
    kept: Mark,
}

impl Reply {
    /// An empty reply buffer for a client that speaks `protocol`.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, ..Self::default() }
    }

    /// The protocol version replies are encoded in.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol version for what is written from here on.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Whether the client speaks RESP3.
    pub fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// Bytes written so far, payloads by reference included.
    pub fn len(&self) -> usize {
        self.buffer.len() + self.segments.iter().map(|segment| segment.payload.len()).sum::<usize>()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.segments.is_empty()
    }

    /// The bytes that are not payloads by reference.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The payloads by reference, by growing offset.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bytes that the buffer has room for.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Everything as one vector of bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        let mut from = 0;
        for segment in &self.segments {
            all.extend_from_slice(&self.buffer[from..segment.offset]);
            all.extend_from_slice(&segment.payload);
            from = segment.offset;
        }
        all.extend_from_slice(&self.buffer[from..]);
        all
    }

    /// Forgets everything and keeps the buffer's room.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.segments.clear();
        self.kept = Mark::default();
    }

    /// Takes the buffer and the segments out, leaving an empty reply.
    pub fn take(&mut self) -> (Vec<u8>, Vec<Segment>) {
        self.kept = Mark::default();
        (std::mem::take(&mut self.buffer), std::mem::take(&mut self.segments))
    }

    /// Gives a used buffer's room back for the replies to come.
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.buffer.is_empty() && self.segments.is_empty() {
            buffer.clear();
            self.buffer = buffer;
        }
    }

    /// The present end.
    pub fn mark(&self) -> Mark {
        Mark { buffer: self.buffer.len(), segments: self.segments.len() }
    }

    /// Takes back what was written since `mark`.
    pub fn rewind(&mut self, mark: Mark) {
        self.buffer.truncate(mark.buffer);
        self.segments.truncate(mark.segments);
    }

    /// Says that what was written so far is not the reply to the present command (messages, confirmations of subscriptions), and so is to leave
    /// even where a reply is not wanted.
    pub fn keep(&mut self) {
        self.kept = self.mark();
    }

    /// Takes back the reply to the present command, which began at `mark`.
    pub fn withdraw(&mut self, mark: Mark) {
        self.rewind(mark.max(self.kept));
    }

    /// What was written since `mark`, without payloads by reference.
    pub fn since(&self, mark: Mark) -> &[u8] {
        &self.buffer[mark.buffer..]
    }

    #[inline]
    fn header(&mut self, kind: u8, number: i64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        self.buffer.reserve(digits.len() + 3);
        self.buffer.push(kind);
        self.buffer.extend_from_slice(digits);
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// Adds another reply behind what was written; the other is empty afterwards.
    pub fn append(&mut self, other: &mut Self) {
        let before = self.buffer.len();
        self.buffer.append(&mut other.buffer);
        let moved = |segment: Segment| Segment { offset: before + segment.offset, ..segment };
        self.segments.extend(other.segments.drain(..).map(moved));
    }

    /// Adds replies that were encoded before.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// `+OK`
    pub fn ok(&mut self) {
        self.buffer.extend_from_slice(b"+OK\r\n");
    }

    /// A simple string; must hold no line break.
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']));
        self.buffer.push(b'+');
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// An error; line breaks become spaces, as in Redis.
    pub fn error(&mut self, error: &CommandError) {
        self.buffer.push(b'-');
        self.buffer.extend_from_slice(error.code.as_bytes());
        self.buffer.push(b' ');
        self.buffer.extend(error.message.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// An error line of any bytes, code and text together; line breaks become spaces.
    pub fn error_line(&mut self, line: &[u8]) {
        self.buffer.push(b'-');
        self.buffer.extend(line.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    /// A bulk string, copied.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.buffer.reserve(bytes.len() + 24);
        self.header(b'$', bytes.len() as i64);
        self.buffer.extend_from_slice(bytes);
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// A bulk string of an integer's decimal digits.
    pub fn bulk_integer(&mut self, number: i64) {
        let mut digits = itoa::Buffer::new();
        self.bulk(digits.format(number).as_bytes());
    }

    /// Begins a bulk string of `length` bytes; [`bulk_part`](Self::bulk_part) and [`bulk_shared`](Self::bulk_shared) give them and
    /// [`bulk_end`](Self::bulk_end) closes it.
    pub fn bulk_begin(&mut self, length: usize) {
        self.header(b'$', length as i64);
    }

    /// Some bytes of the bulk string begun, copied.
    pub fn bulk_part(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Some bytes of the bulk string begun, by reference.
    pub fn bulk_shared(&mut self, payload: Bytes) {
        self.segments.push(Segment { offset: self.buffer.len(), payload });
    }

    /// Ends the bulk string begun.
    pub fn bulk_end(&mut self) {
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// The null that stands for a missing string: `$-1`, or `_` in RESP3.
    #[inline]
    pub fn null(&mut self) {
        self.buffer.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The null that stands for a missing array: `*-1`, or `_` in RESP3.
    pub fn null_array(&mut self) {
        self.buffer.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// Begins an array of `length` elements.
    #[inline]
    pub fn array(&mut self, length: usize) {
        self.header(b'*', length as i64);
    }

    /// Inserts at `mark` what `write` writes, before all that was written since.
    pub fn insert_at(&mut self, mark: Mark, write: impl FnOnce(&mut Self)) {
        let tail = self.buffer.split_off(mark.buffer);
        let tail_segments = self.segments.split_off(mark.segments);
        write(self);
        let grown = self.buffer.len() - mark.buffer;
        self.buffer.extend_from_slice(&tail);
        let moved = |segment: Segment| Segment { offset: segment.offset + grown, ..segment };
        self.segments.extend(tail_segments.into_iter().map(moved));
    }

    /// Begins an array whose header is inserted at `mark` once its length is known.
    pub fn array_at(&mut self, mark: Mark, length: usize) {
        self.insert_at(mark, |reply| reply.array(length));
    }

    /// Begins a map of `length` pairs (an array of twice that in RESP2).
    pub fn map(&mut self, length: usize) {
        if self.is_resp3() { self.header(b'%', length as i64) } else { self.header(b'*', 2 * length as i64) }
    }

    /// Begins a set (an array in RESP2).
    pub fn set(&mut self, length: usize) {
        self.header(if self.is_resp3() { b'~' } else { b'*' }, length as i64);
    }

    /// Begins an out-of-band push (an array in RESP2).
    pub fn push(&mut self, length: usize) {
        self.header(if self.is_resp3() { b'>' } else { b'*' }, length as i64);
    }

    /// A whole message that was encoded ahead for clients of either protocol, as a RESP3 push: in RESP2 its first byte makes it an array.
    /// A long one leaves by reference.
    pub fn pushed(&mut self, mut message: Bytes) {
        if !self.is_resp3() && message.first() == Some(&b'>') {
            self.buffer.push(b'*');
            bytes::Buf::advance(&mut message, 1);
        }
        if message.len() < ROPE_THRESHOLD_BYTES {
            self.buffer.extend_from_slice(&message);
        } else {
            self.bulk_shared(message);
        }
    }

    /// A truth value: `#t`/`#f`, or an integer in RESP2.
    pub fn boolean(&mut self, value: bool) {
        let text: &[u8] = match (self.is_resp3(), value) {
            (true, true) => b"#t\r\n",
            (true, false) => b"#f\r\n",
            (false, true) => b":1\r\n",
            (false, false) => b":0\r\n",
        };
        self.buffer.extend_from_slice(text);
    }

    /// A floating-point number: `,1.5`, or a bulk string in RESP2.
    pub fn double(&mut self, number: f64) {
        let mut digits = ryu::Buffer::new();
        let text = match number {
            _ if number.is_nan() => "nan",
            f64::INFINITY => "inf",
            f64::NEG_INFINITY => "-inf",
            _ => digits.format_finite(number),
        };
        let text = text.strip_suffix(".0").unwrap_or(text);
        if !self.is_resp3() {
            return self.bulk(text.as_bytes());
        }
        self.buffer.push(b',');
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// An integer of any size in decimal: `(123`, or a bulk string in RESP2. Must hold no line break.
    pub fn big_number(&mut self, digits: &str) {
        if !self.is_resp3() {
            return self.bulk(digits.as_bytes());
        }
        self.buffer.push(b'(');
        self.buffer.extend_from_slice(digits.as_bytes());
        self.buffer.extend_from_slice(b"\r\n");
    }

    /// Copies payloads by reference to where they belong, so that [`buffer`](Self::buffer) is the whole reply.
    pub fn join(&mut self) {
        if !self.segments.is_empty() {
            self.buffer = self.to_vec();
            self.segments.clear();
        }
    }

    /// A text with its format (`txt`, `mkd`); a bulk string in RESP2.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        debug_assert_eq!(format.len(), 3);
        if !self.is_resp3() {
            return self.bulk(text);
        }
        self.header(b'=', text.len() as i64 + 4);
        self.buffer.extend_from_slice(format.as_bytes());
        self.buffer.push(b':');
        self.buffer.extend_from_slice(text);
        self.buffer.extend_from_slice(b"\r\n");
    }
}

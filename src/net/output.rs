//! What one client has yet to take: replies that its socket had no room for.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};

use super::stream::Stream;
use crate::limits;
use crate::resp::{Reply, Segment};

/// A queue of chunks. Small replies are gathered in chunks of [`limits::OUTPUT_CHUNK_BYTES`]; large payloads stay by reference.
#[derive(Debug, Default)]
pub struct Output {
    chunks: VecDeque<Chunk>,
    bytes: usize,
}

#[derive(Debug)]
enum Chunk {
    /// Copied; what stands before `sent` has left.
    Owned {
        bytes: Vec<u8>,
        sent: usize,
    },
    Shared(Bytes),
}

impl Chunk {
    fn unsent(&self) -> &[u8] {
        match self {
            Self::Owned { bytes, sent } => &bytes[*sent..],
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Output {
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Number of chunks that wait.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Sends `reply` at once as far as the socket takes it, and keeps the rest; the reply is empty afterwards. Gives the number of
    /// bytes sent. Nothing may wait from before.
    pub fn send(&mut self, stream: &mut Stream, context: &mut Context<'_>, reply: &mut Reply) -> io::Result<usize> {
        debug_assert!(self.is_empty());
        let written = match reply.segments() {
            [] => stream.poll_write(context, &[IoSlice::new(reply.buffer())]),
            segments => stream.poll_write(context, &slices_of(reply.buffer(), segments)),
        };
        let sent = match written {
            Poll::Ready(result) => result?,
            Poll::Pending => 0,
        };
        if sent == reply.len() {
            reply.clear();
        } else {
            self.push(reply);
            self.consume(sent);
        }
        Ok(sent)
    }

    /// Adds `reply` behind what waits; the reply is empty afterwards.
    pub fn push(&mut self, reply: &mut Reply) {
        let mut from = 0;
        for segment in reply.segments() {
            self.push_copied(&reply.buffer()[from..segment.offset]);
            from = segment.offset;
            self.bytes += segment.payload.len();
            self.chunks.push_back(Chunk::Shared(segment.payload.clone()));
        }
        self.push_copied(&reply.buffer()[from..]);
        reply.clear();
    }

    fn push_copied(&mut self, added: &[u8]) {
        self.bytes += added.len();
        if let Some(Chunk::Owned { bytes, .. }) = self.chunks.back_mut()
            && bytes.len() + added.len() <= limits::OUTPUT_CHUNK_BYTES
        {
            bytes.extend_from_slice(added);
        } else if !added.is_empty() {
            self.chunks.push_back(Chunk::Owned { bytes: added.to_vec(), sent: 0 });
        }
    }

    /// Sends what waits. Ready when nothing waits any more; gives the number of bytes sent in `sent` in any case.
    pub fn poll_flush(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
        sent: &mut usize,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let mut slices = [IoSlice::new(&[]); limits::WRITE_SLICES_MAX];
            let mut filled = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                *slice = IoSlice::new(chunk.unsent());
                filled += 1;
            }
            let written = ready!(stream.poll_write(context, &slices[..filled]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.consume(written);
            *sent += written;
        }
        // A queue that was long gives its room back.
        self.chunks.shrink_to(0);
        Poll::Ready(Ok(()))
    }

    fn consume(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(front) = self.chunks.front_mut() {
            let unsent = front.unsent().len();
            if count < unsent {
                match front {
                    Chunk::Owned { sent, .. } => *sent += count,
                    Chunk::Shared(bytes) => bytes.advance(count),
                }
                return;
            }
            count -= unsent;
            self.chunks.pop_front();
        }
    }
}

/// A reply's bytes in order, as far as one system call takes them.
fn slices_of<'a>(buffer: &'a [u8], segments: &'a [Segment]) -> Vec<IoSlice<'a>> {
    let mut slices = Vec::with_capacity((2 * segments.len() + 1).min(limits::WRITE_SLICES_MAX));
    let mut from = 0;
    for segment in segments {
        if slices.len() + 2 > limits::WRITE_SLICES_MAX {
            return slices;
        }
        slices.push(IoSlice::new(&buffer[from..segment.offset]));
        slices.push(IoSlice::new(&segment.payload));
        from = segment.offset;
    }
    if slices.len() < limits::WRITE_SLICES_MAX && from < buffer.len() {
        slices.push(IoSlice::new(&buffer[from..]));
    }
    slices
}

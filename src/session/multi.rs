//! MULTI: the commands that a client has queued for EXEC, and the keys that it watches.

use crate::command::args::Args;
use crate::limits::MULTI_QUEUE_BYTES_MAX;

/// Commands that wait for EXEC, in one buffer.
#[derive(Debug, Default)]
pub struct Queue {
    bytes: Vec<u8>,
    /// Where each argument ends in `bytes`.
    argument_ends: Vec<usize>,
    /// The number of arguments up to the end of each command.
    command_ends: Vec<usize>,
    /// Whether one of the commands may write.
    pub has_writes: bool,
    /// A command was refused: EXEC will run none.
    pub is_refused: bool,
}

/// The queue has as many bytes as it may have.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueIsFull;

impl Queue {
    /// Adds a command.
    pub fn push(&mut self, args: &Args<'_>) -> Result<(), QueueIsFull> {
        let added: usize = args.from(0).iter().map(|argument| argument.len()).sum();
        if self.bytes.len() + added > MULTI_QUEUE_BYTES_MAX {
            return Err(QueueIsFull);
        }
        for argument in args.from(0) {
            self.bytes.extend_from_slice(argument);
            self.argument_ends.push(self.bytes.len());
        }
        self.command_ends.push(self.argument_ends.len());
        Ok(())
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.command_ends.len()
    }

    /// Whether nothing has been queued.
    pub fn is_empty(&self) -> bool {
        self.command_ends.is_empty()
    }

    /// Bytes of memory that the queue takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + size_of::<usize>() * (self.argument_ends.capacity() + self.command_ends.capacity())
    }

    /// The arguments of all commands, one after the other.
    pub fn arguments(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.argument_ends.iter().copied());
        starts.zip(&self.argument_ends).map(|(start, end)| &self.bytes[start..*end]).collect()
    }

    /// The commands, given what [`arguments`](Self::arguments) gave.
    pub fn commands<'a>(&self, arguments: &'a [&'a [u8]]) -> impl Iterator<Item = Args<'a>> {
        let starts = std::iter::once(0).chain(self.command_ends.iter().copied());
        starts.zip(self.command_ends.clone()).map(move |(start, end)| Args::new(&arguments[start..end]))
    }
}

/// A key that a client watches, as it found it.
#[derive(Debug)]
pub struct Watched {
    /// The key's database.
    pub database: usize,
    /// The key.
    pub key: Box<[u8]>,
    /// The stamp of its value, or of its deletion; 0 where it had never had a value.
    pub stamp: u64,
    /// Whether it had no value, so that the client's interest in it stands in the store.
    pub was_absent: bool,
    /// How often its database had been exchanged for another.
    pub swaps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_out_as_they_went_in() {
        let lines: [&[&[u8]]; 3] = [&[b"SET", b"k", b""], &[b"GET", b"k"], &[b"PING"]];
        let mut queue = Queue::default();
        lines.iter().for_each(|line| queue.push(&Args::new(line)).expect("there is room"));
        let arguments = queue.arguments();
        let out: Vec<Vec<&[u8]>> = queue.commands(&arguments).map(|args| args.from(0).to_vec()).collect();
        assert_eq!(out, lines);
        assert_eq!(queue.len(), 3);
    }
}

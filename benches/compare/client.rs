//! A connection for filling and timing: raw RESP, one request or a pipeline of them.

use crate::Failure;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a reply may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to a server on this machine.
pub struct Client {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    batch: Vec<u8>,
    batched: usize,
}

impl Client {
    /// Connects.
    pub fn connect(port: u16) -> Result<Self, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), line: Vec::new(), batch: Vec::new(), batched: 0 })
    }

    /// Sends one command and reads its reply; an error reply is a failure.
    pub fn call(&mut self, words: &[&[u8]]) -> Result<(), Failure> {
        self.add(words);
        self.flush()
    }

    /// Sends one command whose reply is an integer.
    pub fn integer(&mut self, words: &[&[u8]]) -> Result<i64, Failure> {
        self.call(words)?;
        let text = std::str::from_utf8(self.line.strip_prefix(b":").unwrap_or_default())?;
        Ok(text.trim().parse()?)
    }

    /// Adds a command to the batch, which leaves by itself when it is large.
    pub fn add_and_flush_when_large(&mut self, words: &[&[u8]]) -> Result<(), Failure> {
        self.add(words);
        if self.batched >= 500 { self.flush() } else { Ok(()) }
    }

    /// Sends the batch and reads its replies.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.stream.get_mut().write_all(&self.batch)?;
        self.batch.clear();
        for _ in 0..std::mem::take(&mut self.batched) {
            self.reply()?;
        }
        Ok(())
    }

    fn add(&mut self, words: &[&[u8]]) {
        let _ = write!(self.batch, "*{}\r\n", words.len());
        for word in words {
            let _ = write!(self.batch, "${}\r\n", word.len());
            self.batch.extend_from_slice(word);
            self.batch.extend_from_slice(b"\r\n");
        }
        self.batched += 1;
    }

    /// Reads one reply: a simple string, an integer or a bulk string.
    fn reply(&mut self) -> Result<(), Failure> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        match self.line.first() {
            Some(b'+' | b':') => Ok(()),
            Some(b'$') => {
                let length: i64 = std::str::from_utf8(&self.line[1..])?.trim().parse()?;
                if length >= 0 {
                    let mut payload = vec![0; usize::try_from(length)? + 2];
                    self.stream.read_exact(&mut payload)?;
                }
                Ok(())
            }
            _ => Err(format!("unexpected reply {:?}", String::from_utf8_lossy(&self.line)).into()),
        }
    }
}

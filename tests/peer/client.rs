//! A client over a Unix socket that sends command lines in batches and reads replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::value::Value;

/// How long a reply may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
pub struct Client {
    stream: BufReader<Socket>,
    closed: bool,
}

/// A Unix socket whose last replies are read even if the server closed it with our bytes unread: the system then reports a reset once, before
/// the replies that wait.
struct Socket(UnixStream);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => self.0.read(buffer),
            other => other,
        }
    }
}

/// The bytes of a command line on the wire.
pub fn encode(line: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", line.len()).into_bytes();
    for argument in line.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl Client {
    /// Connects to the socket at `path`.
    pub fn connect(path: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, Socket(stream)), closed: false })
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Sends one command line and reads its reply.
    pub fn call(&mut self, line: &[impl AsRef<[u8]>]) -> Value {
        self.send(&encode(line));
        self.read()
    }

    /// Sends one command line, its words parted by blanks, and reads its reply.
    pub fn call_words(&mut self, line: &str) -> Value {
        self.call(&line.split(' ').collect::<Vec<_>>())
    }

    /// Sends bytes. A server that closes meanwhile shows when its replies are read.
    pub fn send(&mut self, bytes: &[u8]) {
        if self.stream.get_mut().0.write_all(bytes).is_err() {
            self.closed = true;
        }
    }

    /// Reads the next reply; [`Value::Closed`] once the server has closed the connection.
    pub fn read(&mut self) -> Value {
        match self.read_value() {
            Ok(value) => value,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                // As a server that closes: the caller says which command it was.
                self.closed = true;
                Value::Missing
            }
            Err(_) => {
                self.closed = true;
                Value::Closed
            }
        }
    }

    fn read_value(&mut self) -> std::io::Result<Value> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\r\n").filter(|text| !text.is_empty()) else {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        };
        let (kind, text) = (text[0], &text[1..]);
        let number = || -> i64 {
            let text = std::str::from_utf8(text).unwrap_or("");
            text.parse().unwrap_or_else(|_| panic!("a reply begins with {:?}", line.escape_ascii().to_string()))
        };
        Ok(match kind {
            b'+' => Value::Simple(text.to_vec()),
            b'-' => Value::Error(text.to_vec()),
            b':' => Value::Integer(number()),
            b'_' => Value::Null,
            b'#' => Value::Boolean(text == b"t"),
            b',' => Value::Double(text.to_vec()),
            b'(' => Value::BigNumber(text.to_vec()),
            b'$' if text == b"-1" => Value::NullBulk,
            b'*' if text == b"-1" => Value::NullArray,
            b'$' => Value::Bulk(self.read_bytes(number())?),
            b'=' => Value::Verbatim(self.read_bytes(number())?),
            b'*' => Value::Array(self.read_values(number())?),
            b'~' => Value::Set(self.read_values(number())?),
            b'>' => Value::Push(self.read_values(number())?),
            b'%' => {
                let flat = self.read_values(2 * number())?;
                Value::Map(flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
            }
            _ => panic!("a reply begins with {:?}", line.escape_ascii().to_string()),
        })
    }

    fn read_values(&mut self, count: i64) -> std::io::Result<Vec<Value>> {
        (0..count).map(|_| self.read_value()).collect()
    }

    fn read_bytes(&mut self, length: i64) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).expect("a length") + 2];
        self.stream.read_exact(&mut bytes)?;
        assert!(bytes.ends_with(b"\r\n"), "a string of {length} bytes does not end where it should");
        bytes.truncate(bytes.len() - 2);
        Ok(bytes)
    }
}

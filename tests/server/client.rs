//! A plain client: sends commands, reads replies of both protocol versions, waits at most some seconds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a reply may take before the test fails.
const DEADLINE: Duration = Duration::from_secs(20);

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+`
    Simple(String),
    /// `-`, code and text.
    Error(String),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `=`, without the format.
    Verbatim(Vec<u8>),
    /// `*`, `~` and `>`
    Array(Vec<Value>),
    /// `%`
    Map(Vec<(Value, Value)>),
    /// `_`, `$-1` and `*-1`
    Null,
    /// `#`
    Boolean(bool),
    /// `,`
    Double(String),
}

impl Value {
    /// Text of a string or an error.
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) | Self::Verbatim(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// Elements of an array; keys and values of a map, one after the other.
    pub fn elements(&self) -> Vec<Value> {
        match self {
            Self::Array(elements) => elements.clone(),
            Self::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect(),
            other => panic!("no elements: {other:?}"),
        }
    }

    /// An array of strings.
    pub fn texts(&self) -> Vec<String> {
        self.elements().iter().map(Value::text).collect()
    }
}

/// `+OK`
pub fn ok() -> Value {
    Value::Simple("OK".into())
}

/// A bulk string.
pub fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// A command as clients send it.
pub fn request(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    request
}

/// One connection.
pub struct Client {
    output: Box<dyn Write>,
    input: BufReader<Box<dyn Read>>,
}

impl Client {
    /// Connects over TCP.
    pub fn tcp(address: impl ToSocketAddrs) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        Ok(Self { output: Box::new(stream.try_clone()?), input: BufReader::new(Box::new(stream)) })
    }

    /// Connects to a Unix socket.
    pub fn unix(path: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        Ok(Self { output: Box::new(stream.try_clone()?), input: BufReader::new(Box::new(stream)) })
    }

    /// Sends a command given as words between blanks, and reads its reply.
    pub fn run(&mut self, line: &str) -> Value {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.command(&words)
    }

    /// Sends a command and reads its reply.
    pub fn command(&mut self, words: &[&str]) -> Value {
        self.send(words);
        self.read()
    }

    /// Sends a command without waiting for its reply.
    pub fn send(&mut self, words: &[&str]) {
        self.send_bytes(&request(words));
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.output.write_all(bytes).expect("the server reads");
    }

    /// Sends bytes that the server may refuse to take, because it closes the connection.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.output.write_all(bytes)
    }

    /// Sends an inline request and gives the first line of the reply.
    pub fn line(&mut self, request: &str) -> String {
        self.send_bytes(format!("{request}\r\n").as_bytes());
        let mut line = String::new();
        self.input.read_line(&mut line).expect("the server replies");
        line.trim_end_matches("\r\n").to_owned()
    }

    /// Sends an inline request and gives its whole reply, as [`hear`](Self::hear) does.
    pub fn ask(&mut self, request: &str) -> String {
        self.send_bytes(format!("{request}\r\n").as_bytes());
        self.hear()
    }

    /// Reads one reply and gives it as it came, with bars between the lines: `*2|$1|a|:1`.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).expect("the server replies");
        let mut reply = line.trim_end_matches("\r\n").to_owned();
        assert!(!reply.is_empty(), "the server closed the connection");
        let (kind, rest) = reply.split_at(1);
        let count = rest.parse::<usize>().unwrap_or(0);
        match kind {
            "$" | "=" if !rest.starts_with('-') => {
                let payload = self.bytes(count).expect("the server replies");
                reply = format!("{reply}|{}", String::from_utf8_lossy(&payload));
            }
            "*" | "~" | ">" | "%" => {
                for _ in 0..if kind == "%" { 2 * count } else { count } {
                    reply = format!("{reply}|{}", self.hear());
                }
            }
            _ => {}
        }
        reply
    }

    /// Everything until the server closes the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.input.read_to_end(&mut rest) {
            Ok(_) => rest,
            // It closed with bytes of ours unread.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the server did not close the connection: {error}"),
        }
    }

    /// Whether the next bytes are these; false where the server closes the connection.
    pub fn rest_starts_with(&mut self, expected: &[u8]) -> bool {
        let mut bytes = vec![0; expected.len()];
        self.input.read_exact(&mut bytes).is_ok() && bytes == expected
    }

    /// Reads one reply.
    pub fn read(&mut self) -> Value {
        self.try_read().expect("the server replies")
    }

    /// Reads one reply; an error where the server closed the connection.
    pub fn try_read(&mut self) -> std::io::Result<Value> {
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (kind, rest) = line.trim_end_matches("\r\n").split_at(1);
        let count = || rest.parse::<i64>().expect("a number");
        Ok(match kind {
            "+" => Value::Simple(rest.into()),
            "-" => Value::Error(rest.into()),
            ":" => Value::Integer(count()),
            "_" => Value::Null,
            "#" => Value::Boolean(rest == "t"),
            "," => Value::Double(rest.into()),
            "$" | "*" if count() < 0 => Value::Null,
            "$" => Value::Bulk(self.bytes(count() as usize)?),
            "=" => Value::Verbatim(self.bytes(count() as usize)?.split_off(4)),
            "*" | "~" | ">" => Value::Array((0..count()).map(|_| self.try_read()).collect::<Result<_, _>>()?),
            "%" => {
                let pairs = (0..count()).map(|_| Ok((self.try_read()?, self.try_read()?)));
                Value::Map(pairs.collect::<std::io::Result<_>>()?)
            }
            other => panic!("an unknown kind of reply: {other}"),
        })
    }

    fn bytes(&mut self, length: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length + 2];
        self.input.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }
}

//! The decoder: finds the commands in a client's bytes, whatever pieces they arrive in.
//!
//! A command is a *multibulk* (`*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`) or an *inline* line (`GET k\r\n`, with quotes and escapes). Nothing is
//! copied: a [`Batch`] holds the place of each argument in the input. Quoted inline arguments are unescaped in place, which is
//! possible because that never makes them longer. Such a line cannot be decoded again, so it is always the first of its batch: the
//! caller may stop before any other command of a batch and give it again, but never before the first.
//!
//! # Pieces
//!
//! The caller keeps the bytes of an unfinished command and calls again with these bytes and more behind them. The [`Decoder`]
//! remembers how far it came, so no byte is looked at twice and a payload is never scanned at all. The result depends on the bytes
//! only, not on how they were split; every bound below counts bytes of the stream, never bytes per read.
//!
//! # Differences from Redis
//!
//! A zero byte is a byte like others. Redis 7 searches lines as C strings, so a zero byte makes it wait for more input until the line
//! is too long; Valkey 9 answers as we do.

use super::Reply;
use crate::command::args::parse_integer;
use crate::limits;
use memchr::{memchr, memchr2};

/// The place of one argument in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= limits::DECODER_INPUT_BYTES_MAX);
        Self { start: start as u32, end: end as u32 }
    }

    fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by as u32, end: self.end + by as u32 }
    }

    /// The argument's bytes in the input that was decoded.
    #[inline]
    pub fn of(self, input: &[u8]) -> &[u8] {
        &input[self.start as usize..self.end as usize]
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "an empty argument is an argument")]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The place of one command: its first byte, and where its arguments begin in the list of all arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CommandStart {
    byte: u32,
    argument: u32,
}

/// The complete commands of one piece of input. Made once and used again for each piece.
#[derive(Debug, Default)]
pub struct Batch {
    arguments: Vec<Span>,
    commands: Vec<CommandStart>,
}

impl Batch {
    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The arguments of one command, the name first; there is always a name.
    #[inline]
    pub fn arguments(&self, command: usize) -> &[Span] {
        let end = self.commands.get(command + 1).map_or(self.arguments.len(), |next| next.argument as usize);
        &self.arguments[self.commands[command].argument as usize..end]
    }

    /// The arguments of all commands, one after the other.
    pub fn all_arguments(&self) -> &[Span] {
        &self.arguments
    }

    /// Offset in the input of a command's first byte (or of an empty line before it).
    pub fn offset(&self, command: usize) -> usize {
        self.commands[command].byte as usize
    }

    /// Forgets all commands, and gives the room back if it was an unusual amount.
    pub fn clear(&mut self) {
        self.arguments.clear();
        self.commands.clear();
        self.arguments.shrink_to(limits::BATCH_ARGUMENTS_KEPT);
    }

    #[inline]
    fn begin(&mut self, byte: usize) {
        self.commands.push(CommandStart { byte: byte as u32, argument: self.arguments.len() as u32 });
    }

    /// Takes back the command begun last.
    fn cancel(&mut self) {
        if let Some(begun) = self.commands.pop() {
            self.arguments.truncate(begun.argument as usize);
        }
    }
}

/// What settings and authentication allow.
#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    /// `proto-max-bulk-len`, in bytes.
    pub bulk_bytes_max: usize,
    /// Whether the client has shown who it is, or need not. If not, arguments are few and short.
    pub authenticated: bool,
    /// Decoding pauses after so many commands; after one if the client is not authenticated, for that one may change it.
    pub commands_max: usize,
}

/// Bytes that are no command. The connection is closed after the error was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is no number, or too large.
    InvalidMultibulkLength,
    /// Too many arguments before authentication.
    UnauthenticatedMultibulkLength,
    /// The line with the number of arguments does not end.
    TooBigMultibulkCount,
    /// The argument does not begin with a dollar sign but with this byte.
    ExpectedDollar(u8),
    /// The length of an argument is no number, or too large.
    InvalidBulkLength,
    /// Too long an argument before authentication.
    UnauthenticatedBulkLength,
    /// The line with the length of an argument does not end.
    TooBigBulkCount,
    /// An inline request that does not end.
    TooBigInline,
    /// An inline request whose quotes do not pair.
    UnbalancedQuotes,
}

impl ProtocolError {
    /// The text after `Protocol error: `, identical to Redis'.
    pub fn text(self) -> Vec<u8> {
        let text = match self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            Self::TooBigMultibulkCount => "too big mbulk count string",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulkLength => "unauthenticated bulk length",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::TooBigInline => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::ExpectedDollar(byte) => return [b"expected '$', got '", &[byte][..], b"'"].concat(),
        };
        text.as_bytes().to_vec()
    }

    /// Writes the error reply.
    pub fn write(self, reply: &mut Reply) {
        reply.error_line(&[b"ERR Protocol error: ", &self.text()[..]].concat());
    }
}

/// What one call found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of complete commands. The rest is to be given again, with more behind it.
    pub consumed: usize,
    /// What stands behind the complete commands, if it can be no command.
    pub error: Option<ProtocolError>,
    /// Whether decoding paused after [`DecodeLimits::commands_max`] commands, or before a line with quotes, with more input to look at.
    pub paused: bool,
}

/// Where decoding stopped inside an unfinished command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    /// Before its first byte.
    #[default]
    Start,
    /// In an inline request.
    Inline,
    /// In the line with the number of arguments.
    Count,
    /// In the line with the length of an argument; so many arguments are missing.
    Length { missing: usize },
    /// In an argument of this length; so many arguments are missing with it.
    Payload { missing: usize, length: usize },
}

/// How far one connection's unfinished command has been decoded. Small while there is none.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// Where the present line or payload begins, counted from the command's first byte.
    position: usize,
    /// How much of the present line is known to hold no line end, counted likewise.
    scanned: usize,
    /// The arguments found so far, counted likewise.
    arguments: Vec<Span>,
}

/// Why decoding of one command ended without a command.
enum Stop {
    Incomplete,
    /// It is a line with quotes, and not the first command of its batch.
    NotFirst,
    Error(ProtocolError),
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        Self::Error(error)
    }
}

impl Decoder {
    /// Decodes the commands at the beginning of `input` into `batch`, which is cleared first. `input` begins with the bytes that the
    /// last call did not consume, unchanged; it is at most [`limits::DECODER_INPUT_BYTES_MAX`] long. O(bytes), payloads not counted.
    pub fn decode(&mut self, input: &mut [u8], limits: &DecodeLimits, batch: &mut Batch) -> Decoded {
        assert!(input.len() <= limits::DECODER_INPUT_BYTES_MAX, "places in the input have 32 bits");
        batch.clear();
        let commands_max = if limits.authenticated { limits.commands_max } else { 1 };
        let mut consumed = 0;
        while consumed < input.len() && batch.len() < commands_max {
            if self.state == State::Start
                && let Some(end) = decode_small(input, consumed, limits, batch)
            {
                consumed = end;
                continue;
            }
            match self.resume(&mut input[consumed..], limits, batch.is_empty()) {
                Ok(end) => {
                    if !self.arguments.is_empty() {
                        batch.begin(consumed);
                        batch.arguments.extend(self.arguments.iter().map(|span| span.shifted(consumed)));
                    }
                    self.reset();
                    consumed += end;
                }
                Err(Stop::Incomplete) => break,
                Err(Stop::NotFirst) => {
                    self.reset();
                    return Decoded { consumed, error: None, paused: true };
                }
                Err(Stop::Error(error)) => {
                    self.reset();
                    return Decoded { consumed, error: Some(error), paused: false };
                }
            }
        }
        let paused = consumed < input.len() && batch.len() >= commands_max;
        Decoded { consumed, error: None, paused }
    }

    /// Forgets the unfinished command: the next input begins with its first byte, undecoded.
    pub fn reset(&mut self) {
        self.state = State::Start;
        self.position = 0;
        self.scanned = 0;
        self.arguments.clear();
        self.arguments.shrink_to(0);
    }

    /// How long the unfinished command's input will be at least, in bytes: up to the end of the argument whose length is known.
    pub fn expected(&self) -> usize {
        match self.state {
            State::Payload { length, .. } => self.position + length + 2,
            _ => 0,
        }
    }

    /// Goes on with the unfinished command that `input` begins with; gives the offset of its end. `is_first` says whether it would be the
    /// first of its batch.
    fn resume(&mut self, input: &mut [u8], limits: &DecodeLimits, is_first: bool) -> Result<usize, Stop> {
        loop {
            self.state = match self.state {
                State::Start => match input.first() {
                    None => return Err(Stop::Incomplete),
                    Some(b'*') => State::Count,
                    Some(_) => State::Inline,
                },
                State::Inline => {
                    let end = self.find_line_end(b'\n', input, ProtocolError::TooBigInline)?;
                    let line = &mut input[..end];
                    if !is_first && memchr2(b'"', b'\'', line).is_some() {
                        return Err(Stop::NotFirst);
                    }
                    let length = line.strip_suffix(b"\r").map_or(line.len(), <[u8]>::len);
                    split_inline(&mut line[..length], &mut self.arguments)?;
                    return Ok(end + 1);
                }
                State::Count => {
                    let text = self.line(input, ProtocolError::TooBigMultibulkCount)?;
                    let count = parse_integer(&text[1..]);
                    let count = count.ok_or(ProtocolError::InvalidMultibulkLength)?;
                    if count > limits::MULTIBULK_ARGUMENTS_MAX {
                        return Err(ProtocolError::InvalidMultibulkLength.into());
                    }
                    if !limits.authenticated && count > limits::UNAUTHENTICATED_ARGUMENTS_MAX {
                        return Err(ProtocolError::UnauthenticatedMultibulkLength.into());
                    }
                    // A count of zero or below is no command and no error.
                    if count <= 0 {
                        return Ok(self.position);
                    }
                    State::Length { missing: count as usize }
                }
                State::Length { missing: 0 } => return Ok(self.position),
                State::Length { missing } => {
                    let text = self.line(input, ProtocolError::TooBigBulkCount)?;
                    let Some((b'$', digits)) = text.split_first() else {
                        // The line of no byte at all begins with its own carriage return.
                        return Err(ProtocolError::ExpectedDollar(text.first().copied().unwrap_or(b'\r')).into());
                    };
                    let length = parse_integer(digits);
                    let length = length.and_then(|length| usize::try_from(length).ok());
                    let length = length.ok_or(ProtocolError::InvalidBulkLength)?;
                    if length > limits.bulk_bytes_max.min(limits::BULK_BYTES_MAX) {
                        return Err(ProtocolError::InvalidBulkLength.into());
                    }
                    if !limits.authenticated && length > limits::UNAUTHENTICATED_BULK_BYTES_MAX {
                        return Err(ProtocolError::UnauthenticatedBulkLength.into());
                    }
                    State::Payload { missing, length }
                }
                State::Payload { missing, length } => {
                    // The two bytes behind the payload are not looked at, as in Redis.
                    let end = self.position + length;
                    if input.len() < end + 2 {
                        return Err(Stop::Incomplete);
                    }
                    self.arguments.push(Span::new(self.position, end));
                    self.advance(end + 2);
                    State::Length { missing: missing - 1 }
                }
            };
        }
    }

    fn advance(&mut self, to: usize) {
        self.position = to;
        self.scanned = to;
    }

    /// The present line without its end (a carriage return and one byte, not looked at), once both are there; moves on behind it.
    fn line<'a>(&mut self, input: &'a [u8], too_long: ProtocolError) -> Result<&'a [u8], Stop> {
        let end = self.find_line_end(b'\r', input, too_long)?;
        if input.len() < end + 2 {
            return Err(Stop::Incomplete);
        }
        let line = &input[self.position..end];
        self.advance(end + 2);
        Ok(line)
    }

    fn find_line_end(&mut self, terminator: u8, input: &[u8], too_long: ProtocolError) -> Result<usize, Stop> {
        let window_end = input.len().min(self.position + limits::PROTOCOL_LINE_BYTES_MAX + 1);
        if let Some(found) = memchr(terminator, &input[self.scanned..window_end]) {
            self.scanned += found;
            return Ok(self.scanned);
        }
        self.scanned = window_end;
        if input.len() - self.position > limits::PROTOCOL_LINE_BYTES_MAX {
            return Err(too_long.into());
        }
        Err(Stop::Incomplete)
    }
}

/// The usual case, in a few nanoseconds: a complete multibulk at `start` whose count and lengths have few digits. Gives the offset of
/// its end, or nothing where the careful way has to look.
#[inline]
fn decode_small(input: &[u8], start: usize, limits: &DecodeLimits, batch: &mut Batch) -> Option<usize> {
    if input[start] != b'*' || !limits.authenticated {
        return None;
    }
    let (count, mut at) = small_number(input, start + 1)?;
    if count == 0 {
        return None;
    }
    batch.begin(start);
    for _ in 0..count {
        let argument = if input.get(at) == Some(&b'$') { small_number(input, at + 1) } else { None };
        let end = argument.map(|(length, begin)| (length, begin, begin + length));
        match end {
            Some((length, begin, end)) if end + 2 <= input.len() && length <= limits.bulk_bytes_max => {
                batch.arguments.push(Span::new(begin, end));
                at = end + 2;
            }
            _ => {
                batch.cancel();
                return None;
            }
        }
    }
    Some(at)
}

/// A number of one to four digits without leading zeros and the line end behind it: the number and the offset behind the line end.
#[inline]
fn small_number(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let digit = |byte: u8| byte.wrapping_sub(b'0');
    let text = input.get(at..)?;
    match *text {
        [a, b'\r', _, ..] if digit(a) <= 9 => Some((digit(a) as usize, at + 3)),
        [b'1'..=b'9', b, b'\r', _, ..] if digit(b) <= 9 => {
            Some((digit(text[0]) as usize * 10 + digit(b) as usize, at + 4))
        }
        [b'1'..=b'9', b, c, b'\r', _, ..] if digit(b) <= 9 && digit(c) <= 9 => {
            Some((digit(text[0]) as usize * 100 + digit(b) as usize * 10 + digit(c) as usize, at + 5))
        }
        [b'1'..=b'9', b, c, d, b'\r', _, ..] if digit(b) <= 9 && digit(c) <= 9 && digit(d) <= 9 => {
            let high = digit(text[0]) as usize * 1000 + digit(b) as usize * 100;
            Some((high + digit(c) as usize * 10 + digit(d) as usize, at + 6))
        }
        _ => None,
    }
}

/// Splits an inline line into arguments as a shell would, unescaping them in place.
///
/// Inside double quotes `\n \r \t \b \a`, `\xHH` and backslash with any other byte are escapes; inside single quotes only `\'` is. A
/// closing quote must end its argument.
fn split_inline(line: &mut [u8], arguments: &mut Vec<Span>) -> Result<(), ProtocolError> {
    #[derive(PartialEq)]
    enum Quote {
        None,
        Single,
        Double,
    }
    let mut read = 0;
    loop {
        while read < line.len() && is_space(line[read]) {
            read += 1;
        }
        if read == line.len() {
            return Ok(());
        }
        let start = read;
        // Never ahead of `read`: each step reads at least as many bytes as it writes.
        let mut write = start;
        let mut quote = Quote::None;
        loop {
            let Some(&byte) = line.get(read) else {
                if quote != Quote::None {
                    return Err(ProtocolError::UnbalancedQuotes);
                }
                break;
            };
            read += 1;
            let kept = match (&quote, byte) {
                (Quote::None, b' ' | b'\n' | b'\r' | b'\t') => break,
                (Quote::None, b'"') => {
                    quote = Quote::Double;
                    continue;
                }
                (Quote::None, b'\'') => {
                    quote = Quote::Single;
                    continue;
                }
                (Quote::Double, b'"') | (Quote::Single, b'\'') => {
                    if line.get(read).is_some_and(|next| !is_space(*next)) {
                        return Err(ProtocolError::UnbalancedQuotes);
                    }
                    break;
                }
                (Quote::Double, b'\\') if read < line.len() => unescape(line, &mut read),
                (Quote::Single, b'\\') if line.get(read) == Some(&b'\'') => {
                    read += 1;
                    b'\''
                }
                (_, byte) => byte,
            };
            line[write] = kept;
            write += 1;
        }
        arguments.push(Span::new(start, write));
    }
}

/// The byte that an escape inside double quotes stands for; `read` is behind its backslash and moves behind the escape.
fn unescape(line: &[u8], read: &mut usize) -> u8 {
    if let [b'x', high, low, ..] = line[*read..]
        && let (Some(high), Some(low)) = ((high as char).to_digit(16), (low as char).to_digit(16))
    {
        *read += 3;
        return (high * 16 + low) as u8;
    }
    let escaped = line[*read];
    *read += 1;
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

/// C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::Protocol;

    const OPEN: DecodeLimits =
        DecodeLimits { bulk_bytes_max: 512 << 20, authenticated: true, commands_max: usize::MAX };
    const UNAUTHENTICATED: DecodeLimits = DecodeLimits { authenticated: false, ..OPEN };

    type Commands = Vec<Vec<Vec<u8>>>;

    /// Decodes `pieces` as a connection does; gives the commands, the error and how many bytes are left over.
    fn decode_pieces<'a>(
        pieces: impl Iterator<Item = &'a [u8]>,
        limits: &DecodeLimits,
    ) -> (Commands, Option<ProtocolError>, usize) {
        let (mut decoder, mut batch, mut commands) = (Decoder::default(), Batch::default(), Vec::new());
        let mut rest: Vec<u8> = Vec::new();
        for piece in pieces {
            rest.extend_from_slice(piece);
            loop {
                let decoded = decoder.decode(&mut rest, limits, &mut batch);
                for command in 0..batch.len() {
                    let arguments = batch.arguments(command);
                    commands.push(arguments.iter().map(|argument| argument.of(&rest).to_vec()).collect());
                }
                rest.drain(..decoded.consumed);
                if decoded.error.is_some() {
                    return (commands, decoded.error, 0);
                }
                if decoded.consumed == 0 {
                    break;
                }
            }
        }
        (commands, None, rest.len())
    }

    fn decode(input: &[u8]) -> (Commands, Option<ProtocolError>, usize) {
        decode_pieces(std::iter::once(input), &OPEN)
    }

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn multibulks_and_inline_requests_may_be_mixed() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n\r\n*0\r\n*-1\r\n\nSET a b\n*1\r\n$4\r\nPI";
        let (commands, error, left) = decode(input);
        assert_eq!(commands, [words("GET k"), words("PING"), words("SET a b")]);
        assert_eq!((error, left), (None, 10));
    }

    #[test]
    fn inline_arguments_are_quoted_as_in_redis() {
        type Case<'a> = (&'a [u8], Option<&'a [&'a [u8]]>);
        let cases: &[Case<'_>] = &[
            (b"PING 'a\\'b'", Some(&[b"PING", b"a'b"])),
            (b"PING \"a\\x41\\n\\q\"", Some(&[b"PING", b"aA\nq"])),
            (b"PING a\"b c\"", Some(&[b"PING", b"ab c"])),
            (b"PING \"\" x", Some(&[b"PING", b"", b"x"])),
            (b"PING\x0ba", Some(&[b"PING\x0ba"])),
            (b" \t\x0bPING ", Some(&[b"PING"])),
            (b"PING \"a\"b", None),
            (b"PING \"abc", None),
            (b"PING 'abc\\'", None),
            (b"PING \"abc\\", None),
        ];
        for (line, expected) in cases {
            let (commands, error, _) = decode(&[line, &b"\r\n"[..]].concat());
            match expected {
                Some(expected) => assert_eq!(commands, [expected.to_vec()]),
                None => assert_eq!((commands.len(), error), (0, Some(ProtocolError::UnbalancedQuotes))),
            }
        }
    }

    #[test]
    fn a_line_with_quotes_is_the_first_of_its_batch_and_what_precedes_it_may_be_given_again() {
        let (mut decoder, mut batch) = (Decoder::default(), Batch::default());
        let bytes = b"PING\r\nECHO \"a b\"\r\nECHO 'unpaired\r\n";
        let mut input = bytes.to_vec();
        let decoded = decoder.decode(&mut input, &OPEN, &mut batch);
        assert_eq!(decoded, Decoded { consumed: 6, error: None, paused: true });
        assert_eq!(input, bytes, "a caller that has run nothing may decode the same bytes again");
        let decoded = decoder.decode(&mut input[6..], &OPEN, &mut batch);
        assert_eq!(decoded, Decoded { consumed: 12, error: None, paused: true });
        assert_eq!((batch.len(), batch.arguments(0)[1].of(&input[6..])), (1, &b"a b"[..]));
        let decoded = decoder.decode(&mut input[18..], &OPEN, &mut batch);
        assert_eq!((decoded.error, batch.len()), (Some(ProtocolError::UnbalancedQuotes), 0));
    }

    #[test]
    fn errors_come_after_the_commands_before_them() {
        let cases: &[(&[u8], ProtocolError)] = &[
            (b"*x\r\n", ProtocolError::InvalidMultibulkLength),
            (b"*\r\n", ProtocolError::InvalidMultibulkLength),
            (b"*01\r\n", ProtocolError::InvalidMultibulkLength),
            (b"*1\0\r\n", ProtocolError::InvalidMultibulkLength),
            (b"*2147483648\r\n", ProtocolError::InvalidMultibulkLength),
            (b"*1\r\nx4\r\n", ProtocolError::ExpectedDollar(b'x')),
            (b"*1\r\n\r\n", ProtocolError::ExpectedDollar(b'\r')),
            (b"*1\r\n$-1\r\n", ProtocolError::InvalidBulkLength),
            (b"*1\r\n$536870913\r\n", ProtocolError::InvalidBulkLength),
            (b"*1\r\n$4x\r\nPING\r\n", ProtocolError::InvalidBulkLength),
            (b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n:5\r\n", ProtocolError::ExpectedDollar(b':')),
        ];
        for (bytes, expected) in cases {
            let (commands, error, _) = decode(&[b"PING\r\n", *bytes].concat());
            assert_eq!((commands, error), (vec![words("PING")], Some(*expected)), "{}", bytes.escape_ascii());
        }
        let mut reply = Reply::new(Protocol::Resp2);
        ProtocolError::ExpectedDollar(b'\r').write(&mut reply);
        assert_eq!(reply.to_vec(), b"-ERR Protocol error: expected '$', got ' '\r\n");
    }

    #[test]
    fn the_largest_count_and_length_are_awaited_without_memory() {
        for input in [&b"*2147483647\r\n"[..], b"*1\r\n$536870912\r\n"] {
            assert_eq!(decode(input), (vec![], None, input.len()));
        }
        let mut decoder = Decoder::default();
        decoder.decode(&mut b"*2\r\n$100000\r\nabc".to_vec(), &OPEN, &mut Batch::default());
        assert_eq!(decoder.expected(), b"*2\r\n$100000\r\n".len() + 100_002);
    }

    #[test]
    fn lines_that_do_not_end_are_refused_at_the_same_byte_however_they_arrive() {
        let longest = limits::PROTOCOL_LINE_BYTES_MAX;
        for (prefix, expected) in [
            (&b""[..], ProtocolError::TooBigInline),
            (b"*", ProtocolError::TooBigMultibulkCount),
            (b"*1\r\n$", ProtocolError::TooBigBulkCount),
        ] {
            let mut input = prefix.to_vec();
            let line_start = if prefix.len() > 1 { prefix.len() - 1 } else { 0 };
            input.resize(line_start + longest, b'1');
            assert_eq!(decode(&input).1, None);
            input.push(b'1');
            assert_eq!(decode(&input).1, Some(expected));
            // A line end behind the bound comes too late, even in the same piece.
            input.extend_from_slice(b"\r\n");
            assert_eq!(decode(&input).1, Some(expected));
            assert_eq!(decode_pieces(input.chunks(777), &OPEN).1, Some(expected));
        }
    }

    #[test]
    fn strangers_get_one_command_at_a_time_and_small_ones_only() {
        let (mut decoder, mut batch) = (Decoder::default(), Batch::default());
        let decoded = decoder.decode(&mut b"AUTH x\r\nPING\r\n".to_vec(), &UNAUTHENTICATED, &mut batch);
        assert_eq!((decoded.consumed, batch.len()), (8, 1));
        for (input, expected) in [
            (&b"*11\r\n"[..], Some(ProtocolError::UnauthenticatedMultibulkLength)),
            (b"*10\r\n$16384\r\n", None),
            (b"*10\r\n$16385\r\n", Some(ProtocolError::UnauthenticatedBulkLength)),
        ] {
            assert_eq!(decode_pieces(std::iter::once(input), &UNAUTHENTICATED).1, expected);
        }
    }

    #[test]
    fn a_small_maximum_length_holds_on_both_paths() {
        let limits = DecodeLimits { bulk_bytes_max: 3, ..OPEN };
        let input = b"*1\r\n$3\r\nGET\r\n*1\r\n$4\r\nPING\r\n";
        let (commands, error, _) = decode_pieces(std::iter::once(&input[..]), &limits);
        assert_eq!((commands, error), (vec![words("GET")], Some(ProtocolError::InvalidBulkLength)));
    }

    /// A small generator of reproducible pseudo-random numbers (xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }

    #[test]
    fn any_split_gives_the_same_commands() {
        let fragments: &[&[u8]] = &[
            b"*2\r\n$3\r\nGET\r\n$16\r\n0123456789abcdef\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$11\r\n*1\r\n$2\r\nab\r\n",
            b"SET \"a\\x41 b\" 'c d'\r\n",
            b"PING\n",
            b"\r\n",
            b"*0\r\n",
            b"*1\r\n",
            b"$5\r\n",
            b"*12\r\n",
            b"\0\xff\"",
            b"*-7\r",
        ];
        let seed = 0x9e37_79b9_7f4a_7c15;
        let mut random = Random(seed);
        for round in 0..3000 {
            let mut input = Vec::new();
            for _ in 0..1 + random.below(8) {
                input.extend_from_slice(fragments[random.below(fragments.len())]);
            }
            if random.below(4) == 0 {
                let at = random.below(input.len());
                input[at] = random.below(256) as u8;
            }
            if random.below(8) == 0 {
                let large = random.below(100_000);
                input.extend_from_slice(format!("*1\r\n${large}\r\n").as_bytes());
                input.resize(input.len() + large + 2, b'x');
            }
            let whole = decode(&input);
            let mut cuts: Vec<usize> = (0..random.below(12)).map(|_| random.below(input.len() + 1)).collect();
            cuts.extend([0, input.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]);
            assert_eq!(decode_pieces(pieces, &OPEN), whole, "seed {seed:#x}, round {round}: {}", input.escape_ascii());
            if input.len() < 300 {
                assert_eq!(decode_pieces(input.chunks(1), &OPEN), whole, "seed {seed:#x}, round {round}, single bytes");
            }
        }
    }
}

//! The arguments of one command, the name first, and the numbers in them as Redis reads them.

use super::error::CommandError;

/// A command line: `args[0]` is the name. Borrowed from the connection's input buffer, a script or a test.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    items: &'a [&'a [u8]],
}

impl<'a> Args<'a> {
    /// A command line of at least its name.
    pub fn new(items: &'a [&'a [u8]]) -> Self {
        debug_assert!(!items.is_empty());
        Self { items }
    }

    /// Number of arguments with the name.
    #[allow(clippy::len_without_is_empty, reason = "there is always a name")]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The argument at `index`.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.items.get(index).copied()
    }

    /// The argument at `index`, which arity or an earlier check has shown to exist.
    #[inline]
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.items[index]
    }

    /// All arguments from `index` on.
    pub fn from(&self, index: usize) -> &'a [&'a [u8]] {
        self.items.get(index..).unwrap_or(&[])
    }

    /// Whether the argument at `index` is this keyword (given in upper or lower case), in any case.
    pub fn is(&self, index: usize, keyword: &str) -> bool {
        self.get(index).is_some_and(|argument| argument.eq_ignore_ascii_case(keyword.as_bytes()))
    }

    /// The argument at `index` as a 64-bit signed integer.
    pub fn integer(&self, index: usize) -> Result<i64, CommandError> {
        self.get(index).and_then(parse_integer).ok_or(CommandError::NOT_AN_INTEGER)
    }
}

/// Reads a 64-bit signed integer in the one form Redis accepts: no blanks, no plus sign, no leading zeros, no minus zero.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // At most 19 digits: below 10^19, which fits 64 bits.
        magnitude = magnitude * 10 + u64::from(digit);
    }
    match negative {
        false => i64::try_from(magnitude).ok(),
        true if magnitude <= 1 << 63 => Some((magnitude as i64).wrapping_neg()),
        true => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_redis_reads_them() {
        let cases: &[(&[u8], Option<i64>)] = &[
            (b"0", Some(0)),
            (b"-0", None),
            (b"007", None),
            (b"+1", None),
            (b" 1", None),
            (b"", None),
            (b"-", None),
            (b"9223372036854775807", Some(i64::MAX)),
            (b"9223372036854775808", None),
            (b"-9223372036854775808", Some(i64::MIN)),
            (b"-9223372036854775809", None),
            (b"99999999999999999999", None),
            (b"12a", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_integer(text), *expected, "{:?}", String::from_utf8_lossy(text));
        }
    }
}

//! Which arguments of a command line are keys, and what is done with them.

use super::args::{Args, parse_integer};
use super::spec::{BeginSearch, FindKeys, KeyFlags, KeySpec, Row};
use smallvec::SmallVec;

/// One key of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPosition {
    /// Its argument index (the command name is 0).
    pub index: usize,
    /// What is done with it.
    pub flags: KeyFlags,
}

/// The keys of one command line, in the order of the key specs.
pub type KeyPositions = SmallVec<[KeyPosition; 8]>;

/// The command line does not fit the command's key specs (a bad number of keys, an odd number of arguments ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidKeys;

/// How a number of keys is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// As the command itself reads it.
    Strict,
    /// As [`leading_integer`] does. Redis falls back to it where the strict reading fails, and then does not know the keys' flags.
    Lenient,
}

/// Finds the keys of a command line of `row`, whose arity must have been checked. O(arguments).
pub fn find_keys(row: &Row, args: &Args<'_>) -> Result<KeyPositions, InvalidKeys> {
    read_keys(row, args, Reading::Strict).or_else(|| read_keys(row, args, Reading::Lenient)).ok_or(InvalidKeys)
}

fn read_keys(row: &Row, args: &Args<'_>, reading: Reading) -> Option<KeyPositions> {
    let mut keys = KeyPositions::new();
    for spec in row.keys.iter().filter(|spec| !spec.flags.has(KeyFlags::NOT_KEY)) {
        let (first, last, step) = locate(spec, args, reading)?;
        let flags = match reading {
            Reading::Strict => spec.flags_of.map_or(spec.flags, |flags_of| flags_of(args)),
            Reading::Lenient => KeyFlags::NONE,
        };
        keys.extend((first..=last).step_by(step).map(|index| KeyPosition { index, flags }));
    }
    Some(keys)
}

/// First and last key's argument index, both of `args`, and the step between keys.
fn locate(spec: &KeySpec, args: &Args<'_>, reading: Reading) -> Option<(usize, usize, usize)> {
    let count = i64::try_from(args.len()).ok()?;
    let begin = match spec.begin {
        BeginSearch::Index(index) => i64::from(index),
        BeginSearch::Keyword(keyword, from) if from >= 0 => {
            let found = (usize::try_from(from).ok()?..args.len() - 1).find(|index| args.is(*index, keyword))?;
            found as i64 + 1
        }
        BeginSearch::Keyword(keyword, from) => {
            let from = usize::try_from(count + i64::from(from)).ok()?;
            let found = (1..=from).rev().find(|index| args.is(*index, keyword))?;
            found as i64 + 1
        }
        BeginSearch::Unknown => return None,
    };
    let (first, last, step) = match spec.find {
        FindKeys::Range(last, step, _) if last >= 0 => (begin, begin + i64::from(last), step),
        FindKeys::Range(last, step, 0) => (begin, count + i64::from(last), step),
        FindKeys::Range(last, step, limit) => {
            (begin, begin + (count - begin) / i64::from(limit) + i64::from(last), step)
        }
        FindKeys::KeyNumber(number, first, step) => {
            let number = args.get(usize::try_from(begin + i64::from(number)).ok()?)?;
            let number = match reading {
                Reading::Strict => parse_integer(number)?,
                Reading::Lenient => i64::from(leading_integer(number)),
            };
            if !(1..=count).contains(&number) {
                return None;
            }
            let first = begin + i64::from(first);
            (first, first + (number - 1) * i64::from(step), step)
        }
        FindKeys::Unknown => return None,
    };
    let inside = 0 < first && first <= last && last < count;
    inside.then_some((first as usize, last as usize, usize::try_from(step).ok().filter(|step| *step > 0)?))
}

/// Reads a number of keys as C's `atoi` does, as Redis does here: blanks and a sign first, whatever follows the digits is ignored, and only
/// the low 32 bits count. The command itself reads its arguments more strictly when it runs.
fn leading_integer(text: &[u8]) -> i32 {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (sign, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let mut number: i64 = 0;
    for digit in digits.iter().map_while(|byte| byte.is_ascii_digit().then(|| i64::from(byte - b'0'))) {
        number = number.saturating_mul(10).saturating_add(sign * digit);
    }
    number as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexes(keys: &'static [KeySpec], line: &str) -> Result<Vec<usize>, InvalidKeys> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let found = find_keys(&Row { keys, ..Row::DEFAULT }, &Args::new(&words))?;
        Ok(found.iter().map(|key| key.index).collect())
    }

    #[test]
    fn ranges_count_from_the_first_key_or_from_the_end() {
        const PAIR: &[KeySpec] = &[KeySpec::pair(1, KeyFlags::READ)];
        assert_eq!(indexes(PAIR, "lcs a b"), Ok(vec![1, 2]));
        assert_eq!(indexes(PAIR, "lcs a"), Err(InvalidKeys));
        const EVERY_SECOND: &[KeySpec] = &[KeySpec::many(1, 2, KeyFlags::REPLACE)];
        assert_eq!(indexes(EVERY_SECOND, "mset a 1 b 2"), Ok(vec![1, 3]));
        assert_eq!(indexes(EVERY_SECOND, "mset"), Err(InvalidKeys));
        const HALF: &[KeySpec] = &[KeySpec {
            begin: BeginSearch::Keyword("STREAMS", 1),
            find: FindKeys::Range(-1, 1, 2),
            ..KeySpec::one(0, KeyFlags::READ)
        }];
        assert_eq!(indexes(HALF, "xread count 1 streams a b 0 0"), Ok(vec![4, 5]));
        assert_eq!(indexes(HALF, "xread count 1"), Err(InvalidKeys));
        const FROM_END: &[KeySpec] =
            &[KeySpec { begin: BeginSearch::Keyword("KEYS", -2), ..KeySpec::many(0, 1, KeyFlags::READ) }];
        assert_eq!(indexes(FROM_END, "migrate h 1 keys 0 9 keys a b"), Ok(vec![7, 8]));
    }

    #[test]
    fn a_number_of_keys_must_fit() {
        const NUMBERED: &[KeySpec] = &[KeySpec::numbered(1, KeyFlags::TAKE)];
        assert_eq!(indexes(NUMBERED, "lmpop 2 a b left"), Ok(vec![2, 3]));
        assert_eq!(indexes(NUMBERED, "lmpop 1.5 a left"), Ok(vec![2]));
        assert_eq!(indexes(NUMBERED, "lmpop +01 a left"), Ok(vec![2]));
        assert_eq!(indexes(NUMBERED, "lmpop 4294967297 a left"), Ok(vec![2]));
        for bad in ["lmpop 0 a left", "lmpop -1 a left", "lmpop x a left", "lmpop 9223372036854775807 a left"] {
            assert_eq!(indexes(NUMBERED, bad), Err(InvalidKeys), "{bad}");
        }
    }

    #[test]
    fn what_is_no_key_is_left_out_and_flags_follow_the_command_line() {
        const KEYS: &[KeySpec] = &[
            KeySpec::one(1, KeyFlags::NOT_KEY),
            KeySpec::one(2, KeyFlags::MODIFY)
                .varying(|args| if args.len() > 3 { KeyFlags::RO } else { KeyFlags::CREATE }),
        ];
        let row = Row { keys: KEYS, ..Row::DEFAULT };
        let found = |words: &[&[u8]]| find_keys(&row, &Args::new(words)).map(|keys| keys.to_vec());
        assert_eq!(found(&[b"x", b"a", b"b"]), Ok(vec![KeyPosition { index: 2, flags: KeyFlags::CREATE }]));
        assert_eq!(found(&[b"x", b"a", b"b", b"c"]), Ok(vec![KeyPosition { index: 2, flags: KeyFlags::RO }]));
    }
}

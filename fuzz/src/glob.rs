//! Does the pattern matcher agree with a naive one that tries everything?

use caswell::glob;

/// Steps that the naive matcher may take; it is exponential in the number of stars.
const STEPS_MAX: usize = 20_000;

/// The first byte says where the pattern ends and the text begins, and whether case counts.
pub fn run(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let ignore_case = choice & 1 == 1;
    let (pattern, text) = rest.split_at(usize::from(choice >> 1).min(rest.len()));
    let matched = glob::matches(pattern, text, ignore_case);
    // An empty text matches the empty pattern only: Redis' oddity.
    let naive = if text.is_empty() { Some(pattern.is_empty()) } else { naive(pattern, text, ignore_case, &mut 0) };
    if let Some(naive) = naive {
        assert_eq!(matched, naive, "pattern {} text {}", pattern.escape_ascii(), text.escape_ascii());
    }
}

/// `None` where it takes too long to say.
fn naive(pattern: &[u8], text: &[u8], ignore_case: bool, steps: &mut usize) -> Option<bool> {
    *steps += 1;
    if *steps > STEPS_MAX {
        return None;
    }
    match (pattern, text) {
        ([], _) => Some(text.is_empty()),
        ([b'*', rest @ ..], []) => naive(rest, text, ignore_case, steps),
        (_, []) => Some(false),
        ([b'*', rest @ ..], [_, later @ ..]) => {
            Some(naive(rest, text, ignore_case, steps)? || naive(pattern, later, ignore_case, steps)?)
        }
        (_, [byte, later @ ..]) => {
            let (fits, length) = one(pattern, *byte, ignore_case);
            if fits { naive(&pattern[length..], later, ignore_case, steps) } else { Some(false) }
        }
    }
}

/// Whether a byte fits the pattern's first part, and that part's length.
fn one(pattern: &[u8], byte: u8, ignore_case: bool) -> (bool, usize) {
    let fold = |byte: u8| if ignore_case { byte.to_ascii_lowercase() } else { byte };
    match pattern {
        [b'?', ..] => (true, 1),
        [b'\\', literal, ..] => (fold(*literal) == fold(byte), 2),
        [b'[', ..] => {
            let negated = pattern.get(1) == Some(&b'^');
            let mut at = if negated { 2 } else { 1 };
            let mut found = false;
            loop {
                match &pattern[at.min(pattern.len())..] {
                    [] => return (found != negated, pattern.len()),
                    [b']', ..] => return (found != negated, at + 1),
                    [b'\\', literal, ..] => {
                        // Redis takes an escaped byte of a class exactly, even where case is ignored.
                        found |= *literal == byte;
                        at += 2;
                    }
                    [from, b'-', to, ..] => {
                        // Redis turns a backwards range round before it folds the ends, so that `[Z-[]` holds nothing where case is ignored.
                        found |= (fold(*from.min(to))..=fold(*from.max(to))).contains(&fold(byte));
                        at += 3;
                    }
                    [literal, ..] => {
                        found |= fold(*literal) == fold(byte);
                        at += 1;
                    }
                }
            }
        }
        [literal, ..] => (fold(*literal) == fold(byte), 1),
        [] => (false, 0),
    }
}

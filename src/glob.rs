//! Glob patterns, as KEYS, SCAN, CONFIG GET and pattern subscriptions match them.
//!
//! `*` stands for any bytes, `?` for one, `[ab]`, `[a-z]` and `[^a-z]` for one of a class, `\` takes the meaning off the byte after it.
//! Odd patterns mean what they mean in Redis: a class without its `]` reaches to the pattern's end, a `-` between two bytes
//! of a class is always a range (so `[a-]` has no end), a range may stand backwards, and an empty text matches the empty pattern only.

/// Whether the whole of `text` matches `pattern`; with `ignore_case`, ASCII letters match in either case.
///
/// At most `pattern.len() * text.len()` steps and no recursion: on a mismatch only the last `*` is widened. An earlier one need
/// never be, because every other part of a pattern takes exactly one byte, so what the earlier stars took first is the most generous choice.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let mut rest = pattern;
    let mut position = 0;
    // The pattern after the last star seen, and the text position at which it is tried next.
    let mut retry: Option<(&[u8], usize)> = None;
    while position < text.len() {
        if let [b'*', after @ ..] = rest {
            rest = after;
            retry = Some((after, position + 1));
            continue;
        }
        match match_one(rest, text[position], ignore_case) {
            Some(after) => {
                rest = after;
                position += 1;
            }
            None => {
                let Some((after_star, next)) = retry else { return false };
                if after_star.is_empty() {
                    return true;
                }
                rest = after_star;
                position = next;
                retry = Some((after_star, next + 1));
            }
        }
    }
    rest.iter().all(|byte| *byte == b'*')
}

/// Matches one byte against the first part of `pattern`, which is no star, and gives the pattern after it.
fn match_one(pattern: &[u8], byte: u8, ignore_case: bool) -> Option<&[u8]> {
    let (matched, after) = match pattern {
        [] => return None,
        [b'?', after @ ..] => (true, after),
        [b'[', class @ ..] => match_class(class, byte, ignore_case),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (same(*literal, byte, ignore_case), after),
    };
    matched.then_some(after)
}

/// Whether `byte` is of the class that `pattern` begins with (after its `[`), and the pattern after the class.
fn match_class(pattern: &[u8], byte: u8, ignore_case: bool) -> (bool, &[u8]) {
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        match rest {
            // Redis compares an escaped byte of a class exactly even where case is ignored.
            [b'\\', literal, after @ ..] => {
                found |= *literal == byte;
                rest = after;
            }
            [b']', after @ ..] => return (found != negated, after),
            [] => return (found != negated, rest),
            [first, b'-', last, after @ ..] => {
                let (low, high) = (*first.min(last), *first.max(last));
                found |= match ignore_case {
                    true => (low.to_ascii_lowercase()..=high.to_ascii_lowercase()).contains(&byte.to_ascii_lowercase()),
                    false => (low..=high).contains(&byte),
                };
                rest = after;
            }
            [literal, after @ ..] => {
                found |= same(*literal, byte, ignore_case);
                rest = after;
            }
        }
    }
}

fn same(one: u8, other: u8, ignore_case: bool) -> bool {
    one == other || (ignore_case && one.eq_ignore_ascii_case(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_redis() {
        let cases: &[(&str, &str, bool)] = &[
            ("", "", true),
            ("*", "", false),
            ("", "a", false),
            ("*", "abc", true),
            ("a*", "a", true),
            ("a**", "a", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("*ab*ba*", "xabyabaz", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("[a-]", "a", true),
            ("[a-]", "_", true),
            ("[]a", "a", false),
            ("[", "[", false),
            ("[^", "x", true),
            ("[abc", "b", true),
            ("[\\]]", "]", true),
            ("[\\", "\\", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("\\\\", "\\", true),
            ("A", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), *expected, "{pattern:?} on {text:?}");
        }
        assert!(matches(b"MAX*[A-C]", b"maxmemoryb", true));
        assert!(!matches(b"[\\A]", b"a", true), "an escaped byte of a class keeps its case");
    }

    /// Every way to split the text, written down without thought for cost.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([b'*', after @ ..], _) => (0..=text.len()).any(|taken| naive(after, &text[taken..])),
            (_, []) => pattern.is_empty(),
            (_, [byte, rest @ ..]) => match_one(pattern, *byte, false).is_some_and(|after| naive(after, rest)),
        }
    }

    #[test]
    fn the_last_star_is_enough() {
        let mut state = 1u64;
        let mut draw = |alphabet: &[u8], length: usize| -> Vec<u8> {
            let mut one = |below: usize| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize % below
            };
            (0..one(length)).map(|_| alphabet[one(alphabet.len())]).collect()
        };
        for _ in 0..50_000 {
            let (pattern, text) = (draw(b"**ab?[]^-\\", 9), draw(b"ab-]", 7));
            if !text.is_empty() {
                assert_eq!(matches(&pattern, &text, false), naive(&pattern, &text), "{pattern:?} on {text:?}");
            }
        }
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        let pattern = b"a*".repeat(2_000);
        assert!(!matches(&[&pattern[..], b"b"].concat(), &b"a".repeat(20_000), false));
    }
}

//! The configuration file's text: a pure function from bytes to directives.
//!
//! One directive per line: a name and its words. Words are separated by blanks; `"` quotes with escapes (`\n \r \t \b \a
//! \xHH`, any other byte after a backslash stands for itself), `'` quotes without, except `\'`. A closing quote ends its
//! word, so a blank or the line's end must follow. Lines that are empty or begin with `#` are skipped.

use std::fmt;

use crate::limits::CONFIG_FILE_BYTES_MAX;

/// One line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Its line, from 1.
    pub line: usize,
    /// The line's text without the blanks around it.
    pub text: Vec<u8>,
    /// The name, in lower case.
    pub name: Vec<u8>,
    /// The words behind it.
    pub words: Vec<Vec<u8>>,
}

/// A line that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Its line, from 1.
    pub line: usize,
    /// The line's text.
    pub text: Vec<u8>,
    /// What is wrong with it.
    pub reason: String,
}

impl FileError {
    /// An error about a directive.
    pub fn of(directive: &Directive, reason: impl Into<String>) -> Self {
        Self { line: directive.line, text: directive.text.clone(), reason: reason.into() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "\n*** FATAL CONFIG FILE ERROR (Caswell {}) ***", env!("CARGO_PKG_VERSION"))?;
        writeln!(formatter, "Reading the configuration file, at line {}", self.line)?;
        writeln!(formatter, ">>> '{}'", String::from_utf8_lossy(&self.text))?;
        write!(formatter, "{}", self.reason)
    }
}

impl std::error::Error for FileError {}

/// Reads a file's text. O(n).
///
/// # Errors
/// The first line whose quotes do not match, or a text longer than [`CONFIG_FILE_BYTES_MAX`].
pub fn parse(text: &[u8]) -> Result<Vec<Directive>, FileError> {
    if text.len() > CONFIG_FILE_BYTES_MAX {
        let reason = format!("The configuration is longer than {CONFIG_FILE_BYTES_MAX} bytes");
        return Err(FileError { line: 0, text: Vec::new(), reason });
    }
    let mut directives = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let text = trim(line);
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let line = index + 1;
        let Some(mut words) = split_words(text) else {
            let reason = "Unbalanced quotes in configuration line".to_owned();
            return Err(FileError { line, text: text.to_vec(), reason });
        };
        // A line that is not empty has a first word, though it may be an empty one in quotes.
        let name = words.remove(0).to_ascii_lowercase();
        directives.push(Directive { line, text: text.to_vec(), name, words });
    }
    Ok(directives)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c | 0)
}

fn trim(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !is_blank(*byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

/// Splits a line into words; `None` if quotes do not match or a closing quote is not followed by a blank.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        while let [first, tail @ ..] = rest
            && is_blank(*first)
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Some(words);
        }
        let (word, tail) = split_word(rest)?;
        words.push(word);
        rest = tail;
    }
}

/// The first word of a text that begins with one, and what follows.
fn split_word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Some((word, rest)),
            [blank, ..] if is_blank(*blank) => return Some((word, rest)),
            [b'"', tail @ ..] => return end_of_quotes(word, double_quoted, tail),
            [b'\'', tail @ ..] => return end_of_quotes(word, single_quoted, tail),
            [byte, tail @ ..] => {
                word.push(*byte);
                rest = tail;
            }
        }
    }
}

type Quoted = fn(&mut Vec<u8>, &[u8]) -> Option<usize>;

fn end_of_quotes(mut word: Vec<u8>, quoted: Quoted, rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let rest = &rest[quoted(&mut word, rest)?..];
    match rest.first() {
        Some(byte) if !is_blank(*byte) => None,
        _ => Some((word, rest)),
    }
}

/// Appends the text up to the closing double quote; the length read with it.
fn double_quoted(word: &mut Vec<u8>, text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match &text[at..] {
            [] => return None,
            [b'"', ..] => return Some(at + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hexadecimal(*high) << 4 | hexadecimal(*low));
                at += 4;
            }
            [b'\\', escaped, ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

fn hexadecimal(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Appends the text up to the closing single quote; the length read with it.
fn single_quoted(word: &mut Vec<u8>, text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match &text[at..] {
            [] => return None,
            [b'\'', ..] => return Some(at + 1),
            [b'\\', b'\'', ..] => {
                word.push(b'\'');
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words = split_words(line.as_bytes())?;
        Some(words.into_iter().map(|word| String::from_utf8(word).expect("test input")).collect())
    }

    #[test]
    fn words_are_split_at_blanks_outside_quotes() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("", Some(&[])),
            ("  a  b ", Some(&["a", "b"])),
            (r#"a "b c" 'd e'"#, Some(&["a", "b c", "d e"])),
            (r#""" ''"#, Some(&["", ""])),
            (r#""\n\x41\q""#, Some(&["\nAq"])),
            (r#""\x4g""#, Some(&["x4g"])),
            (r"'it\'s \n'", Some(&[r"it's \n"])),
            (r#"a"b""#, Some(&["ab"])),
            (r#""a"b"#, None),
            (r#""a"#, None),
            (r#"'a"#, None),
            (r#""a\"#, None),
        ];
        for (line, expected) in cases {
            let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn comments_and_empty_lines_are_skipped_but_counted() {
        let directives = parse(b"# first\n\n Port  7000\r\n\tsave 1 2 # 3\n").expect("well formed");
        assert_eq!(directives.len(), 2);
        assert_eq!((directives[0].line, &*directives[0].name), (3, &b"port"[..]));
        assert_eq!(directives[0].words, [b"7000"]);
        assert_eq!(directives[1].words.len(), 4, "a sign inside the line is no comment");
    }

    #[test]
    fn errors_name_the_line() {
        let error = parse(b"port 1\nlogfile \"x\n").expect_err("an open quote");
        assert_eq!(error.line, 2);
        let text = error.to_string();
        assert!(text.contains("at line 2\n>>> 'logfile \"x'\nUnbalanced quotes"), "{text}");
    }
}

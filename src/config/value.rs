//! The value of a setting, the kinds of settings, and how each kind is read and written.
//!
//! The texts of the errors are interface: CONFIG SET sends them on as Redis words them.

use std::borrow::Cow;

/// Why a value was refused: the part of CONFIG SET's error after the dash.
pub type Refusal = Cow<'static, str>;

/// A value, already checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number: an integer, bytes, permissions, 0 or 1 for no or yes, the index of a choice, or the bits of several.
    Number(i64),
    /// A percentage of `maxmemory`.
    Percent(i64),
    /// Any bytes.
    Text(Vec<u8>),
    /// Several words.
    Words(Vec<Vec<u8>>),
}

impl Value {
    /// The number; zero for what is none.
    pub fn number(&self) -> i64 {
        match self {
            Self::Number(number) | Self::Percent(number) => *number,
            Self::Text(_) | Self::Words(_) => 0,
        }
    }

    /// Whether a yes/no setting says yes.
    pub fn is_yes(&self) -> bool {
        self.number() != 0
    }

    /// The text; empty for what is none.
    pub fn text(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            _ => &[],
        }
    }

    /// The words; none for what has none.
    pub fn words(&self) -> &[Vec<u8>] {
        match self {
            Self::Words(words) => words,
            _ => &[],
        }
    }
}

/// How a setting's value is read and written.
#[derive(Clone, Copy)]
pub enum Kind {
    /// `yes` or `no`.
    YesNo,
    /// A decimal integer within inclusive limits.
    Integer(i64, i64),
    /// Bytes, with a unit or without, within inclusive limits.
    Memory(i64, i64),
    /// Bytes, or a percentage up to 100.
    MemoryOrPercent,
    /// Octal digits, up to a limit.
    Octal(i64),
    /// One of these names.
    Choice(&'static [&'static str]),
    /// Any of these names together; the first stands for none of the others.
    Choices(&'static [&'static str]),
    /// Any text that the function accepts.
    Text(fn(&[u8]) -> Result<(), Refusal>),
    /// Several words, read and written by the setting's own functions.
    Words(&'static WordsKind),
}

/// A kind of setting that is several words on one line of the file.
pub struct WordsKind {
    /// Whether it is one word after all, whose form only its own functions know.
    pub single: bool,
    /// Makes the new value from the words given and the value before.
    pub read: fn(before: &Value, words: &[&[u8]]) -> Result<Value, Refusal>,
    /// What CONFIG GET prints.
    pub print: fn(&Value) -> Vec<u8>,
    /// What CONFIG REWRITE writes: the rest of each line.
    pub lines: fn(&Value) -> Vec<Vec<u8>>,
}

impl Kind {
    /// Whether several words may follow the name in the file.
    pub fn takes_words(&self) -> bool {
        match self {
            Self::Words(kind) => !kind.single,
            Self::Choices(_) => true,
            _ => false,
        }
    }

    /// Reads a value from the words after the name. `before` is the value that it replaces, for kinds of which a line
    /// sets a part only.
    pub fn read(&self, before: &Value, words: &[&[u8]]) -> Result<Value, Refusal> {
        if let Self::Words(kind) = self {
            return (kind.read)(before, words);
        }
        if let Self::Choices(names) = self {
            return read_choices(names, words);
        }
        let [word] = words else { return Err("wrong number of arguments".into()) };
        match *self {
            Self::YesNo => match choice(&["no", "yes"], word) {
                Some(index) => Ok(Value::Number(index)),
                None => Err("argument must be 'yes' or 'no'".into()),
            },
            Self::Integer(minimum, maximum) => {
                let number = crate::command::args::parse_integer(word)
                    .ok_or(Cow::Borrowed("argument couldn't be parsed into an integer"))?;
                within(number, minimum, maximum)
            }
            Self::Memory(minimum, maximum) => {
                let number = parse_memory(word).ok_or(Cow::Borrowed("argument must be a memory value"))?;
                within(number, minimum, maximum)
            }
            Self::MemoryOrPercent => {
                if let [digits @ .., b'%'] = *word {
                    return match crate::command::args::parse_integer(digits) {
                        Some(percent @ 0..=100) => Ok(Value::Percent(percent)),
                        Some(percent) if percent > 100 => {
                            Err("percentage argument must be less or equal to 100".into())
                        }
                        _ => Err("argument must be a memory or percent value".into()),
                    };
                }
                let number = parse_memory(word).ok_or(Cow::Borrowed("argument must be a memory or percent value"))?;
                Ok(Value::Number(number))
            }
            Self::Octal(maximum) => {
                let number = std::str::from_utf8(word).ok().and_then(|text| i64::from_str_radix(text, 8).ok());
                match number {
                    Some(number) if (0..=maximum).contains(&number) => Ok(Value::Number(number)),
                    Some(_) => Err(format!("argument must be between 0 and {maximum:o} inclusive").into()),
                    None => Err("argument couldn't be parsed as an octal number".into()),
                }
            }
            Self::Choice(names) => choice(names, word).map(Value::Number).ok_or_else(|| one_of(names)),
            Self::Text(check) => check(word).map(|()| Value::Text(word.to_vec())),
            Self::Choices(_) | Self::Words(_) => unreachable!("handled above"),
        }
    }

    /// What CONFIG GET prints.
    pub fn print(&self, value: &Value) -> Vec<u8> {
        match (self, value) {
            (Self::Words(kind), _) => (kind.print)(value),
            (Self::YesNo, _) => if value.is_yes() { "yes" } else { "no" }.into(),
            (Self::Choice(names), _) => names[value.number() as usize].into(),
            (Self::Choices(names), _) => print_choices(names, value.number()).into(),
            (Self::Octal(_), _) => format!("{:o}", value.number()).into(),
            (_, Value::Percent(percent)) => format!("{percent}%").into(),
            (_, Value::Number(number)) => number.to_string().into(),
            (_, Value::Text(text)) => text.clone(),
            (_, Value::Words(words)) => words.join(&b' '),
        }
    }

    /// What CONFIG REWRITE writes behind the name: one element per line, quoted where needed.
    pub fn lines(&self, value: &Value) -> Vec<Vec<u8>> {
        match (self, value) {
            (Self::Words(kind), _) => (kind.lines)(value),
            (Self::Memory(..) | Self::MemoryOrPercent, Value::Number(bytes)) => vec![print_memory(*bytes).into()],
            (Self::Text(_), _) => vec![quote(value.text())],
            _ => vec![self.print(value)],
        }
    }

    /// The kind in words, for the documentation.
    pub fn describe(&self) -> String {
        match self {
            Self::YesNo => "yes or no".into(),
            Self::Integer(minimum, maximum) => match *maximum {
                i64::MAX => format!("integer from {minimum}"),
                _ => format!("integer from {minimum} to {maximum}"),
            },
            Self::Memory(minimum, _) if *minimum > 0 => format!("bytes from {}", print_memory(*minimum)),
            Self::Memory(..) => "bytes".into(),
            Self::MemoryOrPercent => "bytes or a percentage".into(),
            Self::Octal(_) => "octal permissions".into(),
            Self::Choice(names) => format!("one of {}", names.join(", ")),
            Self::Choices(names) => format!("any of {}", names.join(", ")),
            Self::Text(_) => "text".into(),
            Self::Words(_) => "words".into(),
        }
    }
}

fn within(number: i64, minimum: i64, maximum: i64) -> Result<Value, Refusal> {
    if (minimum..=maximum).contains(&number) {
        return Ok(Value::Number(number));
    }
    Err(format!("argument must be between {minimum} and {maximum} inclusive").into())
}

fn choice(names: &[&str], word: &[u8]) -> Option<i64> {
    names.iter().position(|name| word.eq_ignore_ascii_case(name.as_bytes())).map(|index| index as i64)
}

fn one_of(names: &[&str]) -> Refusal {
    format!("argument(s) must be one of the following: {}", names.join(", ")).into()
}

/// Bit `index - 1` stands for the name at `index`; the first name stands for no bit.
fn read_choices(names: &'static [&'static str], words: &[&[u8]]) -> Result<Value, Refusal> {
    let mut bits = 0;
    for word in words {
        match choice(names, word) {
            Some(0) => {}
            Some(index) => bits |= 1 << (index - 1),
            None => return Err(one_of(names)),
        }
    }
    if words.is_empty() { Err(one_of(names)) } else { Ok(Value::Number(bits)) }
}

fn print_choices(names: &[&str], bits: i64) -> String {
    if bits == 0 {
        return names[0].into();
    }
    let chosen = names[1..].iter().enumerate().filter(|(index, _)| bits & 1 << index != 0);
    chosen.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

/// Reads bytes as Redis does: digits and an optional unit in any case (`b`, `k`, `kb`, `m`, `mb`, `g`, `gb`), where units
/// without `b` are powers of 1000 and units with it of 1024.
pub fn parse_memory(text: &[u8]) -> Option<i64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    // As in Redis, no digits at all are zero.
    let number: i64 = if number.is_empty() { 0 } else { std::str::from_utf8(number).ok()?.parse().ok()? };
    let factor = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Writes bytes with the largest unit that divides them.
pub fn print_memory(bytes: i64) -> String {
    match bytes {
        0 => "0".into(),
        _ if bytes % (1 << 30) == 0 => format!("{}gb", bytes >> 30),
        _ if bytes % (1 << 20) == 0 => format!("{}mb", bytes >> 20),
        _ if bytes % (1 << 10) == 0 => format!("{}kb", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// Writes a text in double quotes with escapes, so that [`split_words`](super::file::split_words) reads it back.
pub fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in text {
        match byte {
            b'\\' | b'"' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\r' => quoted.extend(b"\\r"),
            b'\t' => quoted.extend(b"\\t"),
            0x07 => quoted.extend(b"\\a"),
            0x08 => quoted.extend(b"\\b"),
            b' '..=b'~' => quoted.push(byte),
            _ => quoted.extend(format!("\\x{byte:02x}").into_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_read_back() {
        let every_byte: Vec<u8> = (0..=255).collect();
        assert_eq!(super::super::file::split_words(&quote(&every_byte)), Some(vec![every_byte]));
    }

    #[test]
    fn memory_is_read_with_units_of_both_bases() {
        let cases: &[(&str, Option<i64>)] = &[
            ("0", Some(0)),
            ("100", Some(100)),
            ("1b", Some(1)),
            ("1k", Some(1000)),
            ("1KB", Some(1024)),
            ("2m", Some(2_000_000)),
            ("2mB", Some(2 << 20)),
            ("1g", Some(1_000_000_000)),
            ("1gb", Some(1 << 30)),
            ("", Some(0)),
            ("gb", Some(0)),
            ("yes", None),
            ("-1", None),
            ("1.5gb", None),
            ("1tb", None),
            ("99999999999gb", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_memory(text.as_bytes()), *expected, "{text}");
        }
        assert_eq!([0, 5, 1024, 3 << 20, 1 << 30].map(print_memory), ["0", "5", "1kb", "3mb", "1gb"]);
    }

    #[test]
    fn several_choices_are_bits_and_the_first_is_none() {
        let kind = Kind::Choices(&["default", "save", "nosave"]);
        let before = Value::Number(0);
        let value = kind.read(&before, &[b"NOSAVE", b"default"]).expect("known names");
        assert_eq!(value, Value::Number(2));
        assert_eq!(kind.print(&value), b"nosave");
        assert_eq!(kind.print(&before), b"default");
        let refusal = kind.read(&before, &[b"x"]).expect_err("an unknown name");
        assert_eq!(refusal, "argument(s) must be one of the following: default, save, nosave");
    }

    #[test]
    fn percentages_stay_percentages() {
        let before = Value::Number(0);
        let value = Kind::MemoryOrPercent.read(&before, &[b"5%"]).expect("a percentage");
        assert_eq!(Kind::MemoryOrPercent.print(&value), b"5%");
        assert_eq!(Kind::MemoryOrPercent.lines(&value), [b"5%"]);
        assert!(Kind::MemoryOrPercent.read(&before, &[b"101%"]).is_err());
        assert!(Kind::MemoryOrPercent.read(&before, &[b"-1%"]).is_err());
    }

    #[test]
    fn octal_is_printed_as_it_is_read() {
        let before = Value::Number(0);
        let value = Kind::Octal(0o777).read(&before, &[b"700"]).expect("octal");
        assert_eq!(value, Value::Number(0o700));
        assert_eq!(Kind::Octal(0o777).print(&value), b"700");
        assert!(Kind::Octal(0o777).read(&before, &[b"1000"]).is_err());
        assert!(Kind::Octal(0o777).read(&before, &[b"8"]).is_err());
    }
}

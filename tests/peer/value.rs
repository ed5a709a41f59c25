//! A reply as it came over the wire, every kind kept apart.

use std::fmt;

/// One reply. Two are equal when the bytes on the wire are (but for the digits of lengths).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-`
    Error(Vec<u8>),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `=`, with its format.
    Verbatim(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// `#`
    Boolean(bool),
    /// `,`, as text.
    Double(Vec<u8>),
    /// `(`, as text.
    BigNumber(Vec<u8>),
    /// `*`
    Array(Vec<Value>),
    /// `~`
    Set(Vec<Value>),
    /// `>`
    Push(Vec<Value>),
    /// `%`
    Map(Vec<(Value, Value)>),
    /// The server closed the connection instead of a reply.
    Closed,
    /// No reply came in time.
    Missing,
}

impl Value {
    /// The elements of an array, set or push; of a map, its keys and values in turn.
    pub fn elements(&self) -> Vec<Value> {
        match self {
            Self::Array(elements) | Self::Set(elements) | Self::Push(elements) => elements.clone(),
            Self::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect(),
            _ => Vec::new(),
        }
    }

    /// The value under a key, of a map or of an array that stands for one.
    pub fn field(&self, name: &str) -> Option<Value> {
        let elements = self.elements();
        elements.chunks(2).find(|pair| pair[0].text() == name).and_then(|pair| pair.get(1).cloned())
    }

    /// The text of a string, simple string or error, for people.
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) | Self::Bulk(text) | Self::Verbatim(text) => {
                String::from_utf8_lossy(text).into_owned()
            }
            Self::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        }
    }

    /// The reply on one line, strings without quotes: `+OK`, `-ERR no such key`, `:1`, `$text`, and others as their debug text.
    pub fn brief(&self) -> String {
        match self {
            Self::Simple(text) => format!("+{}", text.escape_ascii()),
            Self::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
            Self::Bulk(text) => format!("${}", text.escape_ascii()),
            other => format!("{other:?}"),
        }
    }

    /// The texts of the elements.
    pub fn texts(&self) -> Vec<String> {
        self.elements().iter().map(Value::text).collect()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |f: &mut fmt::Formatter<'_>, mark: &str, bytes: &[u8]| {
            let shown = &bytes[..bytes.len().min(300)];
            let rest = if shown.len() < bytes.len() { format!("... {} bytes", bytes.len()) } else { String::new() };
            write!(f, "{mark}\"{}\"{rest}", shown.escape_ascii().to_string().replace("\\'", "'"))
        };
        let list = |f: &mut fmt::Formatter<'_>, mark: &str, elements: &[Value]| {
            f.write_str(mark)?;
            f.debug_list().entries(elements).finish()
        };
        match self {
            Self::Simple(bytes) => text(f, "+", bytes),
            Self::Error(bytes) => text(f, "-", bytes),
            Self::Integer(number) => write!(f, ":{number}"),
            Self::Bulk(bytes) => text(f, "", bytes),
            Self::Verbatim(bytes) => text(f, "=", bytes),
            Self::NullBulk => f.write_str("$-1"),
            Self::NullArray => f.write_str("*-1"),
            Self::Null => f.write_str("_"),
            Self::Boolean(truth) => write!(f, "#{truth}"),
            Self::Double(bytes) => text(f, ",", bytes),
            Self::BigNumber(bytes) => text(f, "(", bytes),
            Self::Array(elements) => list(f, "", elements),
            Self::Set(elements) => list(f, "~", elements),
            Self::Push(elements) => list(f, ">", elements),
            Self::Map(pairs) => f.debug_map().entries(pairs.iter().map(|(key, value)| (key, value))).finish(),
            Self::Closed => f.write_str("(closed)"),
            Self::Missing => f.write_str("(no reply)"),
        }
    }
}

//! A reply.

/// A reply in RESP2's shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A simple string.
    Simple(&'static str),
    /// An error line, without the leading minus.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A bulk string.
    Bulk(Vec<u8>),
    /// The null bulk string.
    Null,
    /// The null array.
    NullArray,
    /// An array.
    Array(Vec<Value>),
}

impl Value {
    pub(crate) const OK: Self = Self::Simple("OK");

    pub(crate) fn bulk_or_null(text: Option<Vec<u8>>) -> Self {
        text.map_or(Self::Null, Self::Bulk)
    }

    pub(crate) fn bulks(texts: Vec<Vec<u8>>) -> Self {
        Self::Array(texts.into_iter().map(Self::Bulk).collect())
    }

    /// Its bytes in RESP2.
    pub fn to_resp2(&self) -> Vec<u8> {
        match self {
            Self::Simple(text) => format!("+{text}\r\n").into_bytes(),
            Self::Error(line) => format!("-{line}\r\n").into_bytes(),
            Self::Integer(number) => format!(":{number}\r\n").into_bytes(),
            Self::Bulk(text) => [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat(),
            Self::Null => b"$-1\r\n".to_vec(),
            Self::NullArray => b"*-1\r\n".to_vec(),
            Self::Array(items) => {
                let mut bytes = format!("*{}\r\n", items.len()).into_bytes();
                bytes.extend(items.iter().flat_map(Self::to_resp2));
                bytes
            }
        }
    }
}

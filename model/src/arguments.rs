//! A command's words.

use crate::NOT_AN_INTEGER;

/// The words of one command, its name first.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub name: &'static str,
    pub words: &'a [Vec<u8>],
}

impl<'a> Words<'a> {
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn at(&self, index: usize) -> &'a [u8] {
        &self.words[index]
    }

    pub fn from(&self, index: usize) -> &'a [Vec<u8>] {
        &self.words[index..]
    }

    /// The word in upper case, for keywords.
    pub fn keyword(&self, index: usize) -> String {
        String::from_utf8_lossy(self.at(index)).to_uppercase()
    }

    pub fn integer(&self, index: usize) -> Result<i64, String> {
        integer(self.at(index)).ok_or_else(|| NOT_AN_INTEGER.into())
    }

    /// An integer whose opposite is one too.
    pub fn integer_with_opposite(&self, index: usize) -> Result<i64, String> {
        let (least, most) = (-i64::MAX, i64::MAX);
        self.integer(index).and_then(|number| {
            number
                .checked_neg()
                .map(|_| number)
                .ok_or_else(|| format!("ERR value is out of range, value must between {least} and {most}"))
        })
    }

    /// An integer from `smallest` on; anything else is this error.
    pub fn integer_from(&self, index: usize, smallest: i64, error: &str) -> Result<i64, String> {
        integer(self.at(index)).filter(|number| *number >= smallest).ok_or_else(|| error.into())
    }
}

/// A 64-bit integer written in the one canonical way.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

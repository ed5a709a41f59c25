//! The SHA-1 digest that names a script.

use sha1::{Digest as _, Sha1};

/// A digest, as forty lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 40]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 40];
        for (pair, byte) in text.chunks_exact_mut(2).zip(Sha1::digest(bytes)) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(text)
    }

    /// The digest that a client names, in any case; `None` for what cannot be one.
    pub fn named(name: &[u8]) -> Option<Self> {
        let mut text = <[u8; 40]>::try_from(name).ok()?;
        text.make_ascii_lowercase();
        Some(Self(text))
    }

    /// Its digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its digits as text.
    pub fn as_str(&self) -> &str {
        // A client may have named anything of forty bytes.
        std::str::from_utf8(&self.0).unwrap_or("")
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.escape_ascii().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_hexadecimal_and_named_in_any_case() {
        let digest = Digest::of(b"return 1");
        assert_eq!(digest.as_str(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(Digest::named(b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"), Some(digest));
        assert_eq!(Digest::named(b"e0e1"), None);
    }
}

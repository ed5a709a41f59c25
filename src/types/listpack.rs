//! The bytes that Redis' listpack would take, which OBJECT ENCODING of a list depends on.
//!
//! The format is described in the listpack specification (<https://github.com/antirez/listpack/blob/master/listpack.md>); Caswell does not use
//! it, but a list that Redis calls a `listpack` shall be called so here.

/// Header (total bytes, number of elements) and end marker.
pub(super) const EMPTY_BYTES: u64 = 7;

/// Bytes of one element: its encoding byte or bytes, its payload (integers are packed), and its length for readers from the back.
#[inline]
pub(super) fn entry_bytes(element: &[u8]) -> u64 {
    let encoded = match packed_integer_bytes(element) {
        Some(bytes) => bytes,
        None => {
            element.len() as u64
                + if element.len() < 64 {
                    1
                } else if element.len() < 4096 {
                    2
                } else {
                    5
                }
        }
    };
    encoded
        + if encoded < 128 {
            1
        } else if encoded < 16_383 {
            2
        } else if encoded < 2_097_151 {
            3
        } else if encoded < 268_435_455 {
            4
        } else {
            5
        }
}

/// Bytes of an element that is a 64-bit integer in its shortest decimal form.
fn packed_integer_bytes(element: &[u8]) -> Option<u64> {
    let (negative, digits) = match element.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, element),
    };
    // `0` aside, neither a leading zero nor a sign before zero is the shortest form; 19 digits hold every i64.
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && element.len() > 1) {
        return None;
    }
    let mut magnitude = 0_u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    let number = if negative { 0_i128 - i128::from(magnitude) } else { i128::from(magnitude) };
    Some(match i64::try_from(number).ok()? {
        0..=127 => 1,
        -4096..=4095 => 2,
        -32_768..=32_767 => 3,
        -8_388_608..=8_388_607 => 4,
        -2_147_483_648..=2_147_483_647 => 5,
        _ => 9,
    })
}

/// The setting list-max-listpack-size: a number of elements if positive, else -1 to -5 for 4, 8, 16, 32 or 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListpackLimit(i32);

impl ListpackLimit {
    /// The setting's default, -2: 8 KiB.
    pub const DEFAULT: Self = Self(-2);
    /// What a limit by number of elements allows in bytes.
    const COUNTED_BYTES_MAX: usize = 8192;

    /// The limit that the setting's value stands for.
    pub const fn new(setting: i32) -> Self {
        Self(setting)
    }

    fn bytes_and_count(self) -> (usize, usize) {
        match self.0 {
            // Values below -5 count as -5, and 0 as 1.
            ..0 => (4096 << (self.0.max(-5) + 1).unsigned_abs(), usize::MAX),
            count => (Self::COUNTED_BYTES_MAX, count.max(1) as usize),
        }
    }

    /// Whether a listpack of so many bytes and elements is too large.
    pub(super) fn is_exceeded(self, bytes: usize, count: usize) -> bool {
        let (bytes_max, count_max) = self.bytes_and_count();
        bytes > bytes_max || count > count_max
    }

    /// Whether a quicklist of so many bytes and elements becomes a listpack again. Under a limit by number of elements it does so once all of it
    /// may lie in one piece of the quicklist.
    pub(super) fn is_within_half(self, bytes: usize, count: usize) -> bool {
        match (self.0, self.bytes_and_count()) {
            (..0, (bytes_max, _)) => bytes <= bytes_max / 2,
            (_, (bytes_max, count_max)) => count <= count_max / 2 && bytes <= bytes_max,
        }
    }
}

impl Default for ListpackLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

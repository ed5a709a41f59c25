//! How many bytes Redis' packed form of a list takes, for OBJECT ENCODING.
//!
//! Redis 7.2 holds a list in one packed allocation (`listpack`) as long as it stays within `list-max-listpack-size`, else in a chain
//! of them (`quicklist`). Caswell holds all lists alike and says what Redis would say of the same elements.

use super::args::parse_integer;
use crate::types::List;

/// The header, and the byte that ends it.
const FRAME_BYTES: usize = 7;

/// An element takes at least its own byte and that of its length, read backwards.
const ELEMENT_BYTES_MIN: usize = 2;

/// A limit given in elements holds up to this many bytes only.
const BYTES_MAX_BY_COUNT: usize = 8192;

/// Whether Redis would hold the list in one packed allocation. Looks at no more elements than fit the limit.
pub fn holds(list: &List, list_max_listpack_size: i32) -> bool {
    let bytes_max = match usize::try_from(list_max_listpack_size) {
        Ok(count) if list.len() > count.max(1) => return false,
        Ok(_) => BYTES_MAX_BY_COUNT,
        Err(_) => 4096 << (list_max_listpack_size.unsigned_abs().min(5) - 1),
    };
    if FRAME_BYTES + list.len().saturating_mul(ELEMENT_BYTES_MIN) > bytes_max {
        return false;
    }
    let mut bytes = FRAME_BYTES;
    list.iter_from(0).all(|element| {
        bytes += element_bytes(element);
        bytes <= bytes_max
    })
}

/// Bytes of one element: its encoding with the data, and the length of these as seen from behind.
fn element_bytes(element: &[u8]) -> usize {
    let encoded = match parse_integer(element) {
        Some(0..=127) => 1,
        Some(-4096..=4095) => 2,
        Some(-32_768..=32_767) => 3,
        Some(-8_388_608..=8_388_607) => 4,
        Some(-2_147_483_648..=2_147_483_647) => 5,
        Some(_) => 9,
        None => match element.len() {
            length @ ..=63 => 1 + length,
            length @ ..=4095 => 2 + length,
            length => 5 + length,
        },
    };
    // The backward length has seven bits to a byte.
    let backward = match encoded {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    };
    encoded + backward
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_take_the_bytes_that_redis_gives_them() {
        let cases: &[(&[u8], usize)] = &[
            (b"", 2),
            (b"0", 2),
            (b"127", 2),
            (b"128", 3),
            (b"-1", 3),
            (b"4096", 4),
            (b"32768", 5),
            (b"8388608", 6),
            (b"2147483648", 10),
            (b"01", 4),
            (&[b'x'; 63], 65),
            (&[b'x'; 64], 67),
            (&[b'x'; 200], 204),
            (&[b'x'; 4096], 4103),
        ];
        for (element, bytes) in cases {
            assert_eq!(element_bytes(element), *bytes, "{:?}", String::from_utf8_lossy(element));
        }
    }
}

//! What FUNCTION DUMP gives and FUNCTION RESTORE takes: Redis' format of libraries, with a version and a checksum.
//!
//! ```text
//! (0xF5, the library's code as an RDB string)*, the RDB version in 2 bytes, CRC-64/Jones of all before in 8 bytes; both little-endian
//! ```

/// Begins a library.
const LIBRARY: u8 = 0xf5;
/// The version of Redis 7.0's format, which all later servers read.
const VERSION_WRITTEN: u16 = 10;
/// The latest version that is read, Redis 7.2's.
const VERSION_READ_MAX: u16 = 11;
/// Libraries of one payload, and bytes of one of them, when they are read.
const CODE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Encodes libraries' codes.
pub fn dump<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut payload = Vec::new();
    for code in codes {
        payload.push(LIBRARY);
        match code.len() {
            length @ 0..64 => payload.push(length as u8),
            length @ 64..16_384 => payload.extend([0x40 | (length >> 8) as u8, length as u8]),
            length => {
                payload.push(0x80);
                payload.extend((length as u32).to_be_bytes());
            }
        }
        payload.extend_from_slice(code);
    }
    payload.extend(VERSION_WRITTEN.to_le_bytes());
    payload.extend(checksum(&payload).to_le_bytes());
    payload
}

/// Why a payload cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Its version is too new, or its checksum wrong.
    VersionOrChecksum,
    /// It holds something else than libraries, or less than it says.
    Contents,
}

/// Decodes libraries' codes.
///
/// # Errors
/// The payload is not one.
pub fn restore(payload: &[u8]) -> Result<Vec<Vec<u8>>, Unreadable> {
    let (before, sum) = payload.split_last_chunk::<8>().ok_or(Unreadable::VersionOrChecksum)?;
    let (mut rest, version) = before.split_last_chunk::<2>().ok_or(Unreadable::VersionOrChecksum)?;
    // A checksum of 0 says that none was made.
    let sum = u64::from_le_bytes(*sum);
    if u16::from_le_bytes(*version) > VERSION_READ_MAX || sum != 0 && sum != checksum(before) {
        return Err(Unreadable::VersionOrChecksum);
    }
    let mut codes = Vec::new();
    while let Some((&kind, after)) = rest.split_first() {
        if kind != LIBRARY {
            return Err(Unreadable::Contents);
        }
        let (code, after) = string(after).ok_or(Unreadable::Contents)?;
        codes.push(code);
        rest = after;
    }
    Ok(codes)
}

/// An RDB string, plain or compressed, and what follows it.
fn string(input: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    if let [0xc3, rest @ ..] = input {
        let (packed, rest) = length(rest)?;
        let (plain, rest) = length(rest)?;
        let (packed, rest) = rest.split_at_checked(packed)?;
        return Some((decompress(packed, plain)?, rest));
    }
    let (length, rest) = length(input)?;
    let (code, rest) = rest.split_at_checked(length)?;
    Some((code.to_vec(), rest))
}

fn length(input: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = input.split_first()?;
    match first >> 6 {
        0 => Some((usize::from(first), rest)),
        1 => {
            let (&second, rest) = rest.split_first()?;
            Some((usize::from(first & 0x3f) << 8 | usize::from(second), rest))
        }
        2 if first == 0x80 => {
            let (bytes, rest) = rest.split_first_chunk::<4>()?;
            Some((u32::from_be_bytes(*bytes) as usize, rest))
        }
        _ => None,
    }
}

/// Undoes LZF: runs of literal bytes, and copies of what came before.
fn decompress(mut packed: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > CODE_BYTES_MAX {
        return None;
    }
    let mut plain = Vec::new();
    while let Some((&control, rest)) = packed.split_first() {
        packed = rest;
        if control < 32 {
            let (literals, rest) = packed.split_at_checked(usize::from(control) + 1)?;
            plain.extend_from_slice(literals);
            packed = rest;
        } else {
            let mut count = usize::from(control >> 5);
            if count == 7 {
                let (&more, rest) = packed.split_first()?;
                count += usize::from(more);
                packed = rest;
            }
            let (&low, rest) = packed.split_first()?;
            packed = rest;
            let distance = (usize::from(control & 0x1f) << 8 | usize::from(low)) + 1;
            let from = plain.len().checked_sub(distance)?;
            for at in from..from + count + 2 {
                plain.push(plain[at]);
            }
        }
        if plain.len() > length {
            return None;
        }
    }
    (plain.len() == length).then_some(plain)
}

/// CRC-64 with Jones' polynomial, bits reflected.
fn checksum(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u64::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dumped_is_restored_and_what_is_broken_refused() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let codes = [b"a".repeat(10), b"b".repeat(100), b"c".repeat(20_000)];
        let payload = dump(codes.iter().map(Vec::as_slice));
        assert_eq!(restore(&payload), Ok(codes.to_vec()));
        for at in 0..60 {
            let mut broken = payload.clone();
            broken[at] ^= 1;
            assert_eq!(restore(&broken), Err(Unreadable::VersionOrChecksum), "{at}");
        }
        assert_eq!(restore(b"x"), Err(Unreadable::VersionOrChecksum));
        // As Redis 7.0 dumps no library at all.
        assert_eq!(restore(b"\n\x00]\x9b\\@\x0f\x7f\xa2\xda"), Ok(vec![]));
        assert_eq!(decompress(b"\x02abc\x80\x02", 9), Some(b"abcabcabc".to_vec()));
        assert_eq!(decompress(b"\x80\x02", 6), None);
    }
}

//! Floats as INCRBYFLOAT reads and writes them: 80-bit extended precision, decimal or hexadecimal in, plain decimals out.
//!
//! Reading follows C's `strtold` in the C locale, all of the text or none; writing is C's `%.17Lf` without trailing zeros. Both are
//! exact where C's are: correctly rounded from all digits given, and from the full binary value.

use rustc_apfloat::ieee::X87DoubleExtended;
use rustc_apfloat::{Float, Round, Status};

/// An 80-bit extended-precision number, x87's `long double`.
pub type LongDouble = X87DoubleExtended;

/// Longer texts are no number.
pub const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;

/// Reads a number; `None` for what is not wholly one, not-a-number, and what overflows or vanishes. Infinity can be written out.
///
/// Time grows with the square of the length, which is bounded.
pub fn parse(text: &[u8]) -> Option<LongDouble> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (negative, magnitude) = match text {
        [b'-', magnitude @ ..] => (true, magnitude),
        [b'+', magnitude @ ..] => (false, magnitude),
        magnitude => (false, magnitude),
    };
    let value = if magnitude.eq_ignore_ascii_case(b"inf") || magnitude.eq_ignore_ascii_case(b"infinity") {
        LongDouble::INFINITY
    } else if let [b'0', b'x' | b'X', digits @ ..] = magnitude {
        // A hexadecimal digit moves the exponent by four.
        parse_finite(digits, u8::is_ascii_hexdigit, *b"pP", 4 * EXPONENT_MAX, "0x")?
    } else {
        parse_finite(magnitude, u8::is_ascii_digit, *b"eE", EXPONENT_MAX, "")?
    };
    Some(if negative { -value } else { value })
}

/// No text of [`TEXT_BYTES_MAX`] digits brings a number with a larger exponent than this back into range.
const EXPONENT_MAX: i32 = 20_000;

/// Reads digits with at most one point, then at most one exponent. The number is put into a normal form first, with a bounded
/// exponent, so that the arithmetic behind sees no unusual text.
fn parse_finite(
    text: &[u8],
    is_digit: fn(&u8) -> bool,
    exponent_marks: [u8; 2],
    exponent_max: i32,
    prefix: &str,
) -> Option<LongDouble> {
    let end = text.iter().position(|byte| !is_digit(byte) && *byte != b'.').unwrap_or(text.len());
    let (mantissa, rest) = text.split_at(end);
    let mut parts = mantissa.splitn(2, |byte| *byte == b'.');
    let whole = parts.next().unwrap_or(&[]);
    let fraction = parts.next().unwrap_or(&[]);
    if fraction.contains(&b'.') || whole.len() + fraction.len() == 0 {
        return None;
    }
    let exponent = match rest {
        [] => 0,
        [mark, exponent @ ..] if exponent_marks.contains(mark) => parse_exponent(exponent)?,
        _ => return None,
    };
    if whole.iter().chain(fraction).all(|digit| *digit == b'0') {
        return Some(LongDouble::ZERO);
    }
    let mut normal = String::with_capacity(text.len() + 16);
    normal.push_str(prefix);
    normal.push('0');
    normal.extend(whole.iter().map(|digit| char::from(*digit)));
    normal.push('.');
    normal.extend(fraction.iter().map(|digit| char::from(*digit)));
    normal.push('0');
    normal.push(char::from(exponent_marks[0]));
    normal.push_str(itoa::Buffer::new().format(exponent.clamp(-exponent_max, exponent_max)));
    let parsed = LongDouble::from_str_r(&normal, Round::NearestTiesToEven).ok()?;
    let in_range = !parsed.status.contains(Status::OVERFLOW) && !parsed.value.is_zero();
    in_range.then_some(parsed.value)
}

/// Reads the digits of an exponent with or without a sign; saturates far outside the range of any number.
fn parse_exponent(text: &[u8]) -> Option<i32> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let append = |number: i32, digit: &u8| number.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
    let magnitude = digits.iter().fold(0, append);
    Some(if negative { -magnitude } else { magnitude })
}

/// The number from a 64-bit integer, exactly.
pub fn from_integer(number: i64) -> LongDouble {
    LongDouble::from_i128(i128::from(number)).value
}

/// The sum, rounded to nearest; `None` when it is infinite or no number.
pub fn add(first: LongDouble, second: LongDouble) -> Option<LongDouble> {
    let sum = (first + second).value;
    sum.is_finite().then_some(sum)
}

/// Digits behind the point that are written.
const DECIMALS: u32 = 17;

/// Writes a finite number with up to 17 decimals (rounded half to even), no exponent and no trailing zeros.
///
/// The largest numbers have almost 5000 digits; time grows with their square.
pub fn format(value: LongDouble) -> Vec<u8> {
    debug_assert!(value.is_finite());
    let bits = value.to_bits();
    let mantissa = bits as u64;
    let biased_exponent = (bits >> 64) as i32 & 0x7fff;
    // The value is mantissa * 2^exponent; the smallest biased exponent, zero, means the same as one.
    let exponent = biased_exponent.max(1) - 16383 - 63;
    let mut digits = if exponent >= 0 {
        integer_digits(mantissa, exponent.unsigned_abs())
    } else {
        decimal_digits(mantissa, exponent.unsigned_abs())
    };
    if value.is_negative() && digits != b"0" {
        digits.insert(0, b'-');
    }
    digits
}

/// The digits of `mantissa / 2^shift`.
fn decimal_digits(mantissa: u64, shift: u32) -> Vec<u8> {
    // 64 and 57 bits: the product fits in 121.
    let scaled = u128::from(mantissa) * 10u128.pow(DECIMALS);
    let rounded = if shift > 122 {
        0
    } else {
        let quotient = scaled >> shift;
        let remainder = scaled & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        let up = remainder > half || (remainder == half && quotient & 1 == 1);
        quotient + u128::from(up)
    };
    let one = 10u128.pow(DECIMALS);
    let mut digits = itoa::Buffer::new().format(rounded / one).as_bytes().to_vec();
    let fraction = rounded % one;
    if fraction != 0 {
        // The leading one keeps the fraction's leading zeros and is replaced by the point.
        let mut buffer = itoa::Buffer::new();
        let fraction = buffer.format(one + fraction).trim_end_matches('0').as_bytes();
        digits.push(b'.');
        digits.extend_from_slice(&fraction[1..]);
    }
    digits
}

/// The digits of `mantissa * 2^shift`.
fn integer_digits(mantissa: u64, shift: u32) -> Vec<u8> {
    /// Nine decimal digits to a limb, the lowest first.
    const LIMB: u64 = 1_000_000_000;
    let mut limbs = vec![(mantissa % LIMB) as u32, (mantissa / LIMB % LIMB) as u32, (mantissa / LIMB / LIMB) as u32];
    let mut left = shift;
    while left > 0 {
        // A limb of 30 bits shifted by 29, and a carry: fits 64 bits with room.
        let step = left.min(29);
        let mut carry = 0;
        for limb in &mut limbs {
            let shifted = (u64::from(*limb) << step) + carry;
            *limb = (shifted % LIMB) as u32;
            carry = shifted / LIMB;
        }
        if carry > 0 {
            limbs.push(carry as u32);
        }
        left -= step;
    }
    let mut digits = Vec::with_capacity(limbs.len() * 9);
    for limb in limbs.iter().rev() {
        let mut buffer = itoa::Buffer::new();
        // As above, the leading one keeps the leading zeros.
        digits.extend_from_slice(&buffer.format(LIMB + u64::from(*limb)).as_bytes()[1..]);
    }
    let leading_zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..leading_zeros.min(digits.len() - 1));
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        let value = parse(text.as_bytes())?;
        Some(if value.is_finite() { String::from_utf8(format(value)).expect("digits") } else { value.to_string() })
    }

    #[test]
    fn texts_are_read_as_strtold_reads_them() {
        // Taken from what Redis 7.0.15 answers to INCRBYFLOAT with a zero.
        let cases = [
            ("0", "0"),
            ("-0", "0"),
            (".5", "0.5"),
            ("5.", "5"),
            ("+1.50e+1", "15"),
            ("0.1", "0.1"),
            ("5e-18", "0"),
            ("0.0000000000000000050000001", "0.00000000000000001"),
            ("-1.5e-17", "-0.00000000000000002"),
            ("3.6e-4951", "0"),
            ("0e99999999999", "0"),
            ("0x1", "1"),
            ("0X1.8P-2", "0.375"),
            ("-0x.8", "-0.5"),
            ("0x1.", "1"),
            ("0x1.00000000000000010", "1"),
            ("18446744073709551616", "18446744073709551616"),
            ("36893488147419103233", "36893488147419103232"),
            ("1e22", "10000000000000000000000"),
            ("Inf", "+Inf"),
            ("-infinity", "-Inf"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_wholly_a_number_in_range_is_refused() {
        let cases = [
            "",
            ".",
            "-",
            "1e",
            "1e+",
            "e5",
            "0x",
            "0x.",
            "0x1p",
            "nan",
            "-nan",
            "nan(1)",
            "infinit",
            " 1",
            "1 ",
            "--1",
            "+-1",
            "1.5.2",
            "1,5",
            "1_0",
            "1\0",
            "1f",
            "1e4933",
            "1e-4952",
            "1e99999999999",
            "0x1p16384",
            "0x1p-16446",
        ];
        for text in cases {
            assert_eq!(shown(text), None, "{text:?}");
        }
        let digits = |count| shown(&"1".repeat(count)).is_some();
        assert!(!digits(5120), "longer than what is read");
    }

    #[test]
    fn the_largest_and_smallest_numbers_keep_all_digits() {
        let largest = shown("0x1.fffffffffffffffep16383").expect("a number");
        assert_eq!(largest.len(), 4933);
        assert!(
            largest.starts_with("11897314953572317650212638530309702051690633222946242004403237338917370055229707")
        );
        assert!(largest.ends_with("604419552086811989770240"), "{}", &largest[4900..]);
        // A number far below one that still fits because its digits are many.
        let text = format!("1{}e-4900", "0".repeat(4900));
        assert_eq!(shown(&text).as_deref(), Some("1"));
    }

    #[test]
    fn sums_that_leave_the_range_are_none() {
        let number = |text: &str| parse(text.as_bytes()).expect("a number");
        assert!(add(number("inf"), number("1")).is_none());
        assert!(add(number("inf"), number("-inf")).is_none());
        assert!(add(number("1.1e4932"), number("1.1e4932")).is_none());
        let sum = add(from_integer(i64::MAX), number("1")).expect("a number");
        assert_eq!(format(sum), b"9223372036854775808");
    }
}

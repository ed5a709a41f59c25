//! Numbers as text, as C's library writes and reads them: Lua's modules show them so.

use std::ffi::{c_char, c_int};

/// Room for `%.17g` of any number.
const ROOM: usize = 32;

/// Appends a number in C's `%.{precision}g`, for a precision up to 17.
pub(super) fn write_number(number: f64, precision: c_int, buffer: &mut Vec<u8>) {
    let mut text = [0; ROOM];
    buffer.extend_from_slice(format_number(number, precision, &mut text));
}

/// The number in C's `%.{precision}g`, for a precision up to 17.
pub(super) fn format_number(number: f64, precision: c_int, text: &mut [u8; ROOM]) -> &[u8] {
    debug_assert!((0..=17).contains(&precision));
    // SAFETY: `text` has the room said, and the format takes an int and a double.
    let length = unsafe { libc::snprintf(text.as_mut_ptr().cast(), ROOM, c"%.*g".as_ptr(), precision, number) };
    &text[..(length.max(0) as usize).min(ROOM - 1)]
}

/// The longest beginning of `text` that C's `strtod` takes for a number, as the number and its length; length 0 for none.
///
/// # Safety
/// `text` is a part of a Lua string up to its end, so that behind it lies a zero byte.
pub(super) unsafe fn read_number(text: &[u8]) -> (f64, usize) {
    let mut end: *mut c_char = std::ptr::null_mut();
    let start: *const c_char = text.as_ptr().cast();
    // SAFETY: by this function's contract the text ends as C's do.
    let number = unsafe { libc::strtod(start, &mut end) };
    (number, end.addr() - start.addr())
}

/// A number as C's conversion to a 64-bit integer makes it on the machines that matter: towards zero, and the least integer for all that fits none.
pub(super) fn to_integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

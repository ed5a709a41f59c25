//! The module `struct`: numbers and strings packed as C lays structures out.
//!
//! A format is read one option after the other by [`Format`]; `pack`, `unpack` and `size` differ in what they do with each.

use std::ffi::c_int;

use super::lua::{Lua, Raised, Returns};
use super::run::{buffer_of, set_functions};

/// The widest integer a format may ask for, in bytes.
const INTEGER_BYTES_MAX: usize = 32;
/// The alignment that `!` means.
const NATIVE_ALIGNMENT: usize = 8;

/// Pushes the module's table.
pub(super) fn push(lua: Lua) {
    lua.push_table(0, 3);
    let table = lua.top();
    set_functions! { lua, table, "pack" = pack, "unpack" = unpack, "size" = size }
}

/// One option of a format.
#[derive(Clone, Copy)]
struct Item {
    option: u8,
    size: usize,
    /// Bytes to fill before it.
    padding: usize,
}

/// A format that is being read.
#[derive(Clone, Copy)]
struct Format<'f> {
    rest: &'f [u8],
    big_endian: bool,
    alignment: usize,
    /// Letters that are no options are passed over, as `size` does.
    skips_unknown: bool,
}

impl<'f> Format<'f> {
    fn new(format: &'f [u8]) -> Self {
        // As C reads it: a zero byte ends it.
        let rest = format.split(|byte| *byte == 0).next().unwrap_or_default();
        Self { rest, big_endian: false, alignment: 1, skips_unknown: false }
    }

    /// The next option that stands for bytes, `at` bytes from the beginning; those that change the layout are obeyed.
    fn next(&mut self, lua: Lua, at: usize) -> Result<Option<Item>, Raised> {
        while let Some((&option, rest)) = self.rest.split_first() {
            self.rest = rest;
            let size = match option {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b'i' | b'I' => {
                    let size = self.count(lua, 4)?;
                    if size > INTEGER_BYTES_MAX {
                        let (mut wide, mut limit) = (itoa::Buffer::new(), itoa::Buffer::new());
                        let (wide, limit) = (wide.format(size), limit.format(INTEGER_BYTES_MAX));
                        return Err(lua.fail_parts(&["integral size ", wide, " is larger than limit of ", limit]));
                    }
                    size
                }
                b'c' => self.count(lua, 1)?,
                b's' => 0,
                b' ' => continue,
                b'<' | b'>' => {
                    self.big_endian = option == b'>';
                    continue;
                }
                b'!' => {
                    let alignment = self.count(lua, NATIVE_ALIGNMENT)?;
                    if !alignment.is_power_of_two() {
                        let mut number = itoa::Buffer::new();
                        let number = number.format(alignment);
                        return Err(lua.fail_parts(&["alignment ", number, " is not a power of 2"]));
                    }
                    self.alignment = alignment;
                    continue;
                }
                _ if self.skips_unknown && option.is_ascii_alphanumeric() => continue,
                _ => return Err(lua.bad_argument_bytes(1, &[b"invalid format option '", &[option], b"'"])),
            };
            let padding = match (option, size.min(self.alignment)) {
                (b'c', _) | (_, 0) => 0,
                (_, unit) => (unit - (at & (unit - 1))) & (unit - 1),
            };
            return Ok(Some(Item { option, size, padding }));
        }
        Ok(None)
    }

    /// The number that follows an option, or what stands for none.
    fn count(&mut self, lua: Lua, default: usize) -> Result<usize, Raised> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let mut count: i32 = 0;
        for digit in number {
            let next = count.checked_mul(10).and_then(|count| count.checked_add((digit - b'0').into()));
            count = next.ok_or_else(|| lua.fail("integral size overflow"))?;
        }
        Ok(count as usize)
    }
}

fn pack(lua: Lua) -> Returns {
    // SAFETY: the format is the first argument, which stays where it is.
    let mut format = Format::new(unsafe { lua.check_bytes(1) });
    let mut buffer = buffer_of(lua);
    // SAFETY: the buffer is the engine's, used by nothing else while this function runs.
    let buffer = unsafe { buffer.as_mut() };
    buffer.clear();
    // A missing argument is called nil.
    lua.push_nil();
    let mut argument: c_int = 2;
    let mut total = 0;
    while let Some(Item { option, mut size, padding }) = format.next(lua, total)? {
        buffer.resize(buffer.len() + padding, 0);
        match option {
            b'x' => buffer.push(0),
            b'f' => put(buffer, &(lua.check_number(argument) as f32).to_le_bytes(), format.big_endian),
            b'd' => put(buffer, &lua.check_number(argument).to_le_bytes(), format.big_endian),
            b'c' | b's' => {
                // SAFETY: the string is an argument, which stays where it is.
                let text = unsafe { lua.check_bytes(argument) };
                if size == 0 {
                    size = text.len();
                }
                if text.len() < size {
                    lua.bad_argument(argument + 1, c"string too short");
                }
                buffer.extend_from_slice(&text[..size]);
                if option == b's' {
                    buffer.push(0);
                    size += 1;
                }
            }
            _ => {
                let number = lua.check_number(argument);
                let value = if number < 0.0 { number as i64 as u64 } else { number as u64 };
                let mut bytes = [0; INTEGER_BYTES_MAX];
                bytes[..8].copy_from_slice(&value.to_le_bytes());
                put(buffer, &bytes[..size], format.big_endian);
            }
        }
        if option != b'x' {
            argument += 1;
        }
        total += padding + size;
    }
    lua.push_bytes(buffer);
    Ok(1)
}

/// Appends bytes given from the least significant on.
fn put(buffer: &mut Vec<u8>, bytes: &[u8], big_endian: bool) {
    let from = buffer.len();
    buffer.extend_from_slice(bytes);
    if big_endian {
        buffer[from..].reverse();
    }
}

fn unpack(lua: Lua) -> Returns {
    // SAFETY: both are arguments, which stay where they are.
    let (format, data) = unsafe { (lua.check_bytes(1), lua.check_bytes(2)) };
    let mut format = Format::new(format);
    let first = if lua.kind(3) == super::lua::Kind::Nil { 1 } else { lua.check_number(3) as i64 };
    if first <= 0 {
        lua.bad_argument(3, c"offset must be 1 or greater");
    }
    let mut at = (first - 1) as usize;
    lua.set_top(2);
    let mut found = 0;
    while let Some(Item { option, mut size, padding }) = format.next(lua, at)? {
        at = at.saturating_add(padding);
        check_room(lua, data, at, size);
        if !lua.ensure(3) {
            return Err(lua.fail("stack overflow (too many results)"));
        }
        match option {
            b'x' => {}
            b'f' => {
                let mut bytes = [0; 4];
                take(&mut bytes, data, at, format.big_endian);
                lua.push_number(f32::from_le_bytes(bytes).into());
                found += 1;
            }
            b'd' => {
                let mut bytes = [0; 8];
                take(&mut bytes, data, at, format.big_endian);
                lua.push_number(f64::from_le_bytes(bytes));
                found += 1;
            }
            b'c' => {
                if size == 0 {
                    if found == 0 || !lua.is_numeric(-1) {
                        return Err(lua.fail("format 'c0' needs a previous size"));
                    }
                    size = lua.number(-1) as usize;
                    lua.pop(1);
                    found -= 1;
                    check_room(lua, data, at, size);
                }
                lua.push_bytes(&data[at..at + size]);
                found += 1;
            }
            b's' => {
                let Some(length) = memchr::memchr(0, &data[at..]) else {
                    return Err(lua.fail("unfinished string in data"));
                };
                lua.push_bytes(&data[at..at + length]);
                size = length + 1;
                found += 1;
            }
            _ => {
                let mut wide = [0; INTEGER_BYTES_MAX];
                take(&mut wide[..size], data, at, format.big_endian);
                lua.push_number(integer(&wide, size, option.is_ascii_lowercase()));
                found += 1;
            }
        }
        at += size;
    }
    lua.push_number((at + 1) as f64);
    Ok(found + 1)
}

fn check_room(lua: Lua, data: &[u8], at: usize, size: usize) {
    if size > data.len() || at > data.len() - size {
        lua.bad_argument(2, c"data string too short");
    }
}

/// Copies bytes so that the least significant comes first.
fn take(bytes: &mut [u8], data: &[u8], at: usize, big_endian: bool) {
    bytes.copy_from_slice(&data[at..at + bytes.len()]);
    if big_endian {
        bytes.reverse();
    }
}

fn integer(bytes: &[u8; INTEGER_BYTES_MAX], size: usize, signed: bool) -> f64 {
    let mut low = [0; 8];
    low.copy_from_slice(&bytes[..8]);
    let value = u64::from_le_bytes(low);
    if !signed {
        return value as f64;
    }
    let unused = 64 - 8 * size.clamp(1, 8) as u32;
    ((value << unused) as i64 >> unused) as f64
}

fn size(lua: Lua) -> Returns {
    // SAFETY: the format is the first argument, which stays where it is.
    let mut format = Format::new(unsafe { lua.check_bytes(1) });
    format.skips_unknown = true;
    let mut total = 0;
    while let Some(Item { option, size, padding }) = format.next(lua, total)? {
        match (option, size) {
            (b's', _) => lua.bad_argument(1, c"option 's' has no fixed size"),
            (b'c', 0) => lua.bad_argument(1, c"option 'c0' has no fixed size"),
            _ => {}
        }
        total += padding + size;
    }
    lua.push_number(total as f64);
    Ok(1)
}

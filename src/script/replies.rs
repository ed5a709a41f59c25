//! Values both ways: a command's reply becomes a Lua value, a script's result becomes a reply.

use std::ffi::c_int;

use super::lua::{Kind, Lua, Raised};
use super::text;
use crate::command::error::CommandError;
use crate::limits::SCRIPT_MEMORY_BYTES_MAX;
use crate::resp::{Protocol, Reply};

/// Pushes the first reply of `bytes`, which a command has written, and gives what follows it.
pub(super) fn push_reply(lua: Lua, bytes: &[u8]) -> Result<&[u8], Raised> {
    if !lua.ensure(6) {
        return Err(lua.fail("stack overflow"));
    }
    let end = memchr::memchr(b'\r', bytes).unwrap_or(bytes.len());
    let (line, rest) = (&bytes[..end], bytes.get(end + 2..).unwrap_or_default());
    let Some((kind, line)) = line.split_first() else {
        lua.push_nil();
        return Ok(rest);
    };
    match kind {
        b':' => lua.push_number(integer(line) as f64),
        b'$' if line == b"-1" => lua.push_boolean(false),
        b'*' if line == b"-1" => lua.push_boolean(false),
        b'$' => {
            let (text, rest) = sized(line, rest);
            lua.push_bytes(text);
            return Ok(rest);
        }
        b'*' => return push_array(lua, integer(line) as c_int, rest),
        b'+' => push_wrapped(lua, "ok", line),
        b'-' => push_wrapped(lua, "err", line),
        b'_' => lua.push_nil(),
        b'#' => lua.push_boolean(line == b"t"),
        b',' => {
            lua.push_table(0, 1);
            lua.push_number(double(line));
            lua.set_field(-2, "double");
        }
        b'(' => push_wrapped(lua, "big_number", line),
        b'=' => {
            let (text, rest) = sized(line, rest);
            let (format, text) = text.split_at_checked(4).unwrap_or((b"txt:", text));
            lua.push_table(0, 1);
            lua.push_table(0, 2);
            lua.push_bytes(text);
            lua.set_field(-2, "string");
            lua.push_bytes(&format[..3]);
            lua.set_field(-2, "format");
            lua.set_field(-2, "verbatim_string");
            return Ok(rest);
        }
        b'%' => return push_map(lua, integer(line) as c_int, rest),
        b'~' => return push_set(lua, integer(line) as c_int, rest),
        _ => lua.push_nil(),
    }
    Ok(rest)
}

/// The decimal integer that the encoder has written.
fn integer(digits: &[u8]) -> i64 {
    let (negative, digits) = match digits {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let append = |number: i64, digit: &u8| number.wrapping_mul(10).wrapping_add((digit - b'0').into());
    let magnitude = digits.iter().fold(0, append);
    if negative { magnitude.wrapping_neg() } else { magnitude }
}

fn double(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// The bytes of a string whose length stands in `line`, and what follows it.
fn sized<'b>(line: &[u8], rest: &'b [u8]) -> (&'b [u8], &'b [u8]) {
    let length = integer(line) as usize;
    let text = rest.get(..length).unwrap_or_default();
    (text, rest.get(length + 2..).unwrap_or_default())
}

/// Pushes a table with one field.
fn push_wrapped(lua: Lua, name: &str, text: &[u8]) {
    lua.push_table(0, 1);
    lua.push_bytes(text);
    lua.set_field(-2, name);
}

fn push_array(lua: Lua, count: c_int, mut rest: &[u8]) -> Result<&[u8], Raised> {
    lua.push_table(count, 0);
    for element in 1..=count {
        rest = push_reply(lua, rest)?;
        lua.set_element(-2, element);
    }
    Ok(rest)
}

fn push_map(lua: Lua, count: c_int, mut rest: &[u8]) -> Result<&[u8], Raised> {
    lua.push_table(0, 1);
    lua.push_table(0, count);
    for _ in 0..count {
        rest = push_reply(lua, rest)?;
        rest = push_reply(lua, rest)?;
        lua.set(-3);
    }
    lua.set_field(-2, "map");
    Ok(rest)
}

fn push_set(lua: Lua, count: c_int, mut rest: &[u8]) -> Result<&[u8], Raised> {
    lua.push_table(0, 1);
    lua.push_table(0, count);
    for _ in 0..count {
        rest = push_reply(lua, rest)?;
        lua.push_boolean(true);
        lua.set(-3);
    }
    lua.set_field(-2, "set");
    Ok(rest)
}

/// A result that has no reply: it is larger than a script may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unwritable;

/// Appends the value on top as a reply and leaves it there. `protocol` is the script's, which decides what truth values become.
pub(super) fn write_value(lua: Lua, protocol: Protocol, reply: &mut Reply) -> Result<(), Unwritable> {
    if reply.buffer().len() > SCRIPT_MEMORY_BYTES_MAX {
        return Err(Unwritable);
    }
    if !lua.ensure(6) {
        // What is nested too deeply is replaced where it stands.
        reply.error(&CommandError::err("reached lua stack limit"));
        return Ok(());
    }
    match lua.kind(-1) {
        Kind::String => {
            // SAFETY: the string lies on top of the stack until this function returns.
            let text = unsafe { lua.bytes(-1) }.unwrap_or_default();
            reply.bulk(text);
        }
        // As C converts it: towards zero.
        Kind::Number => reply.integer(text::to_integer(lua.number(-1))),
        Kind::Boolean if protocol == Protocol::Resp3 => reply.boolean(lua.truth(-1)),
        Kind::Boolean if lua.truth(-1) => reply.integer(1),
        Kind::Table => write_table(lua, protocol, reply)?,
        Kind::Nil | Kind::Boolean | Kind::Function | Kind::Other => reply.null(),
    }
    Ok(())
}

fn write_table(lua: Lua, protocol: Protocol, reply: &mut Reply) -> Result<(), Unwritable> {
    let table = lua.top();
    for (field, write) in [
        ("err", write_error as fn(Lua, Protocol, &mut Reply) -> Result<bool, Unwritable>),
        ("ok", write_status),
        ("double", write_double),
        ("map", write_map),
        ("set", write_set),
        ("big_number", write_big_number),
        ("verbatim_string", write_verbatim),
    ] {
        lua.get_field(table, field);
        let written = lua.kind(-1) != Kind::Nil && write(lua, protocol, reply)?;
        lua.set_top(table);
        if written {
            return Ok(());
        }
    }
    write_array(lua, protocol, reply)
}

/// The text of a field on top, without line breaks.
fn line_of(lua: Lua) -> Option<String> {
    if lua.kind(-1) != Kind::String {
        return None;
    }
    // SAFETY: the string lies on top of the stack until the text is copied.
    let text = unsafe { lua.bytes(-1) }.unwrap_or_default();
    Some(String::from_utf8_lossy(text).replace(['\r', '\n'], " "))
}

fn write_error(lua: Lua, _protocol: Protocol, reply: &mut Reply) -> Result<bool, Unwritable> {
    if lua.kind(-1) != Kind::String {
        return Ok(false);
    }
    // SAFETY: the string lies on top of the stack until the text is copied.
    let text = unsafe { lua.bytes(-1) }.unwrap_or_default();
    reply.error_line(text);
    Ok(true)
}

fn write_status(lua: Lua, _protocol: Protocol, reply: &mut Reply) -> Result<bool, Unwritable> {
    Ok(line_of(lua).map(|line| reply.simple(&line)).is_some())
}

fn write_double(lua: Lua, _protocol: Protocol, reply: &mut Reply) -> Result<bool, Unwritable> {
    let is_number = lua.kind(-1) == Kind::Number;
    if is_number {
        reply.double(lua.number(-1));
    }
    Ok(is_number)
}

fn write_big_number(lua: Lua, _protocol: Protocol, reply: &mut Reply) -> Result<bool, Unwritable> {
    Ok(line_of(lua).map(|line| reply.big_number(&line)).is_some())
}

fn write_verbatim(lua: Lua, _protocol: Protocol, reply: &mut Reply) -> Result<bool, Unwritable> {
    if lua.kind(-1) != Kind::Table {
        return Ok(false);
    }
    let table = lua.top();
    lua.get_field(table, "format");
    lua.get_field(table, "string");
    if lua.kind(-2) != Kind::String || lua.kind(-1) != Kind::String {
        return Ok(false);
    }
    // SAFETY: both strings lie on the stack until this function returns.
    let (format, text) = unsafe { (lua.bytes(-2).unwrap_or_default(), lua.bytes(-1).unwrap_or_default()) };
    let mut letters = *b"   ";
    for (letter, given) in letters.iter_mut().zip(format) {
        *letter = if given.is_ascii() { *given } else { b' ' };
    }
    reply.verbatim(std::str::from_utf8(&letters).unwrap_or("txt"), text);
    Ok(true)
}

fn write_map(lua: Lua, protocol: Protocol, reply: &mut Reply) -> Result<bool, Unwritable> {
    write_fields(lua, protocol, reply, true)
}

fn write_set(lua: Lua, protocol: Protocol, reply: &mut Reply) -> Result<bool, Unwritable> {
    write_fields(lua, protocol, reply, false)
}

/// The keys of the table on top, with their values for a map.
fn write_fields(lua: Lua, protocol: Protocol, reply: &mut Reply, with_values: bool) -> Result<bool, Unwritable> {
    if lua.kind(-1) != Kind::Table {
        return Ok(false);
    }
    let table = lua.top();
    let mut count = 0;
    lua.push_nil();
    while lua.next(table) {
        lua.pop(1);
        count += 1;
    }
    if with_values {
        reply.map(count);
    } else {
        reply.set(count);
    }
    lua.push_nil();
    while lua.next(table) {
        lua.push_value(-2);
        write_value(lua, protocol, reply)?;
        lua.pop(1);
        if with_values {
            write_value(lua, protocol, reply)?;
        }
        lua.pop(1);
    }
    Ok(true)
}

/// The elements of the table on top, up to the first nil.
fn write_array(lua: Lua, protocol: Protocol, reply: &mut Reply) -> Result<(), Unwritable> {
    let table = lua.top();
    let mut count = 0;
    loop {
        lua.get_element(table, count + 1);
        let is_end = lua.kind(-1) == Kind::Nil;
        lua.pop(1);
        if is_end {
            break;
        }
        count += 1;
    }
    reply.array(count as usize);
    for element in 1..=count {
        lua.get_element(table, element);
        write_value(lua, protocol, reply)?;
        lua.pop(1);
    }
    Ok(())
}

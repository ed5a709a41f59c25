//! The module `cmsgpack`: values as MessagePack and back.

use std::ffi::c_int;

use super::lua::{Kind, Lua, Raised, Returns};
use super::run::{buffer_of, check_output, set_functions};

/// Tables nested deeper are packed as nil.
const NESTING_MAX: usize = 16;

/// Pushes the module's table.
pub(super) fn push(lua: Lua) {
    lua.push_table(0, 8);
    let table = lua.top();
    set_functions! { lua, table,
        "pack" = pack,
        "unpack" = |lua| unpack(lua, 0, None),
        "unpack_one" = unpack_one,
        "unpack_limit" = unpack_limit,
    }
    for (name, text) in [
        ("_NAME", "cmsgpack"),
        ("_VERSION", "lua-cmsgpack 0.4.0"),
        ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
        ("_DESCRIPTION", "MessagePack C implementation for Lua"),
    ] {
        lua.push_bytes(text.as_bytes());
        lua.set_field(table, name);
    }
}

/// `pack(...)`: the arguments one after the other.
fn pack(lua: Lua) -> Returns {
    let count = lua.top();
    if count == 0 {
        return Err(lua.bad_argument_bytes(0, &[b"MessagePack pack needs input."]));
    }
    let mut buffer = buffer_of(lua);
    // SAFETY: the buffer is the engine's, used by nothing else while this function runs.
    let buffer = unsafe { buffer.as_mut() };
    buffer.clear();
    for argument in 1..=count {
        lua.push_value(argument);
        pack_top(lua, buffer, 0)?;
    }
    lua.push_bytes(buffer);
    Ok(1)
}

/// Packs the value on top and pops it.
fn pack_top(lua: Lua, buffer: &mut Vec<u8>, depth: usize) -> Result<(), Raised> {
    check_output(lua, buffer)?;
    if !lua.ensure(4) {
        return Err(lua.fail("stack overflow (in function mp_encode_lua_type)"));
    }
    match lua.kind(-1) {
        Kind::Boolean => buffer.push(if lua.truth(-1) { 0xc3 } else { 0xc2 }),
        Kind::Number => pack_number(lua.number(-1), buffer),
        Kind::String => {
            // SAFETY: the string stays on the stack until the `pop` below.
            let text = unsafe { lua.bytes(-1) }.unwrap_or_default();
            match text.len() {
                length @ 0..32 => buffer.push(0xa0 | length as u8),
                length @ 32..=0xff => buffer.extend([0xd9, length as u8]),
                length => pack_length(length, 0xda, 0xdb, buffer),
            }
            buffer.extend_from_slice(text);
        }
        Kind::Table if depth < NESTING_MAX => pack_table(lua, buffer, depth)?,
        _ => buffer.push(0xc0),
    }
    lua.pop(1);
    Ok(())
}

fn pack_length(length: usize, short: u8, long: u8, buffer: &mut Vec<u8>) {
    match u16::try_from(length) {
        Ok(length) => {
            buffer.push(short);
            buffer.extend(length.to_be_bytes());
        }
        Err(_) => {
            buffer.push(long);
            buffer.extend((length as u32).to_be_bytes());
        }
    }
}

fn pack_number(number: f64, buffer: &mut Vec<u8>) {
    let integer = number as i64;
    if integer as f64 != number || number >= 9_223_372_036_854_775_808.0 {
        let single = number as f32;
        if f64::from(single) == number {
            buffer.push(0xca);
            buffer.extend(single.to_be_bytes());
        } else {
            buffer.push(0xcb);
            buffer.extend(number.to_be_bytes());
        }
        return;
    }
    match integer {
        0..=0x7f => buffer.push(integer as u8),
        0x80..=0xff => buffer.extend([0xcc, integer as u8]),
        0x100..=0xffff => {
            buffer.push(0xcd);
            buffer.extend((integer as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            buffer.push(0xce);
            buffer.extend((integer as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            buffer.push(0xcf);
            buffer.extend(integer.to_be_bytes());
        }
        -32..0 => buffer.push(integer as u8),
        -0x80..-32 => buffer.extend([0xd0, integer as u8]),
        -0x8000..-0x80 => {
            buffer.push(0xd1);
            buffer.extend((integer as i16).to_be_bytes());
        }
        -0x8000_0000..-0x8000 => {
            buffer.push(0xd2);
            buffer.extend((integer as i32).to_be_bytes());
        }
        _ => {
            buffer.push(0xd3);
            buffer.extend(integer.to_be_bytes());
        }
    }
}

fn pack_table(lua: Lua, buffer: &mut Vec<u8>, depth: usize) -> Result<(), Raised> {
    let table = lua.top();
    let (fields, is_array) = measure(lua, table);
    if is_array {
        match fields {
            0..16 => buffer.push(0x90 | fields as u8),
            _ => pack_length(fields, 0xdc, 0xdd, buffer),
        }
        for element in 1..=fields {
            lua.get_element(table, element as c_int);
            pack_top(lua, buffer, depth + 1)?;
        }
        return Ok(());
    }
    match fields {
        0..16 => buffer.push(0x80 | fields as u8),
        _ => pack_length(fields, 0xde, 0xdf, buffer),
    }
    lua.push_nil();
    while lua.next(table) {
        lua.push_value(-2);
        pack_top(lua, buffer, depth + 1)?;
        pack_top(lua, buffer, depth + 1)?;
    }
    Ok(())
}

/// The number of fields, and whether their keys are the numbers from 1 on without a gap.
fn measure(lua: Lua, table: c_int) -> (usize, bool) {
    let (mut fields, mut largest, mut is_array) = (0, 0.0, true);
    lua.push_nil();
    while lua.next(table) {
        lua.pop(1);
        fields += 1;
        let key = if lua.kind(-1) == Kind::Number { lua.number(-1) } else { 0.0 };
        is_array &= key >= 1.0 && key.fract() == 0.0;
        largest = f64::max(largest, key);
    }
    (fields, is_array && largest == fields as f64)
}

/// `unpack_one(packed [, offset])`: the next offset, or -1 at the end, and the value there.
fn unpack_one(lua: Lua) -> Returns {
    let offset = optional_integer(lua, 2, 0);
    lua.set_top(1);
    unpack(lua, offset, Some(1))
}

/// `unpack_limit(packed, limit [, offset])`: as `unpack_one`, with up to so many values.
fn unpack_limit(lua: Lua) -> Returns {
    let limit = lua.check_number(2) as i64;
    let offset = optional_integer(lua, 3, 0);
    lua.set_top(1);
    unpack(lua, offset, Some(limit))
}

fn optional_integer(lua: Lua, argument: c_int, default: i64) -> i64 {
    if lua.kind(argument) == Kind::Nil { default } else { lua.check_number(argument) as i64 }
}

/// All values from `offset` on, or as many as `limit` says with the next offset before them.
fn unpack(lua: Lua, offset: i64, limit: Option<i64>) -> Returns {
    // SAFETY: the string is the first argument, which stays where it is.
    let input = unsafe { lua.check_bytes(1) };
    let count = limit.unwrap_or(0);
    if offset < 0 || count < 0 {
        let (mut one, mut other) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (offset, limit) = (one.format(offset), other.format(input.len()));
        return Err(lua.fail_parts(&[
            "Invalid request to unpack with offset of ",
            offset,
            " and limit of ",
            limit,
            ".",
        ]));
    }
    if offset > input.len() as i64 {
        let (mut one, mut other) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (offset, length) = (one.format(offset), other.format(input.len()));
        return Err(lua.fail_parts(&["Start offset ", offset, " greater than input length ", length, "."]));
    }
    let counted = count > 0;
    let mut rest = &input[offset as usize..];
    let mut found = 0;
    while !rest.is_empty() && (!counted || found < count) {
        rest = push_one(lua, rest)?;
        found += 1;
    }
    if !counted {
        return Ok(found as usize);
    }
    lua.push_number(if rest.is_empty() { -1.0 } else { (input.len() - rest.len()) as f64 });
    lua.insert(2);
    Ok(found as usize + 1)
}

/// Pushes the first value of `input` and gives what follows it.
fn push_one(lua: Lua, input: &[u8]) -> Result<&[u8], Raised> {
    if !lua.ensure(4) {
        return Err(lua.fail("too many return values at once; use unpack_one or unpack_limit instead."));
    }
    let Some((&code, rest)) = input.split_first() else { return Err(missing(lua)) };
    match code {
        0x00..=0x7f => push_number(lua, code.into(), rest),
        0xe0.. => push_number(lua, (code as i8).into(), rest),
        0x80..=0x8f => push_map(lua, (code & 0x0f).into(), rest),
        0x90..=0x9f => push_array(lua, (code & 0x0f).into(), rest),
        0xa0..=0xbf => push_text(lua, (code & 0x1f).into(), rest),
        0xc0 => {
            lua.push_nil();
            Ok(rest)
        }
        0xc2 | 0xc3 => {
            lua.push_boolean(code == 0xc3);
            Ok(rest)
        }
        0xca => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, f32::from_be_bytes(bytes).into(), rest)),
        0xcb => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, f64::from_be_bytes(bytes), rest)),
        0xcc => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, u8::from_be_bytes(bytes).into(), rest)),
        0xcd => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, u16::from_be_bytes(bytes).into(), rest)),
        0xce => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, u32::from_be_bytes(bytes).into(), rest)),
        0xcf => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, u64::from_be_bytes(bytes) as f64, rest)),
        0xd0 => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, i8::from_be_bytes(bytes).into(), rest)),
        0xd1 => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, i16::from_be_bytes(bytes).into(), rest)),
        0xd2 => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, i32::from_be_bytes(bytes).into(), rest)),
        0xd3 => take(lua, rest).and_then(|(bytes, rest)| push_number(lua, i64::from_be_bytes(bytes) as f64, rest)),
        0xc4 | 0xd9 => take(lua, rest).and_then(|(bytes, rest)| push_text(lua, u8::from_be_bytes(bytes).into(), rest)),
        0xc5 | 0xda => take(lua, rest).and_then(|(bytes, rest)| push_text(lua, u16::from_be_bytes(bytes).into(), rest)),
        0xc6 | 0xdb => {
            take(lua, rest).and_then(|(bytes, rest)| push_text(lua, u32::from_be_bytes(bytes) as usize, rest))
        }
        0xdc => take(lua, rest).and_then(|(bytes, rest)| push_array(lua, u16::from_be_bytes(bytes).into(), rest)),
        0xdd => take(lua, rest).and_then(|(bytes, rest)| push_array(lua, u32::from_be_bytes(bytes) as usize, rest)),
        0xde => take(lua, rest).and_then(|(bytes, rest)| push_map(lua, u16::from_be_bytes(bytes).into(), rest)),
        0xdf => take(lua, rest).and_then(|(bytes, rest)| push_map(lua, u32::from_be_bytes(bytes) as usize, rest)),
        0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => Err(lua.fail("Bad data format in input.")),
    }
}

fn missing(lua: Lua) -> Raised {
    lua.fail("Missing bytes in input.")
}

fn take<const N: usize>(lua: Lua, input: &[u8]) -> Result<([u8; N], &[u8]), Raised> {
    match input.split_first_chunk() {
        Some((bytes, rest)) => Ok((*bytes, rest)),
        None => Err(missing(lua)),
    }
}

fn push_number(lua: Lua, number: f64, rest: &[u8]) -> Result<&[u8], Raised> {
    lua.push_number(number);
    Ok(rest)
}

fn push_text(lua: Lua, length: usize, rest: &[u8]) -> Result<&[u8], Raised> {
    let Some((text, rest)) = rest.split_at_checked(length) else { return Err(missing(lua)) };
    lua.push_bytes(text);
    Ok(rest)
}

fn push_array(lua: Lua, count: usize, mut rest: &[u8]) -> Result<&[u8], Raised> {
    lua.push_table(0, 0);
    let table = lua.top();
    for element in 1..=count {
        rest = push_one(lua, rest)?;
        lua.set_element(table, element as c_int);
    }
    Ok(rest)
}

fn push_map(lua: Lua, count: usize, mut rest: &[u8]) -> Result<&[u8], Raised> {
    lua.push_table(0, 0);
    let table = lua.top();
    for _ in 0..count {
        rest = push_one(lua, rest)?;
        rest = push_one(lua, rest)?;
        lua.set(table);
    }
    Ok(rest)
}

//! The module `cjson`: values as JSON and back, as Lua CJSON 2.1 does it.
//!
//! Its settings hold for the script that makes them, not for the next.

use std::ffi::c_int;

use super::lua::{Kind, Lua, Raised, Returns};
use super::run::{buffer_of, check_output, json_settings, set_functions};

/// Depth of tables and of texts, unless a script sets another.
const DEPTH_DEFAULT: i64 = 1000;

/// What a number that JSON does not know becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Invalid {
    Refused,
    Written,
    Null,
}

/// What a script may choose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth: i64,
    decode_depth: i64,
    encode_invalid: Invalid,
    decode_invalid: bool,
    keep_buffer: bool,
    precision: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: DEPTH_DEFAULT,
            decode_depth: DEPTH_DEFAULT,
            encode_invalid: Invalid::Refused,
            decode_invalid: true,
            keep_buffer: true,
            precision: 14,
        }
    }
}

/// Pushes the module's table.
pub(super) fn push(lua: Lua) {
    lua.push_table(0, 14);
    let table = lua.top();
    set_functions! { lua, table,
        "encode" = encode,
        "decode" = decode,
        "encode_sparse_array" = encode_sparse_array,
        "encode_max_depth" = |lua| integer_setting(lua, 1, i64::from(i32::MAX), |settings| &mut settings.encode_depth),
        "decode_max_depth" = |lua| integer_setting(lua, 1, i64::from(i32::MAX), |settings| &mut settings.decode_depth),
        "encode_number_precision" = |lua| integer_setting(lua, 1, 14, |settings| &mut settings.precision),
        "encode_keep_buffer" = |lua| boolean_setting(lua, |settings| &mut settings.keep_buffer),
        "encode_invalid_numbers" = encode_invalid_numbers,
        "decode_invalid_numbers" = |lua| boolean_setting(lua, |settings| &mut settings.decode_invalid),
        "new" = |lua| {
            push(lua);
            Ok(1)
        },
    }
    lua.push_light(std::ptr::null_mut());
    lua.set_field(table, "null");
    lua.push_bytes(b"cjson");
    lua.set_field(table, "_NAME");
    lua.push_bytes(b"2.1.0");
    lua.set_field(table, "_VERSION");
}

fn settings(lua: Lua) -> &'static mut Settings {
    let mut settings = json_settings(lua);
    // SAFETY: the settings are the engine's, which outlives its state; nothing else uses them while this module's function runs.
    unsafe { settings.as_mut() }
}

fn too_many_arguments(lua: Lua, limit: c_int) {
    if lua.top() > limit {
        lua.bad_argument(limit + 1, c"found too many arguments");
    }
}

/// Sets one integer if there is an argument, and gives it.
fn integer_setting(lua: Lua, least: i64, most: i64, place: fn(&mut Settings) -> &mut i64) -> Returns {
    too_many_arguments(lua, 1);
    let place = place(settings(lua));
    set_integer(lua, 1, least, most, place)?;
    lua.push_number(*place as f64);
    Ok(1)
}

fn set_integer(lua: Lua, argument: c_int, least: i64, most: i64, place: &mut i64) -> Result<(), Raised> {
    if lua.kind(argument) == Kind::Nil {
        return Ok(());
    }
    let number = lua.check_number(argument) as i64;
    if !(least..=most).contains(&number) {
        let (mut one, mut other) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (least, most) = (one.format(least), other.format(most));
        let text = [&b"expected integer between "[..], least.as_bytes(), b" and ", most.as_bytes()];
        return Err(lua.bad_argument_bytes(argument, &text));
    }
    *place = number;
    Ok(())
}

fn set_boolean(lua: Lua, argument: c_int, place: &mut bool) -> Result<(), Raised> {
    match lua.kind(argument) {
        Kind::Nil => {}
        Kind::Boolean => *place = lua.truth(argument),
        // SAFETY: the string is an argument, which stays where it is.
        _ => match unsafe { lua.check_bytes(argument) } {
            b"on" => *place = true,
            b"off" => *place = false,
            other => return Err(lua.bad_argument_bytes(argument, &[b"invalid option '", other, b"'"])),
        },
    }
    Ok(())
}

fn boolean_setting(lua: Lua, place: fn(&mut Settings) -> &mut bool) -> Returns {
    too_many_arguments(lua, 1);
    let place = place(settings(lua));
    set_boolean(lua, 1, place)?;
    lua.push_boolean(*place);
    Ok(1)
}

fn encode_sparse_array(lua: Lua) -> Returns {
    too_many_arguments(lua, 3);
    let settings = settings(lua);
    set_boolean(lua, 1, &mut settings.sparse_convert)?;
    set_integer(lua, 2, 0, i64::from(i32::MAX), &mut settings.sparse_ratio)?;
    set_integer(lua, 3, 0, i64::from(i32::MAX), &mut settings.sparse_safe)?;
    lua.push_boolean(settings.sparse_convert);
    lua.push_number(settings.sparse_ratio as f64);
    lua.push_number(settings.sparse_safe as f64);
    Ok(3)
}

fn encode_invalid_numbers(lua: Lua) -> Returns {
    too_many_arguments(lua, 1);
    let settings = settings(lua);
    if lua.kind(1) == Kind::String {
        // SAFETY: the string is an argument, which stays where it is.
        settings.encode_invalid = match unsafe { lua.check_bytes(1) } {
            b"on" => Invalid::Written,
            b"off" => Invalid::Refused,
            b"null" => Invalid::Null,
            other => return Err(lua.bad_argument_bytes(1, &[b"invalid option '", other, b"'"])),
        };
    } else {
        let mut written = settings.encode_invalid == Invalid::Written;
        set_boolean(lua, 1, &mut written)?;
        if lua.kind(1) == Kind::Boolean {
            settings.encode_invalid = if written { Invalid::Written } else { Invalid::Refused };
        }
    }
    match settings.encode_invalid {
        Invalid::Refused => lua.push_boolean(false),
        Invalid::Written => lua.push_boolean(true),
        Invalid::Null => lua.push_bytes(b"null"),
    }
    Ok(1)
}

fn encode(lua: Lua) -> Returns {
    if lua.top() != 1 {
        lua.bad_argument(1, c"expected 1 argument");
    }
    let mut buffer = buffer_of(lua);
    // SAFETY: the buffer is the engine's, used by nothing else while this function runs.
    let buffer = unsafe { buffer.as_mut() };
    buffer.clear();
    write_value(lua, *settings(lua), buffer, 0)?;
    lua.push_bytes(buffer);
    Ok(1)
}

/// Writes the value on top, which stays.
fn write_value(lua: Lua, settings: Settings, buffer: &mut Vec<u8>, depth: i64) -> Result<(), Raised> {
    check_output(lua, buffer)?;
    match lua.kind(-1) {
        Kind::Nil => buffer.extend_from_slice(b"null"),
        Kind::Boolean => buffer.extend_from_slice(if lua.truth(-1) { b"true" } else { b"false" }),
        Kind::Number => write_number(lua, settings, buffer)?,
        Kind::String => write_text(lua, buffer),
        Kind::Table => {
            let depth = depth + 1;
            if depth > settings.encode_depth || !lua.ensure(4) {
                let mut number = itoa::Buffer::new();
                let number = number.format(depth);
                return Err(lua.fail_parts(&["Cannot serialise, excessive nesting (", number, ")"]));
            }
            match array_length(lua, settings)? {
                Some(length) => write_array(lua, settings, buffer, depth, length)?,
                None => write_object(lua, settings, buffer, depth)?,
            }
        }
        Kind::Other if lua.is_null_pointer(-1) => buffer.extend_from_slice(b"null"),
        _ => return Err(cannot(lua, "type not supported")),
    }
    Ok(())
}

/// An error about the value on top.
#[cold]
fn cannot(lua: Lua, why: &str) -> Raised {
    lua.fail_parts(&["Cannot serialise ", lua.kind_name(-1), ": ", why])
}

fn write_number(lua: Lua, settings: Settings, buffer: &mut Vec<u8>) -> Result<(), Raised> {
    let number = lua.number(-1);
    if !number.is_finite() {
        match settings.encode_invalid {
            Invalid::Refused => return Err(cannot(lua, "must not be NaN or Inf")),
            Invalid::Null => {
                buffer.extend_from_slice(b"null");
                return Ok(());
            }
            Invalid::Written if number.is_nan() => {
                buffer.extend_from_slice(b"nan");
                return Ok(());
            }
            Invalid::Written => {}
        }
    }
    super::text::write_number(number, settings.precision as c_int, buffer);
    Ok(())
}

fn write_text(lua: Lua, buffer: &mut Vec<u8>) {
    // SAFETY: the string lies on top of the stack until this function returns.
    let text = unsafe { lua.bytes(-1) }.unwrap_or_default();
    buffer.reserve(text.len() + 2);
    buffer.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'/' => buffer.extend([b'\\', byte]),
            0x08 => buffer.extend_from_slice(b"\\b"),
            b'\t' => buffer.extend_from_slice(b"\\t"),
            b'\n' => buffer.extend_from_slice(b"\\n"),
            0x0c => buffer.extend_from_slice(b"\\f"),
            b'\r' => buffer.extend_from_slice(b"\\r"),
            0..0x20 | 0x7f => {
                let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
                buffer.extend([b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            }
            _ => buffer.push(byte),
        }
    }
    buffer.push(b'"');
}

/// The length of the array that the table on top is; `None` for an object.
fn array_length(lua: Lua, settings: Settings) -> Result<Option<i64>, Raised> {
    let table = lua.top();
    let (mut largest, mut items) = (0_i64, 0_i64);
    lua.push_nil();
    while lua.next(table) {
        let key = if lua.kind(-2) == Kind::Number { lua.number(-2) } else { 0.0 };
        if key < 1.0 || key.floor() != key {
            lua.pop(2);
            return Ok(None);
        }
        largest = largest.max(key as i64);
        items += 1;
        lua.pop(1);
    }
    let sparse = settings.sparse_ratio > 0
        && largest > items.saturating_mul(settings.sparse_ratio)
        && largest > settings.sparse_safe;
    match (sparse, settings.sparse_convert) {
        (true, false) => Err(cannot(lua, "excessively sparse array")),
        (true, true) => Ok(None),
        (false, _) => Ok((largest > 0).then_some(largest)),
    }
}

fn write_array(lua: Lua, settings: Settings, buffer: &mut Vec<u8>, depth: i64, length: i64) -> Result<(), Raised> {
    let table = lua.top();
    buffer.push(b'[');
    for element in 1..=length {
        if element > 1 {
            buffer.push(b',');
        }
        lua.get_element(table, element as c_int);
        write_value(lua, settings, buffer, depth)?;
        lua.pop(1);
    }
    buffer.push(b']');
    Ok(())
}

fn write_object(lua: Lua, settings: Settings, buffer: &mut Vec<u8>, depth: i64) -> Result<(), Raised> {
    let table = lua.top();
    buffer.push(b'{');
    let mut first = true;
    lua.push_nil();
    while lua.next(table) {
        if !std::mem::take(&mut first) {
            buffer.push(b',');
        }
        lua.push_value(-2);
        match lua.kind(-1) {
            Kind::Number => {
                buffer.push(b'"');
                write_number(lua, settings, buffer)?;
                buffer.push(b'"');
            }
            Kind::String => write_text(lua, buffer),
            _ => return Err(cannot(lua, "table key must be a number or string")),
        }
        lua.pop(1);
        buffer.push(b':');
        write_value(lua, settings, buffer, depth)?;
        lua.pop(1);
    }
    buffer.push(b'}');
    Ok(())
}

fn decode(lua: Lua) -> Returns {
    if lua.top() != 1 {
        lua.bad_argument(1, c"expected 1 argument");
    }
    // SAFETY: the string is the first argument, which stays where it is.
    let text = unsafe { lua.check_bytes(1) };
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(lua.fail("JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut parser = Parser { lua, text, at: 0, token_at: 0, settings: *settings(lua), depth: 0 };
    let first = parser.next();
    parser.value(first)?;
    match parser.next() {
        Token::End => Ok(1),
        other => Err(parser.unexpected("the end", other)),
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// Its decoded bytes are in the engine's buffer.
    Text,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    /// As errors name it.
    fn name(self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Text => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(what) => what,
        }
    }
}

#[derive(Clone, Copy)]
struct Parser<'t> {
    lua: Lua,
    text: &'t [u8],
    at: usize,
    /// Where the present token begins, or where it is wrong.
    token_at: usize,
    settings: Settings,
    depth: i64,
}

impl Parser<'_> {
    #[cold]
    fn unexpected(&self, expected: &str, found: Token) -> Raised {
        let mut number = itoa::Buffer::new();
        let number = number.format(self.token_at + 1);
        self.lua.fail_parts(&["Expected ", expected, " but found ", found.name(), " at character ", number])
    }

    fn descend(&mut self) -> Result<(), Raised> {
        self.depth += 1;
        if self.depth <= self.settings.decode_depth && self.lua.ensure(4) {
            return Ok(());
        }
        let (mut depth, mut at) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (depth, at) = (depth.format(self.depth), at.format(self.at));
        Err(self.lua.fail_parts(&["Found too many nested data structures (", depth, ") at character ", at]))
    }

    /// Pushes the value that begins with `token`.
    fn value(&mut self, token: Token) -> Result<(), Raised> {
        match token {
            Token::Text => self.push_text(),
            Token::Number(number) => self.lua.push_number(number),
            Token::Boolean(truth) => self.lua.push_boolean(truth),
            Token::Null => self.lua.push_light(std::ptr::null_mut()),
            Token::ObjectBegin => self.object()?,
            Token::ArrayBegin => self.array()?,
            other => return Err(self.unexpected("value", other)),
        }
        Ok(())
    }

    fn push_text(&self) {
        let buffer = buffer_of(self.lua);
        // SAFETY: the buffer is the engine's; `next` has just filled it, and nothing changes it before it is copied.
        self.lua.push_bytes(unsafe { buffer.as_ref() });
    }

    fn object(&mut self) -> Result<(), Raised> {
        self.descend()?;
        self.lua.push_table(0, 0);
        let table = self.lua.top();
        let mut token = self.next();
        if token == Token::ObjectEnd {
            self.depth -= 1;
            return Ok(());
        }
        loop {
            if token != Token::Text {
                return Err(self.unexpected("object key string", token));
            }
            self.push_text();
            match self.next() {
                Token::Colon => {}
                other => return Err(self.unexpected("colon", other)),
            }
            let first = self.next();
            self.value(first)?;
            self.lua.set(table);
            match self.next() {
                Token::ObjectEnd => break,
                Token::Comma => token = self.next(),
                other => return Err(self.unexpected("comma or object end", other)),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn array(&mut self) -> Result<(), Raised> {
        self.descend()?;
        self.lua.push_table(0, 0);
        let table = self.lua.top();
        let mut token = self.next();
        if token == Token::ArrayEnd {
            self.depth -= 1;
            return Ok(());
        }
        for element in 1.. {
            self.value(token)?;
            self.lua.set_element(table, element);
            match self.next() {
                Token::ArrayEnd => break,
                Token::Comma => token = self.next(),
                other => return Err(self.unexpected("comma or array end", other)),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn next(&mut self) -> Token {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.token_at = self.at;
        let rest = &self.text[self.at..];
        let Some(&byte) = rest.first() else { return Token::End };
        let mark = match byte {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            b'"' => return self.text(),
            b'-' | b'0'..=b'9' => {
                if !self.settings.decode_invalid && looks_invalid(rest) {
                    return Token::Error("invalid number");
                }
                return self.number();
            }
            // A zero byte ends the text, where it begins a token.
            0 => return Token::End,
            _ if rest.starts_with(b"true") => return self.word(4, Token::Boolean(true)),
            _ if rest.starts_with(b"false") => return self.word(5, Token::Boolean(false)),
            _ if rest.starts_with(b"null") => return self.word(4, Token::Null),
            b'+' | b'i' | b'I' | b'n' | b'N' if self.settings.decode_invalid && looks_invalid(rest) => {
                return self.number();
            }
            _ => return Token::Error("invalid token"),
        };
        self.at += 1;
        mark
    }

    fn word(&mut self, length: usize, token: Token) -> Token {
        self.at += length;
        token
    }

    fn number(&mut self) -> Token {
        // SAFETY: `decode` was given a Lua string, of which this is the end.
        let (number, length) = unsafe { super::text::read_number(&self.text[self.at..]) };
        if length == 0 {
            return Token::Error("invalid number");
        }
        self.at += length;
        Token::Number(number)
    }

    fn error_at(&mut self, at: usize, what: &'static str) -> Token {
        self.token_at = at;
        Token::Error(what)
    }

    fn text(&mut self) -> Token {
        let mut buffer = buffer_of(self.lua);
        // SAFETY: the buffer is the engine's, used by nothing else until this method ends.
        let buffer = unsafe { buffer.as_mut() };
        buffer.clear();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0)).unwrap_or(rest.len());
            buffer.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => break,
                Some(b'\\') => {}
                _ => return self.error_at(self.at, "unexpected end of string"),
            }
            let escaped = match self.text.get(self.at + 1) {
                Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
                Some(b'b') => 0x08,
                Some(b'f') => 0x0c,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'u') => {
                    let Some((character, length)) = unicode(&self.text[self.at..]) else {
                        return self.error_at(self.at, "invalid unicode escape code");
                    };
                    let mut bytes = [0; 4];
                    buffer.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
                    self.at += length;
                    continue;
                }
                _ => return self.error_at(self.at, "invalid escape code"),
            };
            buffer.push(escaped);
            self.at += 2;
        }
        self.at += 1;
        Token::Text
    }
}

/// The character that `\uXXXX`, or two of them, stand for, with their length.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let (mark, digits) = text.get(at..at + 6)?.split_at(2);
        (mark == b"\\u" && digits.iter().all(u8::is_ascii_hexdigit)).then_some(())?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = unit(0)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let second = unit(6).filter(|second| (0xdc00..0xe000).contains(second))?;
    let code = (first.checked_sub(0xd800).filter(|high| *high < 0x400)? << 10) + (second - 0xdc00) + 0x1_0000;
    char::from_u32(code).map(|character| (character, 12))
}

/// Whether a number is written as JSON does not allow: with a plus, a leading zero, in hexadecimal, or not finite.
fn looks_invalid(text: &[u8]) -> bool {
    if text.first() == Some(&b'+') {
        return true;
    }
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let begins = |word: &[u8]| unsigned.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(word));
    matches!(unsigned, [b'0', b'x' | b'X' | b'0'..=b'9', ..]) || begins(b"inf") || begins(b"nan")
}

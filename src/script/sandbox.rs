//! The sandbox: the globals that a script sees, all of them read-only.
//!
//! Lua 5.1 has no read-only tables. So a script never holds one of ours: it holds an empty table, a *cover*, whose metatable looks every key up in the
//! hidden table behind it and refuses to set any. Lua's own functions that go round metatables (`rawset`, `next`, `table.insert` ...) are given to scripts in a
//! form that asks first whether their table is a cover: those that read then read the hidden table, those that change one refuse.
//!
//! KEYS and ARGV are new tables for each run, put into the hidden table of globals.

use std::ffi::{CStr, c_int, c_void};

use super::lua::{GLOBALS, Kind, Library, Lua, OwnFunction, REGISTRY, Returns, upvalue};
use super::run::{Run, run_of};
use super::{bits, json, message_pack, redis_module, structure};

/// Lua's own globals that scripts get as they are.
const PLAIN: &[&str] = &[
    "_VERSION",
    "assert",
    "coroutine",
    "error",
    "gcinfo",
    "ipairs",
    "rawequal",
    "select",
    "tonumber",
    "tostring",
    "type",
    "unpack",
];

/// A metatable with a value under the address of this is that of a cover; the value is what it covers.
static MARK: u8 = 0;

/// Where the metatable of strings is kept that scripts are shown.
static STRINGS: u8 = 0;

fn mark() -> *mut c_void {
    (&raw const MARK).cast_mut().cast()
}

fn strings() -> *mut c_void {
    (&raw const STRINGS).cast_mut().cast()
}

/// Leaves the hidden table of globals, and makes its cover the globals of all chunks to come.
pub(super) fn push_globals(lua: Lua) {
    for library in [Library::Base, Library::Table, Library::String, Library::Math, Library::Os] {
        lua.open_library(library);
    }
    lua.push_table(0, 64);
    let globals = lua.top();
    for name in PLAIN {
        lua.get_field(GLOBALS, name);
        lua.set_field(globals, name);
    }
    add_own_functions(lua, globals);
    add_libraries(lua, globals);
    // Every table that a global is becomes a cover of itself.
    lua.push_nil();
    while lua.next(globals) {
        if lua.kind(-1) == Kind::Table {
            cover(lua);
            lua.push_value(-2);
            lua.insert(-2);
            // The key is there already, so the traversal goes on well.
            lua.set(globals);
        } else {
            lua.pop(1);
        }
    }
    show_strings(lua, globals);
    // The metatable of the hidden table: what is not there is an error.
    lua.push_table(0, 1);
    lua.push_function::<Run, _>(0, unknown_global);
    lua.set_field(-2, "__index");
    lua.set_metatable(globals);
    lua.push_value(globals);
    cover(lua);
    lua.push_value(-1);
    lua.set_field(globals, "_G");
    lua.replace(GLOBALS);
}

/// Leaves the cover of the table that stands for `redis` while a library is loaded.
pub(super) fn push_module_for_loading(lua: Lua) {
    redis_module::push_for_loading(lua);
    lua.push_table(0, 1);
    lua.push_function::<Run, _>(0, unknown_global);
    lua.set_field(-2, "__index");
    lua.set_metatable(-2);
    cover(lua);
}

/// Replaces the table on top by a cover of it.
fn cover(lua: Lua) {
    lua.push_table(0, 0);
    lua.push_table(0, 3);
    lua.push_value(-3);
    lua.set_field(-2, "__index");
    lua.push_function::<Run, _>(0, |lua| Err(refuse_change(lua)));
    lua.set_field(-2, "__newindex");
    lua.push_light(mark());
    lua.push_value(-4);
    lua.set(-3);
    lua.set_metatable(-2);
    lua.remove(-2);
}

/// Pushes what the value at `index` covers, if it is a cover.
fn push_covered(lua: Lua, index: c_int) -> bool {
    if lua.kind(index) != Kind::Table || !lua.push_metatable(index) {
        return false;
    }
    lua.push_light(mark());
    lua.get(-2);
    lua.remove(-2);
    let is_cover = lua.kind(-1) == Kind::Table;
    if !is_cover {
        lua.pop(1);
    }
    is_cover
}

const READ_ONLY: &str = "Attempt to modify a readonly table";

#[cold]
fn refuse_change(lua: Lua) -> super::lua::Raised {
    lua.fail(READ_ONLY)
}

fn unknown_global(lua: Lua) -> Returns {
    // SAFETY: the key is the second argument, which stays where it is.
    let name = unsafe { lua.bytes(2) }.unwrap_or(b"?");
    lua.push_where(1);
    lua.push_bytes(b"Script attempted to access nonexistent global variable '");
    lua.push_bytes(name);
    lua.push_bytes(b"'");
    lua.concat(4);
    Err(super::lua::Raised)
}

/// The function of Lua's that is the running one's first upvalue.
fn wrapped(lua: Lua) -> OwnFunction {
    lua.own_function(upvalue(1)).expect("made by `push_wrapped`")
}

/// A function of Lua's that reads its first argument: of a cover, it reads what is covered.
fn reading(lua: Lua) -> Returns {
    if push_covered(lua, 1) {
        lua.replace(1);
    }
    lua.call_own(wrapped(lua))
}

/// A function of Lua's that changes its first argument: it refuses a cover.
fn changing(lua: Lua) -> Returns {
    if push_covered(lua, 1) {
        lua.push_bytes(READ_ONLY.as_bytes());
        return Err(super::lua::Raised);
    }
    lua.call_own(wrapped(lua))
}

/// Replaces the function on top by one that asks for covers first.
fn push_wrapped<F: Fn(Lua) -> Returns + Copy>(lua: Lua, function: F) {
    lua.push_function::<Run, F>(1, function);
}

fn add_own_functions(lua: Lua, globals: c_int) {
    for name in ["next", "rawget"] {
        lua.get_field(GLOBALS, name);
        push_wrapped(lua, reading);
        lua.set_field(globals, name);
    }
    for name in ["rawset", "setmetatable"] {
        lua.get_field(GLOBALS, name);
        push_wrapped(lua, changing);
        lua.set_field(globals, name);
    }
    lua.get_field(globals, "next");
    lua.push_function::<Run, _>(1, pairs);
    lua.set_field(globals, "pairs");
    lua.get_field(GLOBALS, "getmetatable");
    push_wrapped(lua, getmetatable);
    lua.set_field(globals, "getmetatable");
    lua.push_function::<Run, _>(0, loadstring);
    lua.set_field(globals, "loadstring");
    lua.push_function::<Run, _>(0, load);
    lua.set_field(globals, "load");
    lua.push_function::<Run, _>(0, collectgarbage);
    lua.set_field(globals, "collectgarbage");
    lua.push_function::<Run, _>(0, pcall);
    lua.set_field(globals, "pcall");
    lua.push_function::<Run, _>(0, xpcall);
    lua.set_field(globals, "xpcall");
}

/// Pushes a module's table.
type PushModule = fn(Lua);

fn add_libraries(lua: Lua, globals: c_int) {
    for name in ["string", "math", "table"] {
        lua.get_field(GLOBALS, name);
        lua.set_field(globals, name);
    }
    lua.get_field(globals, "table");
    let table = lua.top();
    for name in ["concat", "foreach", "foreachi", "getn", "maxn"] {
        lua.get_field(table, name);
        push_wrapped(lua, reading);
        lua.set_field(table, name);
    }
    for name in ["insert", "remove", "setn", "sort"] {
        lua.get_field(table, name);
        push_wrapped(lua, changing);
        lua.set_field(table, name);
    }
    lua.get_field(globals, "math");
    lua.push_function::<Run, _>(0, random);
    lua.set_field(-2, "random");
    lua.push_function::<Run, _>(0, randomseed);
    lua.set_field(-2, "randomseed");
    lua.push_table(0, 1);
    lua.get_field(GLOBALS, "os");
    lua.get_field(-1, "clock");
    lua.set_field(-3, "clock");
    lua.pop(1);
    lua.set_field(globals, "os");
    lua.set_top(globals);
    let modules: [(&str, PushModule); 5] = [
        ("redis", redis_module::push),
        ("cjson", json::push),
        ("cmsgpack", message_pack::push),
        ("bit", bits::push),
        ("struct", structure::push),
    ];
    for (name, push) in modules {
        push(lua);
        lua.set_field(globals, name);
    }
}

/// Keeps what `getmetatable` shows of strings: a table whose `__index` is the covered library.
fn show_strings(lua: Lua, globals: c_int) {
    lua.push_light(strings());
    lua.push_table(0, 1);
    lua.get_field(globals, "string");
    lua.set_field(-2, "__index");
    cover(lua);
    lua.set(REGISTRY);
}

/// `pairs(t)`: `next`, `t` and nil; `next` knows of covers.
fn pairs(lua: Lua) -> Returns {
    lua.check_table(1);
    lua.push_value(upvalue(1));
    lua.push_value(1);
    lua.push_nil();
    Ok(3)
}

/// `pcall(f, ...)`. As in Redis, of an error table only the text is left.
fn pcall(lua: Lua) -> Returns {
    // The place for the result; a missing function is this.
    lua.push_boolean(true);
    lua.insert(1);
    let arguments = (lua.top() - 2).max(0);
    if lua.top() == 1 {
        lua.push_value(1);
    }
    if lua.protected_call(arguments, -1, 0) == 0 {
        return Ok(lua.top() as usize);
    }
    redis_module::check_abort(lua)?;
    if lua.kind(-1) == Kind::Table {
        lua.get_field(-1, "err");
        if lua.kind(-1) == Kind::String {
            lua.remove(-2);
        } else {
            lua.pop(1);
        }
    }
    lua.push_boolean(false);
    lua.replace(1);
    Ok(2)
}

/// `xpcall(f, handler)`. The handler runs when the call has ended, not before: what runs in the midst of an error that a hook has raised is not
/// hooked, so that nobody could end it. A script cannot tell, since it has no way to look at the stack.
fn xpcall(lua: Lua) -> Returns {
    lua.check_any(2);
    lua.set_top(2);
    lua.push_value(1);
    lua.push_boolean(true);
    lua.replace(1);
    if lua.protected_call(0, -1, 0) == 0 {
        lua.remove(2);
        return Ok(lua.top() as usize);
    }
    redis_module::check_abort(lua)?;
    if lua.protected_call(1, 1, 0) != 0 {
        redis_module::check_abort(lua)?;
    }
    lua.push_boolean(false);
    lua.replace(1);
    Ok(2)
}

/// `getmetatable(v)`, which shows no metatable that a change of would outlive the script.
fn getmetatable(lua: Lua) -> Returns {
    match lua.kind(1) {
        Kind::String => {
            lua.push_light(strings());
            lua.get(REGISTRY);
            Ok(1)
        }
        Kind::Table if push_covered(lua, 1) => {
            if lua.push_metatable(-1) {
                cover(lua);
            } else {
                lua.push_nil();
            }
            Ok(1)
        }
        _ => lua.call_own(wrapped(lua)),
    }
}

/// `loadstring(text [, name])`, of source only.
fn loadstring(lua: Lua) -> Returns {
    // SAFETY: both strings are arguments, which stay where they are.
    let (source, name) = unsafe {
        let source = lua.check_bytes(1);
        (source, if lua.kind(2) == Kind::Nil { lua.check_c_text(1) } else { lua.check_c_text(2) })
    };
    finish_load(lua, source, name)
}

/// `load(function [, name])`: the pieces that the function gives make a source.
fn load(lua: Lua) -> Returns {
    if lua.kind(1) != Kind::Function {
        lua.bad_argument(1, c"function expected");
    }
    // SAFETY: the string is an argument, which stays where it is.
    let name = if lua.kind(2) == Kind::Nil { c"=(load)" } else { unsafe { lua.check_c_text(2) } };
    lua.set_top(2);
    lua.push_bytes(b"");
    loop {
        lua.push_value(1);
        lua.call(0, 1);
        match lua.kind(-1) {
            Kind::Nil => lua.pop(1),
            Kind::String if lua.length(-1) > 0 => {
                lua.concat(2);
                continue;
            }
            Kind::String => lua.pop(1),
            _ => return Err(lua.fail("reader function must return a string")),
        }
        break;
    }
    // SAFETY: the string stays on the stack until it is compiled.
    let source = unsafe { lua.bytes(3) }.unwrap_or_default();
    finish_load(lua, source, name)
}

fn finish_load(lua: Lua, source: &[u8], name: &CStr) -> Returns {
    if lua.load(source, name) {
        return Ok(1);
    }
    lua.push_nil();
    lua.insert(-2);
    Ok(2)
}

/// `collectgarbage([what])`: collects, steps and counts; that a script would stop or slow the collector is not heard.
fn collectgarbage(lua: Lua) -> Returns {
    // SAFETY: the string is an argument, which stays where it is.
    let what = if lua.kind(1) == Kind::Nil { &b"collect"[..] } else { unsafe { lua.check_bytes(1) } };
    match what {
        b"collect" => lua.collect(),
        b"count" => {
            lua.push_number(lua.kibibytes().into());
            return Ok(1);
        }
        b"step" => {
            let is_done = lua.collect_step(0);
            lua.push_boolean(is_done);
            return Ok(1);
        }
        b"stop" | b"restart" => {}
        b"setpause" | b"setstepmul" => {
            lua.push_number(200.0);
            return Ok(1);
        }
        other => return Err(lua.bad_argument_bytes(1, &[b"invalid option '", other, b"'"])),
    }
    lua.push_number(0.0);
    Ok(1)
}

/// `math.random([m [, n]])`: the same numbers in every run.
fn random(lua: Lua) -> Returns {
    const MAX: u32 = i32::MAX as u32;
    // SAFETY: the run is the engine's, and functions of a state never overlap.
    let drawn = unsafe { (*run_of(lua).as_ptr()).random.next_u31() };
    let fraction = f64::from(drawn % MAX) / f64::from(MAX);
    let (least, most, argument) = match lua.top() {
        0 => {
            lua.push_number(fraction);
            return Ok(1);
        }
        1 => (1.0, lua.check_number(1).trunc(), 1),
        2 => (lua.check_number(1).trunc(), lua.check_number(2).trunc(), 2),
        _ => return Err(lua.fail("wrong number of arguments")),
    };
    if least > most {
        lua.bad_argument(argument, c"interval is empty");
    }
    lua.push_number((fraction * (most - least + 1.0)).floor() + least);
    Ok(1)
}

fn randomseed(lua: Lua) -> Returns {
    let seed = lua.check_number(1) as i64 as u32;
    // SAFETY: the run is the engine's, and functions of a state never overlap.
    unsafe { (*run_of(lua).as_ptr()).random = crate::random::Drand48::new(seed) };
    Ok(0)
}

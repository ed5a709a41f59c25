//! The module `redis`: what a script may ask of the server.

use super::library::{BAD_NAME, is_name};
use super::lua::{Kind, Lua, Raised, Returns};
use super::run::{Registered, Run, run_of, set_functions};
use super::{Abort, Digest, Failure, FunctionFacts, Header, LogLevel, replies, text};
use crate::command::args::Args;
use crate::limits::{LIBRARY_LOAD_BREATHS_MAX, SCRIPT_CALLS_PER_BREATH, SCRIPT_INSTRUCTIONS_PER_BREATH};
use crate::resp::Protocol;

/// The version as one number, a byte for each part.
const VERSION_NUMBER: u32 = {
    let (mut number, mut part, mut at) = (0, 0, 0);
    let text = crate::REDIS_VERSION.as_bytes();
    while at < text.len() {
        match text[at] {
            b'.' => {
                number = (number + part) << 8;
                part = 0;
            }
            digit => part = part * 10 + (digit - b'0') as u32,
        }
        at += 1;
    }
    number + part
};

/// Pushes the table that stands for the module while a library is loaded.
pub(super) fn push_for_loading(lua: Lua) {
    lua.push_table(0, 8);
    lua.push_function::<Run, _>(0, register_function);
    lua.set_field(-2, "register_function");
    lua.push_function::<Run, _>(0, log);
    lua.set_field(-2, "log");
    for (name, number) in [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)] {
        lua.push_number(f64::from(number));
        lua.set_field(-2, name);
    }
    lua.push_bytes(crate::REDIS_VERSION.as_bytes());
    lua.set_field(-2, "REDIS_VERSION");
    lua.push_number(VERSION_NUMBER.into());
    lua.set_field(-2, "REDIS_VERSION_NUM");
}

/// Pushes the module's table.
pub(super) fn push(lua: Lua) {
    lua.push_table(0, 32);
    let table = lua.top();
    set_functions! { lua, table,
        "call" = |lua| call(lua, true),
        "pcall" = |lua| call(lua, false),
        "error_reply" = error_reply,
        "status_reply" = status_reply,
        "sha1hex" = sha1hex,
        "log" = log,
        "setresp" = setresp,
        "set_repl" = set_repl,
        "replicate_commands" = |lua| {
            lua.push_boolean(true);
            Ok(1)
        },
        "breakpoint" = |lua| {
            lua.push_boolean(false);
            Ok(1)
        },
        "debug" = |_| Ok(0),
        "acl_check_cmd" = acl_check_cmd,
    }
    for (name, number) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
        ("REDIS_VERSION_NUM", VERSION_NUMBER),
    ] {
        lua.push_number(number.into());
        lua.set_field(table, name);
    }
    lua.push_bytes(crate::REDIS_VERSION.as_bytes());
    lua.set_field(table, "REDIS_VERSION");
}

/// Gives way after some instructions; the hook.
pub(super) fn breathe(lua: Lua) -> Result<(), Raised> {
    let run = run_of(lua);
    // SAFETY: the run is the engine's; hooks and functions of a state never overlap.
    let run = unsafe { &mut *run.as_ptr() };
    if run.abort.is_none() {
        let Some(mut host) = run.host else { return breathe_while_loading(lua, run) };
        run.calls = 0;
        // SAFETY: the engine set the host for this run, and lends it to nobody else while Lua runs.
        match unsafe { host.as_mut() }.breathe() {
            Ok(()) => return Ok(()),
            Err(abort) => run.abort = Some(abort),
        }
    }
    Err(raise_abort(lua))
}

/// A library that is loaded has some time, and nobody to ask for more.
fn breathe_while_loading(lua: Lua, run: &mut Run) -> Result<(), Raised> {
    run.load_breaths += 1;
    if run.load_breaths <= LIBRARY_LOAD_BREATHS_MAX {
        return Ok(());
    }
    run.abort = Some(Abort::Killed("FUNCTION LOAD timeout"));
    Err(raise_abort(lua))
}

/// Goes on with the script's end where somebody has ended it, whatever has caught the error.
pub(super) fn check_abort(lua: Lua) -> Result<(), Raised> {
    // SAFETY: the run is the engine's; hooks and functions of a state never overlap.
    if unsafe { run_of(lua).as_ref() }.abort.is_some() { Err(raise_abort(lua)) } else { Ok(()) }
}

/// Has the script end: every instruction from now on fails, so that nothing that it does can hold it up.
#[cold]
fn raise_abort(lua: Lua) -> Raised {
    lua.set_hook::<Run, _>(1, breathe);
    // SAFETY: the run is the engine's; hooks and functions of a state never overlap.
    let run = unsafe { run_of(lua).as_ref() };
    if let Some(main) = run.main {
        main.set_hook::<Run, _>(1, breathe);
    }
    match run.abort {
        Some(Abort::Killed(text)) => lua.push_bytes(text.as_bytes()),
        Some(Abort::Lost) | None => lua.push_bytes(b""),
    }
    Raised
}

/// Sets the hook as it is while nobody wants the script to end.
pub(super) fn reset_hook(lua: Lua) {
    lua.set_hook::<Run, _>(SCRIPT_INSTRUCTIONS_PER_BREATH, breathe);
}

/// Gathers the arguments as a command line; an error's text where there is none, or one of them is no string.
fn gather(lua: Lua, run: &mut Run) -> Result<(), &'static str> {
    let count = lua.top();
    run.words.clear();
    for index in 1..=count {
        if lua.kind(index) == Kind::Number {
            let number = lua.number(index);
            let integer = text::to_integer(number);
            if integer as f64 == number {
                lua.push_bytes(itoa::Buffer::new().format(integer).as_bytes());
            } else {
                lua.push_bytes(text::format_number(number, 17, &mut [0; 32]));
            }
            lua.replace(index);
        }
        if lua.kind(index) != Kind::String {
            return Err("Lua redis lib command arguments must be strings or integers");
        }
        // SAFETY: the argument stays on the stack until the function returns, and the words are forgotten before it.
        run.words.extend(unsafe { lua.bytes::<'static>(index) });
    }
    Ok(())
}

/// `redis.call` and `redis.pcall`, which differ in what becomes of an error.
fn call(lua: Lua, raise: bool) -> Returns {
    let run = run_of(lua);
    // SAFETY: the run is the engine's, and functions of a state never overlap: none is called before this one returns.
    let run = unsafe { &mut *run.as_ptr() };
    if run.abort.is_some() {
        return Err(raise_abort(lua));
    }
    if lua.top() == 0 {
        let text = "Please specify at least one argument for this redis lib call";
        return fail(lua, raise, text);
    }
    if let Err(text) = gather(lua, run) {
        return fail(lua, raise, text);
    }
    let Some(mut host) = run.host else {
        return fail(lua, raise, "redis.call/pcall can only be called inside a script invocation");
    };
    run.calls += 1;
    if run.calls >= SCRIPT_CALLS_PER_BREATH {
        breathe(lua)?;
    }
    run.reply.clear();
    run.reply.set_protocol(run.protocol);
    // SAFETY: the engine set the host for this run, and lends it to nobody else while Lua runs.
    let result = unsafe { host.as_mut() }.call(&Args::new(&run.words), &mut run.reply);
    run.words.clear();
    match result {
        Ok(()) => {}
        Err(Failure::Abort(abort)) => {
            run.abort = Some(abort);
            return Err(raise_abort(lua));
        }
        Err(Failure::Error(error)) => {
            run.reply.clear();
            run.reply.error(&error);
            // The error's own memory goes before Lua may jump.
            drop(error);
        }
    }
    if !run.reply.segments().is_empty() {
        run.reply.join();
    }
    replies::push_reply(lua, run.reply.buffer())?;
    if run.reply.buffer().first() != Some(&b'-') {
        return Ok(1);
    }
    lua.push_boolean(true);
    lua.set_field(-2, "ignore_error_stats_update");
    if raise { Err(Raised) } else { Ok(1) }
}

/// An error of the module itself, as a table.
fn fail(lua: Lua, raise: bool, text: &str) -> Returns {
    lua.push_table(0, 4);
    lua.push_bytes(b"ERR ");
    lua.push_bytes(text.as_bytes());
    lua.concat(2);
    lua.set_field(-2, "err");
    if raise { Err(Raised) } else { Ok(1) }
}

/// Makes of an error value the table that the engine wants: the message handler of a script's protected call.
pub(super) fn describe_error(lua: Lua) -> Returns {
    lua.set_top(1);
    let mut is_placed = false;
    if let Some(is_c) = lua.push_place(1) {
        is_placed = true;
        if is_c {
            lua.set_top(1);
            is_placed = lua.push_place(2).is_some();
        }
    }
    if lua.kind(1) != Kind::Table {
        lua.push_table(0, 3);
        lua.push_bytes(b"ERR ");
        push_text_of(lua, 1);
        lua.concat(2);
        lua.set_field(-2, "err");
        lua.replace(1);
    }
    if is_placed {
        lua.set_field(1, "line");
        lua.set_field(1, "source");
    }
    lua.set_top(1);
    Ok(1)
}

/// Pushes what `tostring` makes of an error value; its metatable is not asked.
fn push_text_of(lua: Lua, index: std::ffi::c_int) {
    match lua.kind(index) {
        Kind::String => lua.push_value(index),
        Kind::Number => lua.push_bytes(text::format_number(lua.number(index), 14, &mut [0; 32])),
        Kind::Boolean => lua.push_bytes(if lua.truth(index) { b"true" } else { b"false" }),
        _ => lua.push_bytes(lua.kind_name(index).as_bytes()),
    }
}

/// Gives a table with one field from the one argument, a string; another table where that is no string.
fn single_field(lua: Lua, name: &str) -> Returns {
    if lua.top() != 1 || lua.kind(1) != Kind::String {
        return fail(lua, false, "wrong number or type of arguments");
    }
    lua.push_table(0, 1);
    lua.push_value(1);
    lua.set_field(-2, name);
    Ok(1)
}

/// `redis.error_reply(text)`: a leading `-` is dropped, and a single word is no code but a message.
fn error_reply(lua: Lua) -> Returns {
    if lua.top() == 1 && lua.kind(1) == Kind::String {
        // SAFETY: the string is the first argument, which stays where it is until it is replaced by a copy.
        let text = unsafe { lua.bytes(1) }.unwrap_or_default();
        let text = text.strip_prefix(b"-").unwrap_or(text);
        lua.push_bytes(if text.contains(&b' ') { b"" } else { b"ERR " });
        lua.push_bytes(text);
        lua.concat(2);
        lua.replace(1);
    }
    single_field(lua, "err")
}

fn status_reply(lua: Lua) -> Returns {
    single_field(lua, "ok")
}

fn sha1hex(lua: Lua) -> Returns {
    if lua.top() != 1 {
        return Err(raise_text(lua, "wrong number of arguments"));
    }
    // SAFETY: the string is the first argument, which stays where it is.
    let text = unsafe { lua.bytes(1) }.unwrap_or_default();
    lua.push_bytes(Digest::of(text).as_bytes());
    Ok(1)
}

/// An error of a function that always raises.
#[cold]
fn raise_text(lua: Lua, text: &str) -> Raised {
    match fail(lua, true, text) {
        Err(raised) => raised,
        Ok(_) => Raised,
    }
}

fn log(lua: Lua) -> Returns {
    let count = lua.top();
    if count < 2 {
        return Err(raise_text(lua, "redis.log() requires two arguments or more."));
    }
    if lua.kind(1) != Kind::Number {
        return Err(raise_text(lua, "First argument must be a number (log level)."));
    }
    let level = match lua.number(1) as i64 {
        0 => LogLevel::Debug,
        1 => LogLevel::Verbose,
        2 => LogLevel::Notice,
        3 => LogLevel::Warning,
        _ => return Err(raise_text(lua, "Invalid log level.")),
    };
    let run = run_of(lua);
    // SAFETY: the run is the engine's, and functions of a state never overlap.
    let run = unsafe { &mut *run.as_ptr() };
    run.buffer.clear();
    for index in 2..=count {
        // SAFETY: the argument stays on the stack until the function returns.
        let Some(text) = (unsafe { lua.bytes(index) }) else { continue };
        if index > 2 {
            run.buffer.push(b' ');
        }
        run.buffer.extend_from_slice(text);
    }
    if let Some(mut host) = run.host {
        // SAFETY: the engine set the host for this run, and lends it to nobody else while Lua runs.
        unsafe { host.as_mut() }.log(level, &run.buffer);
    }
    Ok(0)
}

fn setresp(lua: Lua) -> Returns {
    if lua.top() != 1 {
        return Err(raise_text(lua, "redis.setresp() requires one argument."));
    }
    let protocol = match lua.number(1) as i64 {
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return Err(raise_text(lua, "RESP version must be 2 or 3.")),
    };
    // SAFETY: the run is the engine's, and functions of a state never overlap.
    unsafe { (*run_of(lua).as_ptr()).protocol = protocol };
    Ok(0)
}

fn set_repl(lua: Lua) -> Returns {
    if lua.top() != 1 {
        return Err(raise_text(lua, "redis.set_repl() requires one argument."));
    }
    match lua.number(1) as i64 {
        0..=3 => Ok(0),
        _ => Err(raise_text(lua, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")),
    }
}

fn acl_check_cmd(lua: Lua) -> Returns {
    let run = run_of(lua);
    // SAFETY: the run is the engine's, and functions of a state never overlap.
    let run = unsafe { &mut *run.as_ptr() };
    if lua.top() == 0 {
        return Err(raise_text(lua, "Please specify at least one argument for this redis lib call"));
    }
    if let Err(text) = gather(lua, run) {
        return Err(raise_text(lua, text));
    }
    let allowed = run.host.and_then(|mut host| {
        // SAFETY: the engine set the host for this run, and lends it to nobody else while Lua runs.
        unsafe { host.as_mut() }.may_run(&Args::new(&run.words))
    });
    run.words.clear();
    match allowed {
        Some(allowed) => {
            lua.push_boolean(allowed);
            Ok(1)
        }
        None => Err(raise_text(lua, "Invalid command passed to redis.acl_check_cmd()")),
    }
}

/// `redis.register_function(name, f)`, or with one table of `function_name`, `callback`, `description` and `flags`.
fn register_function(lua: Lua) -> Returns {
    match lua.top() {
        1 if lua.kind(1) == Kind::Table => {}
        1 => {
            let text = "calling redis.register_function with a single argument is only applicable to Lua table \
                        (representing named arguments).";
            return Err(raise_text(lua, text));
        }
        2 => {
            if lua.kind(2) != Kind::Function {
                return Err(raise_text(lua, "second argument to redis.register_function must be a function"));
            }
            if !matches!(lua.kind(1), Kind::String | Kind::Number) {
                return Err(raise_text(lua, "first argument to redis.register_function must be a string"));
            }
            lua.push_table(0, 2);
            lua.push_value(1);
            lua.set_field(-2, "function_name");
            lua.push_value(2);
            lua.set_field(-2, "callback");
            lua.replace(1);
        }
        _ => return Err(raise_text(lua, "wrong number of arguments to redis.register_function")),
    }
    lua.set_top(1);
    check_registration(lua)?;
    // The stack now holds the table, the name, the callback and the description. Kept first, since it may want memory; nothing below does.
    lua.push_value(3);
    let function = lua.keep();
    // SAFETY: the strings lie on the stack until the function returns.
    let (name, description) = unsafe { (lua.bytes(2).unwrap_or_default(), lua.bytes(4)) };
    let header = flags_of(lua);
    // SAFETY: the run is the engine's, and functions of a state never overlap.
    let Some(loading) = (unsafe { (*run_of(lua).as_ptr()).loading.as_mut() }) else {
        return Err(raise_text(lua, "redis.register_function can only be called on FUNCTION LOAD command"));
    };
    if loading.iter().any(|registered| registered.facts.name.as_bytes() == name) {
        return Err(raise_text(lua, "Function already exists in the library"));
    }
    let facts = FunctionFacts {
        name: String::from_utf8_lossy(name).into_owned(),
        description: description.map(<[u8]>::to_vec),
        header,
    };
    loading.push(Registered { facts, function });
    Ok(0)
}

/// Checks the table that is the only argument, and pushes its name, callback and description (or nil).
fn check_registration(lua: Lua) -> Result<(), Raised> {
    lua.push_nil();
    while lua.next(1) {
        // SAFETY: the key lies on the stack until the next turn; it is looked at only if it is a string already.
        let key = if lua.kind(-2) == Kind::String { unsafe { lua.bytes(-2) } } else { None };
        let wrong = match (key, lua.kind(-1)) {
            (Some(b"function_name"), Kind::String | Kind::Number) | (Some(b"description"), Kind::String) => None,
            (Some(b"function_name"), _) => {
                Some("function_name argument given to redis.register_function must be a string")
            }
            (Some(b"description"), _) => Some("description argument given to redis.register_function must be a string"),
            (Some(b"callback"), Kind::Function) | (Some(b"flags"), Kind::Table) => None,
            (Some(b"callback"), _) => Some("callback argument given to redis.register_function must be a function"),
            (Some(b"flags"), _) => {
                Some("flags argument to redis.register_function must be a table representing function flags")
            }
            (Some(_), _) => Some("unknown argument given to redis.register_function"),
            (None, _) => Some("named argument key given to redis.register_function is not a string"),
        };
        if let Some(text) = wrong {
            return Err(raise_text(lua, text));
        }
        lua.pop(1);
    }
    for field in ["function_name", "callback", "description"] {
        lua.get_field(1, field);
    }
    if lua.kind(2) == Kind::Nil {
        return Err(raise_text(lua, "redis.register_function must get a function name argument"));
    }
    if lua.kind(3) == Kind::Nil {
        return Err(raise_text(lua, "redis.register_function must get a callback argument"));
    }
    // SAFETY: the string lies on the stack until it has been looked at.
    if !is_name(unsafe { lua.bytes(2) }.unwrap_or_default()) {
        return Err(raise_text(lua, BAD_NAME));
    }
    lua.get_field(1, "flags");
    if lua.kind(5) == Kind::Table {
        let mut element = 1;
        loop {
            lua.get_element(5, element);
            let is_known = match lua.kind(-1) {
                Kind::Nil => break,
                // SAFETY: the string lies on the stack until it has been looked at.
                Kind::String => unsafe { lua.bytes(-1) }.is_some_and(|flag| Header::default().set(flag)),
                _ => false,
            };
            if !is_known {
                return Err(raise_text(lua, "unknown flag given"));
            }
            lua.pop(1);
            element += 1;
        }
        lua.pop(1);
    }
    Ok(())
}

/// The flags in the table of flags at index 5, which have been checked.
fn flags_of(lua: Lua) -> Header {
    let mut header = Header { is_there: true, ..Header::default() };
    if lua.kind(5) != Kind::Table {
        return header;
    }
    for element in 1.. {
        lua.get_element(5, element);
        // SAFETY: the string lies on the stack until it has been looked at.
        let flag = if lua.kind(-1) == Kind::String { unsafe { lua.bytes(-1) } } else { None };
        let is_end = flag.is_none_or(|flag| !header.set(flag));
        lua.pop(1);
        if is_end {
            break;
        }
    }
    header
}

//! The engine: one Lua state of one worker, and what scripts compile to in it.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use ahash::AHashMap;

use super::lua::{Kind, Lua, REGISTRY, Returns, Shared};
use super::redis_module::{describe_error, reset_hook};
use super::replies::write_value;
use super::run::{Registered, Run, run_of};
use super::{Abort, Digest, Function, FunctionFacts, Host, Program, Script, sandbox};
use crate::command::error::CommandError;
use crate::limits::{COMPILED_SCRIPTS_MAX, LOADED_LIBRARIES_MAX, SCRIPT_IDLE_BYTES_MAX, SCRIPT_MEMORY_BYTES_MAX};
use crate::resp::{Mark, Reply};

/// What chunks of scripts are called in errors and tracebacks.
const SCRIPT_CHUNK: &CStr = c"@user_script";

/// What chunks of libraries are called.
const FUNCTION_CHUNK: &CStr = c"@user_function";

/// A worker's Lua state.
pub struct Engine {
    lua: Lua,
    /// The state's own memory, made from a box; it lives until the state is closed.
    shared: NonNull<Shared<Run>>,
    /// Where the table of globals is kept that scripts see through a read-only one.
    globals: c_int,
    /// Where the function is kept that describes errors.
    handler: c_int,
    /// Where the table is kept that stands for `redis` while a library is loaded.
    loading: c_int,
    /// Where each script's function is kept.
    compiled: AHashMap<Digest, c_int>,
    /// Where the functions of each library are kept, by the library's number.
    libraries: AHashMap<u64, Vec<c_int>>,
}

/// How a script ended; its reply or its error line has been appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It gave a result.
    Well,
    /// It failed, or its result could not be written.
    Failed,
    /// It was ended from outside.
    Aborted(Abort),
}

impl Engine {
    /// A new state in its sandbox.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new() -> Result<Self, CommandError> {
        Self::with_memory(SCRIPT_MEMORY_BYTES_MAX)
    }

    /// As [`new`](Self::new), with another bound of its memory, in bytes.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn with_memory(bytes_max: usize) -> Result<Self, CommandError> {
        const NO_MEMORY: CommandError = CommandError::err("not enough memory for the Lua interpreter");
        let shared = Shared { bytes: 0, bytes_max, panic: None, own: Run::default() };
        // Through a raw pointer from here on: the state's functions reach it too.
        let shared = NonNull::from(Box::leak(Box::new(shared)));
        // SAFETY: just leaked, and used by nobody else yet.
        let lua = Lua::open(unsafe { &mut *shared.as_ptr() });
        let Some(lua) = lua else {
            // SAFETY: made from a box above, and no state holds it.
            drop(unsafe { Box::from_raw(shared.as_ptr()) });
            return Err(NO_MEMORY);
        };
        let mut engine = Self {
            lua,
            shared,
            globals: 0,
            handler: 0,
            loading: 0,
            compiled: AHashMap::default(),
            libraries: AHashMap::default(),
        };
        engine.run_mut().main = Some(lua);
        // A bare push of a function without upvalues may lack memory only while the state is as good as empty.
        lua.push_function::<Run, _>(0, set_up);
        if lua.protected_call(0, 3, 0) != 0 {
            return Err(NO_MEMORY);
        }
        engine.loading = lua.keep();
        engine.handler = lua.keep();
        engine.globals = lua.keep();
        reset_hook(lua);
        Ok(engine)
    }

    fn run_mut(&mut self) -> &mut Run {
        // SAFETY: the box lives as long as this engine, and while it is borrowed no function of the state runs.
        unsafe { &mut (*self.shared.as_ptr()).own }
    }

    /// Compiles a script, unless that has been done.
    ///
    /// # Errors
    /// It is no Lua.
    pub fn compile(&mut self, script: &Script) -> Result<(), CommandError> {
        self.function_of(script).map(drop)
    }

    fn function_of(&mut self, script: &Script) -> Result<c_int, CommandError> {
        if let Some(function) = self.compiled.get(&script.digest) {
            return Ok(*function);
        }
        if self.compiled.len() >= COMPILED_SCRIPTS_MAX {
            self.forget_compiled();
        }
        if !self.lua.load(script.body(), SCRIPT_CHUNK) {
            return Err(self.compile_error(b"Error compiling script (new function): "));
        }
        let function = self.lua.keep();
        self.compiled.insert(script.digest, function);
        Ok(function)
    }

    fn forget_compiled(&mut self) {
        let functions = self.compiled.drain().map(|(_, function)| function);
        functions
            .chain(self.libraries.drain().flat_map(|(_, functions)| functions))
            .for_each(|function| self.lua.forget(function));
        self.lua.collect();
    }

    /// Takes the error on top and makes it the command's.
    #[cold]
    fn compile_error(&mut self, before: &[u8]) -> CommandError {
        // SAFETY: the string lies on top of the stack until it has been copied.
        let text = unsafe { self.lua.bytes(-1) }.unwrap_or_default();
        let message = [before, text].concat();
        self.lua.set_top(0);
        CommandError { code: "ERR", message: message.into() }
    }

    /// Runs a script from its start and appends its reply, or its error as a reply.
    ///
    /// # Errors
    /// It is no Lua.
    pub fn run(
        &mut self,
        program: &Program,
        keys: &[&[u8]],
        arguments: &[&[u8]],
        host: &mut dyn Host,
        reply: &mut Reply,
    ) -> Result<Ended, CommandError> {
        let function = match program {
            Program::Script(script) => self.function_of(script)?,
            Program::Function(function) => self.function_of_library(function)?,
        };
        let (name, is_function) = (program.name(), program.is_function());
        let call = Call { function, is_function, keys, arguments, name, handler: self.handler, globals: self.globals };
        Ok(self.invoke(call, host, reply))
    }

    fn function_of_library(&mut self, function: &Function) -> Result<c_int, CommandError> {
        let id = function.library.id;
        if !self.libraries.contains_key(&id) {
            if self.libraries.len() >= LOADED_LIBRARIES_MAX {
                self.forget_compiled();
            }
            let registered = self.load(function.library.body())?;
            self.libraries.insert(id, registered.iter().map(|registered| registered.function).collect());
        }
        // The source is the same as when it was loaded first; so are its functions, unless what it does depends on something else.
        let kept = self.libraries.get(&id).and_then(|functions| functions.get(function.index).copied());
        kept.ok_or(CommandError::err("Function not found"))
    }

    /// Runs a library's code once to see what functions it registers.
    ///
    /// # Errors
    /// It is no Lua, fails, or registers none.
    pub fn examine(&mut self, body: &[u8]) -> Result<Vec<FunctionFacts>, CommandError> {
        let registered = self.load(body)?;
        Ok(registered
            .into_iter()
            .map(|registered| {
                self.lua.forget(registered.function);
                registered.facts
            })
            .collect())
    }

    fn load(&mut self, body: &[u8]) -> Result<Vec<Registered>, CommandError> {
        if !self.lua.load(body, FUNCTION_CHUNK) {
            return Err(self.compile_error(b"Error compiling function: "));
        }
        let code = self.lua.keep();
        let run = self.run_mut();
        (run.abort, run.host, run.load_breaths, run.loading) = (None, None, 0, Some(Vec::new()));
        let load = Load { code, handler: self.handler, globals: self.globals, module: self.loading };
        let lua = self.lua;
        lua.push_function::<Run, _>(0, load_protected);
        lua.push_light((&raw const load).cast_mut().cast());
        let succeeded = lua.protected_call(1, 1, 0) == 0 && lua.kind(-1) == Kind::Nil;
        // SAFETY: the string lies on top of the stack until it has been copied.
        let failure = (!succeeded).then(|| unsafe { lua.bytes(-1) }.unwrap_or(b"ERR unknown error").to_vec());
        lua.set_top(0);
        lua.forget(code);
        reset_hook(lua);
        let run = self.run_mut();
        run.abort = None;
        let registered = run.loading.take().unwrap_or_default();
        let message = match failure {
            Some(text) => [&b"Error registering functions: "[..], &text].concat(),
            None if registered.is_empty() => b"No functions registered".to_vec(),
            None => return Ok(registered),
        };
        registered.iter().for_each(|registered| lua.forget(registered.function));
        Err(CommandError { code: "ERR", message: message.into() })
    }

    fn invoke(&mut self, call: Call<'_>, host: &mut dyn Host, reply: &mut Reply) -> Ended {
        let mark = reply.mark();
        // SAFETY: only the lifetime is taken away; the host is forgotten again before this function ends.
        let host: NonNull<dyn Host> = unsafe { std::mem::transmute(NonNull::from(host)) };
        self.run_mut().begin(host);
        let mut invocation = Invocation { call, reply, mark, ended: Ended::Well };
        let lua = self.lua;
        lua.push_function::<Run, _>(0, invoke_protected);
        lua.push_light((&raw mut invocation).cast());
        if lua.protected_call(1, 0, 0) != 0 {
            invocation.reply.rewind(mark);
            invocation.reply.error(&CommandError::err("not enough memory"));
            invocation.ended = Ended::Failed;
        }
        let mut ended = invocation.ended;
        lua.set_top(0);
        let run = self.run_mut();
        run.host = None;
        if let Some(abort) = run.abort {
            reset_hook(lua);
            ended = Ended::Aborted(abort);
        }
        self.tidy();
        // SAFETY: no function of the state runs any more.
        if let Some(panic) = unsafe { (*self.shared.as_ptr()).panic.take() } {
            std::panic::resume_unwind(panic);
        }
        ended
    }

    /// Gives memory back after a script that took much.
    fn tidy(&mut self) {
        // SAFETY: no function of the state runs any more.
        if unsafe { (*self.shared.as_ptr()).bytes } > SCRIPT_IDLE_BYTES_MAX {
            self.forget_compiled();
            let run = self.run_mut();
            run.buffer = Vec::new();
            run.reply = Reply::default();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: nobody has the state but this engine, and no function of it runs.
        unsafe { self.lua.close() };
        // SAFETY: made from a box, and the state that held it is gone.
        drop(unsafe { Box::from_raw(self.shared.as_ptr()) });
    }
}

/// Fills a new state: leaves the table of globals and the function that describes errors.
fn set_up(lua: Lua) -> Returns {
    sandbox::push_globals(lua);
    lua.push_function::<Run, _>(0, describe_error);
    sandbox::push_module_for_loading(lua);
    Ok(3)
}

/// What is to be run.
#[derive(Clone, Copy)]
struct Call<'a> {
    function: c_int,
    /// It gets its keys and arguments passed; a script finds them in its globals.
    is_function: bool,
    keys: &'a [&'a [u8]],
    arguments: &'a [&'a [u8]],
    /// What errors call it.
    name: &'a [u8],
    handler: c_int,
    globals: c_int,
}

/// A call with the place for its result, reached by a pointer on Lua's stack.
struct Invocation<'a> {
    call: Call<'a>,
    reply: &'a mut Reply,
    mark: Mark,
    ended: Ended,
}

/// All of a script's run that may want memory of Lua: its arguments, the run, and its result.
fn invoke_protected(lua: Lua) -> Returns {
    let invocation: *mut Invocation<'_> = lua.light(1).cast();
    // SAFETY: `Engine::invoke` passes a pointer to its own, which it does not touch meanwhile.
    let invocation = unsafe { &mut *invocation };
    let call = invocation.call;
    lua.get_element(REGISTRY, call.globals);
    for (name, strings) in [("KEYS", call.keys), ("ARGV", call.arguments)] {
        if call.is_function {
            lua.push_nil();
        } else {
            push_strings(lua, strings);
        }
        lua.set_field(-2, name);
    }
    lua.set_top(0);
    lua.get_element(REGISTRY, call.handler);
    lua.get_element(REGISTRY, call.function);
    let mut passed = 0;
    if call.is_function {
        push_strings(lua, call.keys);
        push_strings(lua, call.arguments);
        passed = 2;
    }
    if lua.protected_call(passed, 1, 1) != 0 {
        invocation.ended = Ended::Failed;
        write_failure(lua, call.name, invocation.reply);
        return Ok(0);
    }
    // SAFETY: the run is the engine's; no function of the state runs but this one.
    let protocol = unsafe { run_of(lua).as_ref() }.protocol;
    if write_value(lua, protocol, invocation.reply).is_err() {
        invocation.ended = Ended::Failed;
        invocation.reply.rewind(invocation.mark);
        invocation.reply.error(&CommandError::err("not enough memory"));
    }
    Ok(0)
}

/// A library that is to be loaded, reached by a pointer on Lua's stack.
struct Load {
    code: c_int,
    handler: c_int,
    globals: c_int,
    module: c_int,
}

/// Runs a library's code with another table as `redis`; gives nil, or what went wrong.
fn load_protected(lua: Lua) -> Returns {
    let load: *const Load = lua.light(1).cast();
    // SAFETY: `Engine::load` passes a pointer to its own, which it does not touch meanwhile.
    let load = unsafe { &*load };
    lua.set_top(0);
    lua.get_element(REGISTRY, load.globals);
    lua.get_field(1, "redis");
    for name in ["KEYS", "ARGV"] {
        lua.push_nil();
        lua.set_field(1, name);
    }
    lua.get_element(REGISTRY, load.module);
    lua.set_field(1, "redis");
    lua.get_element(REGISTRY, load.handler);
    lua.get_element(REGISTRY, load.code);
    let failed = lua.protected_call(0, 0, 3) != 0;
    lua.push_value(2);
    lua.set_field(1, "redis");
    if !failed {
        lua.push_nil();
    } else if lua.kind(-1) == Kind::Table {
        lua.get_field(-1, "err");
    }
    Ok(1)
}

fn push_strings(lua: Lua, strings: &[&[u8]]) {
    lua.push_table(strings.len() as c_int, 0);
    for (string, place) in strings.iter().zip(1..) {
        lua.push_bytes(string);
        lua.set_element(-2, place);
    }
}

/// Writes the error on top as the reply.
#[cold]
fn write_failure(lua: Lua, name: &[u8], reply: &mut Reply) {
    let error = lua.top();
    if lua.kind(error) != Kind::Table {
        // The message handler had no memory either.
        // SAFETY: the string lies on the stack until it has been written.
        let text = unsafe { lua.bytes(error) }.unwrap_or(b"execution failure");
        lua.push_bytes(b"ERR Error running script ");
        lua.push_bytes(name);
        lua.push_bytes(b", ");
        lua.push_bytes(text);
        lua.concat(4);
        // SAFETY: the string lies on top of the stack until it has been written.
        return reply.error_line(unsafe { lua.bytes(-1) }.unwrap_or_default());
    }
    lua.get_field(error, "err");
    if lua.kind(-1) != Kind::String {
        lua.push_bytes(b"ERR unknown error");
        lua.replace(-2);
    }
    let text = lua.top();
    lua.get_field(error, "source");
    lua.get_field(error, "line");
    if lua.kind(-2) == Kind::String && lua.kind(-1) != Kind::Nil {
        lua.push_value(text);
        lua.push_bytes(b" script: ");
        lua.push_bytes(name);
        lua.push_bytes(b", on ");
        lua.push_value(text + 1);
        lua.push_bytes(b":");
        lua.push_value(text + 2);
        lua.push_bytes(b".");
        lua.concat(8);
        lua.replace(text);
    }
    // SAFETY: the string lies on the stack until it has been written.
    reply.error_line(unsafe { lua.bytes(text) }.unwrap_or_default());
}

//! What belongs to the script that runs now, where all functions of the state reach it.

use std::ffi::c_int;
use std::ptr::NonNull;

use super::lua::{Lua, Raised, Shared};
use super::{Abort, FunctionFacts, Host, json};
use crate::random::Drand48;
use crate::resp::{Protocol, Reply};

/// Sets fields of the table at an index to functions of a module.
macro_rules! set_functions {
    ($lua:expr, $table:expr, $($name:literal = $function:expr),* $(,)?) => {
        $(
            $lua.push_function::<$crate::script::run::Run, _>(0, $function);
            $lua.set_field($table, $name);
        )*
    };
}
pub(super) use set_functions;

/// The engine's part of a state's [`Shared`].
pub(super) struct Run {
    /// What the script runs on. Set while one runs, and only used by the functions that it calls.
    pub(super) host: Option<NonNull<dyn Host>>,
    /// Why the script must end, once it must.
    pub(super) abort: Option<Abort>,
    /// The main state, of which the coroutines are.
    pub(super) main: Option<Lua>,
    /// The protocol that commands answer in (`redis.setresp`).
    pub(super) protocol: Protocol,
    /// The present command's reply.
    pub(super) reply: Reply,
    /// The present command's arguments, which lie on Lua's stack.
    pub(super) words: Vec<&'static [u8]>,
    /// Where texts are made.
    pub(super) buffer: Vec<u8>,
    /// cjson's settings.
    pub(super) json: json::Settings,
    /// `math.random`'s state.
    pub(super) random: Drand48,
    /// Commands since the script last gave others a moment.
    pub(super) calls: u32,
    /// While a library is loaded: the functions that it has registered so far.
    pub(super) loading: Option<Vec<Registered>>,
    /// Breaths of the library that is loaded.
    pub(super) load_breaths: u32,
}

/// A function that a library has registered.
pub(super) struct Registered {
    /// What it says of itself.
    pub(super) facts: FunctionFacts,
    /// Where the function is kept.
    pub(super) function: c_int,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            host: None,
            abort: None,
            main: None,
            protocol: Protocol::Resp2,
            reply: Reply::default(),
            words: Vec::new(),
            buffer: Vec::new(),
            json: json::Settings::default(),
            random: Drand48::new(0),
            calls: 0,
            loading: None,
            load_breaths: 0,
        }
    }
}

impl Run {
    /// Forgets what the last script left, for the next.
    pub(super) fn begin(&mut self, host: NonNull<dyn Host>) {
        self.host = Some(host);
        self.abort = None;
        self.protocol = Protocol::Resp2;
        self.json = json::Settings::default();
        self.random = Drand48::new(0);
        self.calls = 0;
    }
}

/// The run of the state that a function was called with.
pub(super) fn run_of(lua: Lua) -> NonNull<Run> {
    let shared: NonNull<Shared<Run>> = lua.shared();
    // SAFETY: the pointer is to a `Shared` that lives as long as the state.
    unsafe { NonNull::new_unchecked(&raw mut (*shared.as_ptr()).own) }
}

/// The buffer where texts are made. One function uses it at a time.
pub(super) fn buffer_of(lua: Lua) -> NonNull<Vec<u8>> {
    // SAFETY: a field of what `run_of` gives, which lives as long as the state.
    unsafe { NonNull::new_unchecked(&raw mut (*run_of(lua).as_ptr()).buffer) }
}

/// cjson's settings. One function uses them at a time.
pub(super) fn json_settings(lua: Lua) -> NonNull<json::Settings> {
    // SAFETY: a field of what `run_of` gives, which lives as long as the state.
    unsafe { NonNull::new_unchecked(&raw mut (*run_of(lua).as_ptr()).json) }
}

/// Fails when a text outgrows what a script may have: tables that hold one another several times would make it endless.
pub(super) fn check_output(lua: Lua, buffer: &[u8]) -> Result<(), Raised> {
    let shared: NonNull<Shared<Run>> = lua.shared();
    // SAFETY: the pointer is to a `Shared` that lives as long as the state; the bound never changes.
    let bytes_max = unsafe { (*shared.as_ptr()).bytes_max };
    if buffer.len() <= bytes_max { Ok(()) } else { Err(lua.fail("not enough memory")) }
}

//! The one door to Lua's C interface: small methods over a state, so that the rest of the module writes no `unsafe` but for borrowed strings.
//!
//! # The rules of this door
//!
//! 1. Lua leaves a function that fails by a jump over the frames between. What is on those frames is not dropped. So a function that Lua
//!    calls, and everything it calls in turn, keeps no value with a destructor on its frame while it uses a method here: buffers live in
//!    [`Shared`], texts are pushed as they are made, and an error is a value on Lua's stack and the token [`Raised`].
//! 2. Indexes are Lua's: positive from the function's first argument (beyond the last is nil), negative from the top, where the
//!    value must exist.
//! 3. A function may push a score of values before it asks for room with [`Lua::ensure`].
//! 4. A panic does not cross Lua: [`Lua::push_function`]'s trampoline ends the process's attempt in an orderly way, see [`Shared::panic`].

use std::alloc::Layout;
use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use mlua_sys as ffi;

/// A state, or one of its coroutines, as a function sees it while it runs.
#[derive(Clone, Copy)]
pub(super) struct Lua {
    state: NonNull<ffi::lua_State>,
}

/// The error value lies on top of the stack. What a function gives to have it raised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raised;

/// What a function that Lua calls gives: how many values it has left on the stack for the caller.
pub(super) type Returns = Result<usize, Raised>;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Beyond the last argument, or nil.
    Nil,
    Boolean,
    Number,
    String,
    Table,
    Function,
    /// Userdata, light userdata or a coroutine.
    Other,
}

/// What belongs to a state besides Lua's own memory; `T` is the engine's part.
pub(super) struct Shared<T> {
    /// Bytes that the state has.
    pub(super) bytes: usize,
    /// Bytes that it may have.
    pub(super) bytes_max: usize,
    /// What a function panicked with; the engine goes on with the panic when Lua has returned.
    pub(super) panic: Option<Box<dyn Any + Send>>,
    /// The engine's part.
    pub(super) own: T,
}

/// A table that all of a state's functions can reach, by number.
pub(super) const REGISTRY: c_int = ffi::LUA_REGISTRYINDEX;
/// The table of globals that chunks loaded from now on see.
pub(super) const GLOBALS: c_int = ffi::LUA_GLOBALSINDEX;

/// The index of a C function's upvalue, from 1.
pub(super) const fn upvalue(number: c_int) -> c_int {
    ffi::lua_upvalueindex(number)
}

/// Lua's allocator: Rust's, so that the memory is counted with all other, with a bound.
unsafe extern "C" fn allocate<T>(shared: *mut c_void, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    const ALIGNMENT: usize = 16;
    // SAFETY: the state was made with a pointer to its `Shared`, which outlives it; nobody else looks at these two fields meanwhile.
    let (bytes, bytes_max) = unsafe {
        let shared = shared.cast::<Shared<T>>();
        (&raw mut (*shared).bytes, (*shared).bytes_max)
    };
    let old = if block.is_null() { 0 } else { old };
    // SAFETY: see above.
    let held = unsafe { *bytes };
    if new > old && held.saturating_add(new - old) > bytes_max {
        return std::ptr::null_mut();
    }
    let layout = |size: usize| Layout::from_size_align(size, ALIGNMENT);
    let (Ok(old_layout), Ok(_)) = (layout(old), layout(new)) else { return std::ptr::null_mut() };
    let given = match (old, new) {
        (0, 0) => std::ptr::null_mut(),
        // SAFETY: `new` is not zero.
        (0, _) => unsafe { std::alloc::alloc(Layout::from_size_align_unchecked(new, ALIGNMENT)) },
        (_, 0) => {
            // SAFETY: Lua gives back what it got here, with the size it asked for.
            unsafe { std::alloc::dealloc(block.cast(), old_layout) };
            std::ptr::null_mut()
        }
        // SAFETY: Lua gives what it got here, with the size it asked for; `new` is not zero and was checked to make a layout.
        _ => unsafe { std::alloc::realloc(block.cast(), old_layout, new) },
    };
    if new == 0 || !given.is_null() {
        // SAFETY: see above.
        unsafe { *bytes = held + new - old };
    }
    given.cast()
}

/// Calls a function that is its type: see [`Lua::push_function`].
unsafe extern "C-unwind" fn trampoline<T: 'static, F: Fn(Lua) -> Returns + Copy>(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: Lua calls functions with a state.
    let lua = Lua { state: unsafe { NonNull::new_unchecked(state) } };
    // SAFETY: `push_function` has checked that `F` has no size, and had a value of it.
    let function: F = unsafe { NonNull::<F>::dangling().read() };
    match catch_unwind(AssertUnwindSafe(|| function(lua))) {
        Ok(Ok(count)) => return count as c_int,
        Ok(Err(Raised)) => {}
        Err(panic) => {
            // SAFETY: the engine whose functions these are made the state with a `Shared<T>`, and borrows it nowhere while Lua runs.
            unsafe { (*lua.shared::<T>().as_ptr()).panic = Some(panic) };
            lua.push_bytes(b"a function panicked");
        }
    }
    // SAFETY: the error value is on top; no destructor is left on this frame.
    unsafe { ffi::lua_error(state) }
}

/// Hands a piece of source to Lua's parser, a blank first where the source would be taken for bytecode.
struct Pieces<'a> {
    blank: bool,
    rest: &'a [u8],
}

unsafe extern "C-unwind" fn next_piece(
    _state: *mut ffi::lua_State,
    pieces: *mut c_void,
    size: *mut usize,
) -> *const c_char {
    // SAFETY: `load` passes a pointer to its `Pieces`, which it does not touch meanwhile.
    let pieces = unsafe { &mut *pieces.cast::<Pieces<'_>>() };
    let piece: &[u8] = if std::mem::take(&mut pieces.blank) { b" " } else { std::mem::take(&mut pieces.rest) };
    // SAFETY: Lua passes the place for the size.
    unsafe { *size = piece.len() };
    piece.as_ptr().cast()
}

impl Lua {
    /// A new state; it must be closed before `shared` goes.
    ///
    /// `None` where there is no memory for it.
    pub(super) fn open<T>(shared: &mut Shared<T>) -> Option<Self> {
        let shared: *mut Shared<T> = shared;
        // SAFETY: the allocator obeys Lua's contract, and its argument outlives the state by this function's.
        let state = unsafe { ffi::lua_newstate(allocate::<T>, shared.cast()) };
        NonNull::new(state).map(|state| Self { state })
    }

    /// Ends the state.
    ///
    /// # Safety
    /// It is the main state and used no more; no function of it runs.
    pub(super) unsafe fn close(self) {
        // SAFETY: by this function's contract.
        unsafe { ffi::lua_close(self.raw()) }
    }

    #[inline]
    fn raw(self) -> *mut ffi::lua_State {
        self.state.as_ptr()
    }

    /// What the state was opened with.
    #[inline]
    pub(super) fn shared<T>(self) -> NonNull<Shared<T>> {
        let mut shared = std::ptr::null_mut();
        // SAFETY: the state is open while one holds a `Lua`.
        unsafe { ffi::lua_getallocf(self.raw(), &mut shared) };
        // SAFETY: `open` gave a pointer to a `Shared`.
        unsafe { NonNull::new_unchecked(shared.cast()) }
    }
}

/// Methods that do one thing of Lua's interface each.
macro_rules! calls {
    ($( $(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = |$raw:ident| $body:expr; )*) => {
        impl Lua {
            $(
                $(#[$doc])*
                #[inline]
                pub(super) fn $name(self, $($argument: $type),*) $(-> $result)? {
                    let $raw = self.raw();
                    // SAFETY: the state is open while one holds a `Lua`; indexes and room are as the rules of this door say.
                    unsafe { $body }
                }
            )*
        }
    };
}

calls! {
    /// How many values the running function has on the stack.
    fn top() -> c_int = |raw| ffi::lua_gettop(raw);
    /// Cuts or fills the stack to so many values.
    fn set_top(top: c_int) = |raw| ffi::lua_settop(raw, top);
    /// Drops the topmost values.
    fn pop(count: c_int) = |raw| ffi::lua_pop(raw, count);
    /// Pushes the value at an index once more.
    fn push_value(index: c_int) = |raw| ffi::lua_pushvalue(raw, index);
    /// Moves the topmost value down to an index.
    fn insert(index: c_int) = |raw| ffi::lua_insert(raw, index);
    /// Takes the value at an index out.
    fn remove(index: c_int) = |raw| ffi::lua_remove(raw, index);
    /// Pops the topmost value into an index.
    fn replace(index: c_int) = |raw| ffi::lua_replace(raw, index);
    /// Asks for room for so many values; false where there is none.
    fn ensure(count: c_int) -> bool = |raw| ffi::lua_checkstack(raw, count) != 0;
    /// Whether the value is neither nil nor false.
    fn truth(index: c_int) -> bool = |raw| ffi::lua_toboolean(raw, index) != 0;
    /// The number at an index, or the number that the string there reads as; else 0.
    fn number(index: c_int) -> f64 = |raw| ffi::lua_tonumber(raw, index);
    /// Whether the value is a number or a string that reads as one.
    fn is_numeric(index: c_int) -> bool = |raw| ffi::lua_isnumber(raw, index) != 0;
    /// The length of a string or table.
    fn length(index: c_int) -> usize = |raw| ffi::lua_objlen(raw, index);
    /// The pointer of a light userdata.
    fn light(index: c_int) -> *mut c_void = |raw| ffi::lua_touserdata(raw, index);
    /// Pushes nil.
    fn push_nil() = |raw| ffi::lua_pushnil(raw);
    /// Pushes a number.
    fn push_number(number: f64) = |raw| ffi::lua_pushnumber(raw, number);
    /// Pushes a truth value.
    fn push_boolean(truth: bool) = |raw| ffi::lua_pushboolean(raw, c_int::from(truth));
    /// Pushes a string.
    fn push_bytes(bytes: &[u8]) = |raw| ffi::lua_pushlstring_(raw, bytes.as_ptr().cast(), bytes.len());
    /// Pushes a bare pointer.
    fn push_light(pointer: *mut c_void) = |raw| ffi::lua_pushlightuserdata(raw, pointer);
    /// Pushes a new table with room for so many elements and fields.
    fn push_table(elements: c_int, fields: c_int) = |raw| ffi::lua_createtable(raw, elements, fields);
    /// Replaces the key on top by its value in the table at `index`, without asking its metatable.
    fn get(index: c_int) = |raw| ffi::lua_rawget_(raw, index);
    /// Pushes an element, without asking the table's metatable.
    fn get_element(index: c_int, element: c_int) = |raw| ffi::lua_rawgeti_(raw, index, element);
    /// Pops a value and below it its key into the table at `index`, without asking its metatable.
    fn set(index: c_int) = |raw| ffi::lua_rawset(raw, index);
    /// Pops a value into an element, without asking the table's metatable.
    fn set_element(index: c_int, element: c_int) = |raw| ffi::lua_rawseti_(raw, index, element);
    /// Pushes the metatable of a value; false and nothing where it has none.
    fn push_metatable(index: c_int) -> bool = |raw| ffi::lua_getmetatable(raw, index) != 0;
    /// Pops a table and makes it the metatable of the value at `index`.
    fn set_metatable(index: c_int) = |raw| { ffi::lua_setmetatable(raw, index); };
    /// Replaces a key on top by the next key of the table at `index` and pushes its value; pops it and is false at the end. Raises an error for
    /// a key that the table does not have.
    fn next(index: c_int) -> bool = |raw| ffi::lua_next(raw, index) != 0;
    /// Joins the topmost values to a string.
    fn concat(count: c_int) = |raw| ffi::lua_concat(raw, count);
    /// Calls the function below `arguments` values; raises what it raises.
    fn call(arguments: c_int, results: c_int) = |raw| ffi::lua_call(raw, arguments, results);
    /// As `call`, but gives 0 or leaves the error value instead; the function at `handler`, if not 0, makes it.
    fn protected_call(arguments: c_int, results: c_int, handler: c_int) -> c_int =
        |raw| ffi::lua_pcall(raw, arguments, results, handler);
    /// Pops a value and keeps it under the number given.
    fn keep() -> c_int = |raw| ffi::luaL_ref(raw, REGISTRY);
    /// Forgets what was kept under a number.
    fn forget(number: c_int) = |raw| ffi::luaL_unref(raw, REGISTRY, number);
    /// Bytes in use and not yet collected, in KiB.
    fn kibibytes() -> c_int = |raw| ffi::lua_gc(raw, ffi::LUA_GCCOUNT, 0);
    /// Collects all garbage.
    fn collect() = |raw| { ffi::lua_gc(raw, ffi::LUA_GCCOLLECT, 0); };
    /// Collects some garbage; whether a cycle has ended.
    fn collect_step(size: c_int) -> bool = |raw| ffi::lua_gc(raw, ffi::LUA_GCSTEP, size) != 0;
    /// Pushes the running function's place in the source, `chunk:line: `.
    fn push_where(level: c_int) = |raw| ffi::luaL_where(raw, level);
    /// Raises `bad argument #n to 'f' (what)`.
    fn bad_argument(number: c_int, what: &'static CStr) = |raw| { ffi::luaL_argerror(raw, number, what.as_ptr()); };
    /// The number that must be an argument; raises an error for another value.
    fn check_number(argument: c_int) -> f64 = |raw| ffi::luaL_checknumber(raw, argument);
    /// Raises an error where the argument is missing.
    fn check_any(argument: c_int) = |raw| ffi::luaL_checkany(raw, argument);
    /// Raises an error unless the argument is a table.
    fn check_table(argument: c_int) = |raw| ffi::luaL_checktype(raw, argument, ffi::LUA_TTABLE);
}

impl Lua {
    /// The type of the value at an index.
    #[inline]
    pub(super) fn kind(self, index: c_int) -> Kind {
        // SAFETY: the state is open while one holds a `Lua`.
        match unsafe { ffi::lua_type(self.raw(), index) } {
            ffi::LUA_TNONE | ffi::LUA_TNIL => Kind::Nil,
            ffi::LUA_TBOOLEAN => Kind::Boolean,
            ffi::LUA_TNUMBER => Kind::Number,
            ffi::LUA_TSTRING => Kind::String,
            ffi::LUA_TTABLE => Kind::Table,
            ffi::LUA_TFUNCTION => Kind::Function,
            _ => Kind::Other,
        }
    }

    /// Whether a null pointer as light userdata, which cjson uses for null.
    pub(super) fn is_null_pointer(self, index: c_int) -> bool {
        // SAFETY: the state is open while one holds a `Lua`.
        unsafe { ffi::lua_islightuserdata(self.raw(), index) != 0 && ffi::lua_touserdata(self.raw(), index).is_null() }
    }

    /// The name of the value's type.
    pub(super) fn kind_name(self, index: c_int) -> &'static str {
        // SAFETY: the state is open while one holds a `Lua`; Lua gives names for all its types, which are constants of it.
        let name = unsafe { CStr::from_ptr(ffi::lua_typename(self.raw(), ffi::lua_type(self.raw(), index))) };
        name.to_str().unwrap_or("value")
    }

    /// The string at an index; a number there becomes its text (do not do that to a key under traversal). `None` for other values.
    ///
    /// # Safety
    /// The string stays on the stack, or in a table that does, for as long as the slice is used.
    #[inline]
    pub(super) unsafe fn bytes<'s>(self, index: c_int) -> Option<&'s [u8]> {
        let mut length = 0;
        // SAFETY: the state is open while one holds a `Lua`.
        let start = unsafe { ffi::lua_tolstring(self.raw(), index, &mut length) };
        // SAFETY: Lua gave the place of so many bytes, which stay as long as the string.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast(), length) })
    }

    /// The string that must be an argument; raises an error for another value.
    ///
    /// # Safety
    /// The string stays on the stack, or in a table that does, for as long as the slice is used.
    pub(super) unsafe fn check_bytes<'s>(self, argument: c_int) -> &'s [u8] {
        let mut length = 0;
        // SAFETY: the state is open while one holds a `Lua`.
        let start = unsafe { ffi::luaL_checklstring(self.raw(), argument, &mut length) };
        // SAFETY: Lua gave the place of so many bytes, which stay as long as the string.
        unsafe { std::slice::from_raw_parts(start.cast(), length) }
    }

    /// The string that must be an argument, up to its first zero byte; raises an error for another value.
    ///
    /// # Safety
    /// The string stays on the stack, or in a table that does, for as long as the text is used.
    pub(super) unsafe fn check_c_text<'s>(self, argument: c_int) -> &'s CStr {
        // SAFETY: the state is open while one holds a `Lua`.
        let start = unsafe { ffi::luaL_checklstring(self.raw(), argument, std::ptr::null_mut()) };
        // SAFETY: Lua ends every string with a zero byte; it stays as long as the string.
        unsafe { CStr::from_ptr(start) }
    }

    /// Pushes `function`, a plain function or a closure that captures nothing, with the topmost `upvalues` values as its own. `T` is what the
    /// state was opened with.
    pub(super) fn push_function<T: 'static, F: Fn(Lua) -> Returns + Copy>(self, upvalues: c_int, _function: F) {
        const { assert!(size_of::<F>() == 0) };
        // SAFETY: the state is open; `trampoline` may take an `F` from nothing: it has no size, and we hold one.
        unsafe { ffi::lua_pushcclosure(self.raw(), trampoline::<T, F>, upvalues) }
    }

    /// Pushes one of Lua's own libraries' opening functions, runs it, and leaves what it leaves.
    pub(super) fn open_library(self, library: Library) {
        let open = match library {
            Library::Base => ffi::luaopen_base,
            Library::Table => ffi::luaopen_table,
            Library::String => ffi::luaopen_string,
            Library::Math => ffi::luaopen_math,
            Library::Os => ffi::luaopen_os,
        };
        // SAFETY: the state is open while one holds a `Lua`.
        unsafe { ffi::lua_pushcclosure(self.raw(), open, 0) };
        self.call(0, 0);
    }

    /// The C function at an index, to be called by [`call_own`](Self::call_own).
    pub(super) fn own_function(self, index: c_int) -> Option<OwnFunction> {
        // SAFETY: the state is open while one holds a `Lua`.
        unsafe { ffi::lua_tocfunction(self.raw(), index) }.map(OwnFunction)
    }

    /// Runs one of Lua's own functions, which has no upvalues, in the place of the running function: on its arguments, and under its name in errors.
    #[inline]
    pub(super) fn call_own(self, function: OwnFunction) -> Returns {
        // SAFETY: the state is open while one holds a `Lua`, and the frame is a C function's, as the function wants it.
        Ok(unsafe { function.0(self.raw()) } as usize)
    }

    /// Pushes what Lua compiles `source` to; the error value where it is none, and false. Bytecode is never loaded.
    pub(super) fn load(self, source: &[u8], chunk_name: &CStr) -> bool {
        let mut pieces = Pieces { blank: source.first() == ffi::LUA_SIGNATURE.first(), rest: source };
        // SAFETY: the state is open while one holds a `Lua`; `next_piece` is given what it expects, which lives until the call ends.
        let status = unsafe { ffi::lua_load(self.raw(), next_piece, (&raw mut pieces).cast(), chunk_name.as_ptr()) };
        status == 0
    }

    /// Calls `function` after every so many instructions of this state, and of coroutines made by it from now on.
    pub(super) fn set_hook<T: 'static, F: Fn(Lua) -> Result<(), Raised> + Copy>(
        self,
        instructions: c_int,
        _function: F,
    ) {
        const { assert!(size_of::<F>() == 0) };
        unsafe extern "C-unwind" fn hook<T: 'static, F: Fn(Lua) -> Result<(), Raised> + Copy>(
            state: *mut ffi::lua_State,
            _activation: *mut ffi::lua_Debug,
        ) {
            // SAFETY: Lua calls hooks with a state.
            let lua = Lua { state: unsafe { NonNull::new_unchecked(state) } };
            // SAFETY: `set_hook` has checked that `F` has no size, and had a value of it.
            let function: F = unsafe { NonNull::<F>::dangling().read() };
            match catch_unwind(AssertUnwindSafe(|| function(lua))) {
                Ok(Ok(())) => return,
                Ok(Err(Raised)) => {}
                Err(panic) => {
                    // SAFETY: as in `trampoline`.
                    unsafe { (*lua.shared::<T>().as_ptr()).panic = Some(panic) };
                    lua.push_bytes(b"a function panicked");
                }
            }
            // SAFETY: the error value is on top; no destructor is left on this frame.
            unsafe { ffi::lua_error(state) }
        }
        // SAFETY: the state is open while one holds a `Lua`.
        unsafe { ffi::lua_sethook(self.raw(), Some(hook::<T, F>), ffi::LUA_MASKCOUNT, instructions) };
    }

    /// Pushes the source and the present line of the running function at `level` (0 is the present one), and gives whether it is a
    /// C function; `None` and nothing pushed beyond the last level.
    pub(super) fn push_place(self, level: c_int) -> Option<bool> {
        let mut activation = std::mem::MaybeUninit::<ffi::lua_Debug>::zeroed();
        // SAFETY: the state is open while one holds a `Lua`.
        if unsafe { ffi::lua_getstack(self.raw(), level, activation.as_mut_ptr()) } == 0 {
            return None;
        }
        // SAFETY: `lua_getstack` has filled what `lua_getinfo` wants to know.
        unsafe { ffi::lua_getinfo(self.raw(), c"Sl".as_ptr(), activation.as_mut_ptr()) };
        // SAFETY: made of zeros, which are a value of every field, and filled since.
        let activation = unsafe { activation.assume_init() };
        // SAFETY: Lua gives the source and the kind as texts ended by zero, the kind a constant, the source alive as long as its function.
        let (source, what) = unsafe { (CStr::from_ptr(activation.source), CStr::from_ptr(activation.what)) };
        self.push_bytes(source.to_bytes());
        self.push_number(activation.currentline.into());
        Some(what == c"C")
    }

    /// Sets a field of the table at `index` to the value on top, and pops it.
    pub(super) fn set_field(self, index: c_int, name: &str) {
        let index = self.absolute(index);
        self.push_bytes(name.as_bytes());
        self.insert(-2);
        self.set(index);
    }

    /// Pushes a field of the table at `index`, without asking its metatable.
    #[inline]
    pub(super) fn get_field(self, index: c_int, name: &str) {
        let index = self.absolute(index);
        self.push_bytes(name.as_bytes());
        self.get(index);
    }

    /// The index that stays right when values are pushed.
    #[inline]
    pub(super) fn absolute(self, index: c_int) -> c_int {
        if index < 0 && index > REGISTRY { self.top() + index + 1 } else { index }
    }

    /// Pushes an error with the place of the function that called the running one, as Lua's own functions do.
    #[cold]
    pub(super) fn fail(self, text: &str) -> Raised {
        self.fail_parts(&[text])
    }

    /// As [`fail`](Self::fail), with a text in pieces.
    #[cold]
    pub(super) fn fail_parts(self, parts: &[&str]) -> Raised {
        // What the function had on the stack is of no use any more, and may have left no room.
        self.set_top(0);
        self.push_where(1);
        for part in parts {
            self.push_bytes(part.as_bytes());
        }
        self.concat(parts.len() as c_int + 1);
        Raised
    }

    /// Raises `bad argument #n to 'f' (what)`, `what` in pieces and up to its first zero byte.
    #[cold]
    pub(super) fn bad_argument_bytes(self, number: c_int, what: &[&[u8]]) -> Raised {
        for part in what {
            self.push_bytes(part);
        }
        self.concat(what.len() as c_int);
        // SAFETY: the state is open while one holds a `Lua`; the string on top of the stack stays there, and ends with a zero as Lua's do.
        unsafe { ffi::luaL_argerror(self.raw(), number, ffi::lua_tolstring(self.raw(), -1, std::ptr::null_mut())) };
        Raised
    }
}

/// One of Lua's own functions.
#[derive(Clone, Copy)]
pub(super) struct OwnFunction(ffi::lua_CFunction);

/// Lua's own libraries that the sandbox takes from.
#[derive(Clone, Copy)]
pub(super) enum Library {
    Base,
    Table,
    String,
    Math,
    Os,
}

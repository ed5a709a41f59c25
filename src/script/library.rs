//! Libraries of functions (FUNCTION LOAD), as all workers know them.
//!
//! A worker loads a library into its own Lua state when one of its functions is first called there. So what a library keeps between calls, in variables
//! of its own, is one worker's, and a run that lost a race has changed it too: it is good for what can be computed again, and for nothing else.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::source::{FLAGS, Header};
use crate::command::error::CommandError;
use crate::sync::{Arc, AtomicU64, Ordering};

/// What the first line of a library says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The library's name.
    pub name: String,
    /// Where the Lua begins: at the first line's end, so that lines are counted right.
    pub body_at: usize,
}

/// A function of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionFacts {
    /// Its name.
    pub name: String,
    /// What it is for, if somebody has said so.
    pub description: Option<Vec<u8>>,
    /// What it declares of itself.
    pub header: Header,
}

impl FunctionFacts {
    /// The flags that it has been given.
    pub fn flags(&self) -> Vec<&'static str> {
        let mut header = self.header.clone();
        FLAGS.iter().filter(|(_, place)| *place(&mut header)).map(|(name, _)| *name).collect()
    }
}

/// A library.
#[derive(Debug)]
pub struct Library {
    /// Unlike every other's, also of the same name.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its source, with the first line.
    pub code: Box<[u8]>,
    /// Where the Lua begins.
    pub body_at: usize,
    /// Its functions.
    pub functions: Vec<FunctionFacts>,
}

impl Library {
    /// The Lua.
    pub fn body(&self) -> &[u8] {
        &self.code[self.body_at..]
    }
}

/// One function, ready to be called.
#[derive(Clone, Debug)]
pub struct Function {
    /// Where it belongs.
    pub library: Arc<Library>,
    /// Its place among the library's functions.
    pub index: usize,
}

impl Function {
    /// What is known of it.
    pub fn facts(&self) -> &FunctionFacts {
        &self.library.functions[self.index]
    }
}

/// Whether a library or function may be called so: letters, digits and underscores.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// What is said of another name.
pub const BAD_NAME: &str =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// Reads a library's first line, `#!lua name=...`.
///
/// # Errors
/// It is not as it should be.
pub fn declaration(code: &[u8]) -> Result<Declaration, CommandError> {
    let missing = CommandError::err("Missing library metadata");
    let line = code.strip_prefix(b"#!").ok_or(missing)?;
    let end = memchr::memchr(b'\n', line).ok_or(CommandError::err("Invalid library metadata"))?;
    let mut words = line[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    let mut name = None;
    for word in words {
        let Some(value) = word.strip_prefix(b"name=") else {
            return Err(CommandError::quoting("Invalid metadata value given: ", word, ""));
        };
        if name.replace(value).is_some() {
            return Err(CommandError::err("Invalid metadata value, name argument was given multiple times"));
        }
    }
    let name = name.ok_or(CommandError::err("Library name was not given"))?;
    if !is_name(name) {
        return Err(CommandError::err(BAD_NAME));
    }
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(CommandError::quoting("Engine '", engine, "' not found"));
    }
    Ok(Declaration { name: String::from_utf8_lossy(name).into_owned(), body_at: 2 + end })
}

/// What to do where a library of the name is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collision {
    /// Nothing is loaded.
    Refuse,
    /// The new one takes its place.
    Replace,
}

/// All libraries.
#[derive(Default)]
pub struct Libraries {
    by_function: flurry::HashMap<String, Arc<Function>, ahash::RandomState>,
    /// Held only while libraries come, go or are listed, never while a function runs.
    by_name: Mutex<BTreeMap<String, Arc<Library>>>,
    next_id: AtomicU64,
}

impl Libraries {
    fn names(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Library>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no library has yet.
    pub fn new_id(&self) -> u64 {
        // Relaxed: only uniqueness counts.
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The function of this name.
    #[inline]
    pub fn function(&self, name: &[u8]) -> Option<Arc<Function>> {
        self.by_function.pin().get(std::str::from_utf8(name).ok()?).cloned()
    }

    /// All libraries in the order of their names.
    pub fn all(&self) -> Vec<Arc<Library>> {
        self.names().values().cloned().collect()
    }

    /// Adds libraries, all or none of them; with `flush`, in the place of all that there were.
    ///
    /// # Errors
    /// A library of the name is there, or another library has a function of the same name.
    pub fn add(&self, added: Vec<Library>, collision: Collision, flush: bool) -> Result<(), CommandError> {
        let mut names = self.names();
        let mut after = if flush { BTreeMap::new() } else { names.clone() };
        for library in added {
            if after.contains_key(&library.name) && collision == Collision::Refuse {
                return Err(CommandError::owned(format!("Library '{}' already exists", library.name)));
            }
            after.remove(&library.name);
            for function in &library.functions {
                let taken = |other: &Arc<Library>| other.functions.iter().any(|known| known.name == function.name);
                if after.values().any(taken) {
                    return Err(CommandError::owned(format!("Function {} already exists", function.name)));
                }
            }
            after.insert(library.name.clone(), Arc::new(library));
        }
        self.publish(&after);
        *names = after;
        Ok(())
    }

    /// Removes a library; whether there was one.
    pub fn remove(&self, name: &[u8]) -> bool {
        let mut names = self.names();
        let removed = std::str::from_utf8(name).ok().and_then(|name| names.remove(name)).is_some();
        self.publish(&names);
        removed
    }

    /// Removes all libraries.
    pub fn flush(&self) {
        let mut names = self.names();
        names.clear();
        self.publish(&names);
    }

    /// Makes the functions of these libraries, and no others, known by name.
    fn publish(&self, libraries: &BTreeMap<String, Arc<Library>>) {
        let known = self.by_function.pin();
        let is_kept = |name: &String| {
            libraries.values().any(|library| library.functions.iter().any(|function| function.name == *name))
        };
        known.retain(|name, _| is_kept(name));
        for library in libraries.values() {
            for (index, facts) in library.functions.iter().enumerate() {
                known.insert(facts.name.clone(), Arc::new(Function { library: library.clone(), index }));
            }
        }
    }
}

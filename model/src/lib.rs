//! A naive model of the keyspace and its commands: ordered maps and vectors, one thread, time passed in.
//!
//! It is written once and shared: the fuzz target `commands` and the property tests run the same generated [`Step`]s through it and through
//! Caswell and compare replies byte by byte. It shares no code with Caswell, and is itself checked against a real server
//! (`tests/oracle.rs`).
//!
//! Left out is what has no single right reply (SCAN, RANDOMKEY, the order of KEYS, idle times) and what is a page of arithmetic of its
//! own (INCRBYFLOAT, LCS).

mod arguments;
mod generate;
mod keys;
mod lists;
mod strings;
mod value;

pub use generate::{QUICK_SPANS_MS, SLOW_SPANS_MS, STEP_BYTES, Step, noise, steps};
pub use value::Value;

use arguments::Words;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
}

/// A key's content and its deadline in milliseconds of Unix time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub content: Content,
    pub expiry_ms: Option<i64>,
}

/// A command's reply, or its error line without the leading minus.
pub(crate) type Answer = Result<Value, String>;

pub(crate) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

/// The whole keyspace of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Model {
    databases: Vec<BTreeMap<Vec<u8>, Entry>>,
}

/// What one command sees: the keyspace, its client's database, and the time.
pub(crate) struct Context<'m> {
    pub databases: &'m mut Vec<BTreeMap<Vec<u8>, Entry>>,
    pub database: usize,
    pub now_ms: i64,
}

type Command = fn(&mut Context<'_>, Words<'_>) -> Answer;

/// Name, arity (with the name; negative: at least that many), function.
const COMMANDS: &[&[(&str, i32, Command)]] = &[strings::COMMANDS, keys::COMMANDS, lists::COMMANDS];

impl Model {
    /// An empty keyspace.
    pub fn new(databases: usize) -> Self {
        Self { databases: vec![BTreeMap::new(); databases] }
    }

    /// Runs one command of a client in `database` at the time `now_ms`.
    pub fn call(&mut self, now_ms: i64, database: usize, words: &[Vec<u8>]) -> Value {
        // A key is there up to and at its deadline.
        for keys in &mut self.databases {
            keys.retain(|_, entry| entry.expiry_ms.is_none_or(|deadline| now_ms <= deadline));
        }
        let name = String::from_utf8_lossy(&words[0]).to_lowercase();
        let Some((name, arity, command)) = COMMANDS.iter().flat_map(|family| family.iter()).find(|row| row.0 == name)
        else {
            panic!("the model does not know {name}");
        };
        let length = words.len() as i32;
        let mut context = Context { databases: &mut self.databases, database, now_ms };
        let fits = if *arity < 0 { length >= -arity } else { length == *arity };
        let answer = if fits { command(&mut context, Words { name, words }) } else { Err(wrong_arity(name)) };
        answer.unwrap_or_else(Value::Error)
    }

    /// The names of all commands that the model knows, in lower case. A generated step's first byte, modulo their number, picks one.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COMMANDS.iter().flat_map(|family| family.iter().map(|row| row.0))
    }

    /// All keys of a database, in order.
    pub fn keys(&self, database: usize) -> impl Iterator<Item = &[u8]> {
        self.databases[database].keys().map(Vec::as_slice)
    }
}

pub(crate) fn wrong_arity(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

impl Context<'_> {
    pub fn keys(&mut self) -> &mut BTreeMap<Vec<u8>, Entry> {
        &mut self.databases[self.database]
    }

    pub fn get(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.keys().get_mut(key)
    }

    /// The string at a key.
    pub fn string(&mut self, key: &[u8]) -> Result<Option<&mut Vec<u8>>, String> {
        match self.get(key).map(|entry| &mut entry.content) {
            None => Ok(None),
            Some(Content::String(text)) => Ok(Some(text)),
            Some(Content::List(_)) => Err(WRONG_TYPE.into()),
        }
    }

    /// The list at a key.
    pub fn list(&mut self, key: &[u8]) -> Result<Option<&mut Vec<Vec<u8>>>, String> {
        match self.get(key).map(|entry| &mut entry.content) {
            None => Ok(None),
            Some(Content::List(elements)) => Ok(Some(elements)),
            Some(Content::String(_)) => Err(WRONG_TYPE.into()),
        }
    }

    /// The list at a key, made if there is nothing.
    pub fn list_or_new(&mut self, key: &[u8]) -> Result<&mut Vec<Vec<u8>>, String> {
        let entry = match self.keys().entry(key.to_vec()) {
            MapEntry::Occupied(entry) => entry.into_mut(),
            MapEntry::Vacant(entry) => entry.insert(Entry { content: Content::List(Vec::new()), expiry_ms: None }),
        };
        match &mut entry.content {
            Content::List(elements) => Ok(elements),
            Content::String(_) => Err(WRONG_TYPE.into()),
        }
    }

    /// Deletes a list that has become empty.
    pub fn drop_if_empty(&mut self, key: &[u8]) {
        if self.get(key).is_some_and(|entry| entry.content == Content::List(Vec::new())) {
            self.keys().remove(key);
        }
    }

    /// Sets a string, whatever was there.
    pub fn set(&mut self, key: &[u8], text: &[u8], expiry_ms: Option<i64>) {
        self.keys().insert(key.to_vec(), Entry { content: Content::String(text.to_vec()), expiry_ms });
    }
}

//! A script's source with what its first line says of it, and all scripts that the server knows.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::Digest;
use crate::command::error::CommandError;
use crate::limits::EVALUATED_SCRIPTS_MAX;
use crate::sync::Arc;

/// What a script declares of itself in a first line like `#!lua flags=no-writes`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Header {
    /// Whether there is such a line. Without one, what the script does decides step by step.
    pub is_there: bool,
    /// It writes nothing.
    pub no_writes: bool,
    /// It may run though memory is full.
    pub allow_oom: bool,
    /// It may run on a replica with stale data.
    pub allow_stale: bool,
    /// It does not run in a cluster.
    pub no_cluster: bool,
    /// It may use keys of several slots.
    pub allow_cross_slot_keys: bool,
}

/// Where a header says whether a flag is set.
pub(super) type HeaderField = fn(&mut Header) -> &mut bool;

/// The flags of scripts and functions, as users write them.
pub(super) const FLAGS: &[(&str, HeaderField)] = &[
    ("no-writes", |header| &mut header.no_writes),
    ("allow-oom", |header| &mut header.allow_oom),
    ("allow-stale", |header| &mut header.allow_stale),
    ("no-cluster", |header| &mut header.no_cluster),
    ("allow-cross-slot-keys", |header| &mut header.allow_cross_slot_keys),
];

impl Header {
    /// Sets the flag of this name; whether there is one.
    pub(super) fn set(&mut self, flag: &[u8]) -> bool {
        let found = FLAGS.iter().find(|(name, _)| name.as_bytes() == flag);
        found.map(|(_, place)| *place(self) = true).is_some()
    }
}

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its name.
    pub digest: Digest,
    /// What it declares.
    pub header: Header,
    source: Box<[u8]>,
    /// Where the Lua begins.
    body_at: usize,
}

impl Script {
    /// A script of this source.
    ///
    /// # Errors
    /// Its first line is no proper declaration.
    pub fn new(source: &[u8]) -> Result<Self, CommandError> {
        Self::with_digest(source, Digest::of(source))
    }

    /// As [`new`](Self::new), with the source's digest at hand.
    ///
    /// # Errors
    /// Its first line is no proper declaration.
    pub fn with_digest(source: &[u8], digest: Digest) -> Result<Self, CommandError> {
        let (header, body_at) = read_header(source)?;
        Ok(Self { digest, header, source: source.into(), body_at })
    }

    /// All of it.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// The Lua; it begins with the first line's end, so that lines are counted right.
    pub fn body(&self) -> &[u8] {
        &self.source[self.body_at..]
    }
}

/// What the first line declares, and where it ends.
fn read_header(source: &[u8]) -> Result<(Header, usize), CommandError> {
    let mut header = Header::default();
    if !source.starts_with(b"#!") {
        return Ok((header, 0));
    }
    let end = memchr::memchr(b'\n', source).ok_or(CommandError::err("Invalid script shebang"))?;
    header.is_there = true;
    let line = &source[..end];
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        return Err(CommandError::quoting("Unexpected engine in script shebang: ", engine, ""));
    }
    for word in words {
        let Some(flags) = word.strip_prefix(b"flags=") else {
            return Err(CommandError::quoting("Unknown lua shebang option: ", word, ""));
        };
        for flag in flags.split(|byte| *byte == b',').filter(|flag| !flag.is_empty()) {
            if !header.set(flag) {
                return Err(CommandError::quoting("Unexpected flag in script shebang: ", flag, ""));
            }
        }
    }
    Ok((header, end))
}

/// All scripts that the server knows by digest.
///
/// Those that SCRIPT LOAD brings stay until SCRIPT FLUSH. Those that EVAL brings are forgotten, the oldest first, when there are more than
/// [`EVALUATED_SCRIPTS_MAX`] of them: a program that pastes values into its scripts does not fill the memory with them.
#[derive(Default)]
pub struct Scripts {
    known: flurry::HashMap<Digest, Arc<Script>, ahash::RandomState>,
    /// Scripts that only EVAL has brought, the oldest first. Held only to add and remove, never while a script runs.
    evaluated: Mutex<VecDeque<Digest>>,
}

impl Scripts {
    /// The script of this name.
    #[inline]
    pub fn get(&self, digest: &Digest) -> Option<Arc<Script>> {
        self.known.pin().get(digest).cloned()
    }

    /// Whether there is a script of this name.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.known.pin().contains_key(digest)
    }

    /// Remembers a script for good.
    pub fn load(&self, script: Arc<Script>) {
        let mut evaluated = self.evaluated.lock().unwrap_or_else(PoisonError::into_inner);
        evaluated.retain(|digest| *digest != script.digest);
        self.known.pin().insert(script.digest, script);
    }

    /// Remembers a script that EVAL has brought.
    pub fn evaluate(&self, script: Arc<Script>) {
        let mut evaluated = self.evaluated.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = script.digest;
        let known = self.known.pin();
        if known.try_insert(digest, script).is_err() {
            return;
        }
        evaluated.push_back(digest);
        if evaluated.len() > EVALUATED_SCRIPTS_MAX
            && let Some(oldest) = evaluated.pop_front()
        {
            known.remove(&oldest);
        }
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        let mut evaluated = self.evaluated.lock().unwrap_or_else(PoisonError::into_inner);
        evaluated.clear();
        self.known.pin().clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all sources.
    pub fn source_bytes(&self) -> usize {
        self.known.pin().values().map(|script| script.source.len()).sum()
    }
}

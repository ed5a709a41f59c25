//! Lua scripts: an interpreter for each worker, in Redis' sandbox.
//!
//! A script is one transaction whose steps are commands. This module knows of commands only that a [`Host`] runs them, one after the other, and that
//! either of its two methods may end the script ([`Abort`]): because the attempt is void and the script is to be run again from its start, or
//! because somebody wants it to end. A script cannot swallow that.
//!
//! A script sees nothing of the run before: every table that outlives a run is read-only to it ([`sandbox`]), and what it can set (cjson's settings,
//! the protocol, the random numbers' seed) is set anew at each start. So a script gives the same for the same keys, arguments and replies.
//!
//! What scripts are loaded is known to all workers ([`Scripts`]); what they compile to is each worker's own ([`Engine`]).

mod bits;
mod digest;
mod engine;
mod json;
mod library;
mod lua;
mod message_pack;
pub mod payload;
mod redis_module;
mod replies;
mod run;
mod sandbox;
mod source;
mod structure;
#[cfg(test)]
mod tests;
mod text;

pub use digest::Digest;
pub use engine::{Ended, Engine};
pub use library::{Collision, Function, FunctionFacts, Libraries, Library, declaration};
pub use source::{Header, Script, Scripts};

use crate::command::args::Args;
use crate::command::error::CommandError;
use crate::resp::Reply;
use crate::sync::Arc;

/// What can be run.
#[derive(Clone, Debug)]
pub enum Program {
    /// A script.
    Script(Arc<Script>),
    /// A function of a library.
    Function(Arc<Function>),
}

impl Program {
    /// What it declares of itself.
    pub fn header(&self) -> &Header {
        match self {
            Self::Script(script) => &script.header,
            Self::Function(function) => &function.facts().header,
        }
    }

    /// What errors call it.
    pub fn name(&self) -> &[u8] {
        match self {
            Self::Script(script) => script.digest.as_bytes(),
            Self::Function(function) => function.facts().name.as_bytes(),
        }
    }

    /// Whether it is a function.
    pub fn is_function(&self) -> bool {
        matches!(self, Self::Function(_))
    }
}

/// Why a script is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// Its attempt is void: nothing that it says is heard, and it is run again.
    Lost,
    /// Somebody has killed it; the text is its error's.
    Killed(&'static str),
}

/// How a command of a script fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// With an error, which the script may look at.
    Error(CommandError),
    /// The script ends.
    Abort(Abort),
}

/// How loud a line of `redis.log` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Redis' own")]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// What a script runs on.
pub trait Host {
    /// Runs a command as the script's next step, and appends its reply, in the protocol that `reply` says.
    ///
    /// # Errors
    /// What the command fails with, or what ends the script; then nothing counts of what was appended.
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), Failure>;

    /// Called every so many instructions of the script.
    ///
    /// # Errors
    /// What ends the script.
    fn breathe(&mut self) -> Result<(), Abort>;

    /// Whether the client may run this command line (`redis.acl_check_cmd`); `None` where there is no such command.
    fn may_run(&mut self, args: &Args<'_>) -> Option<bool>;

    /// Writes a line to the server's log (`redis.log`).
    fn log(&mut self, level: LogLevel, line: &[u8]);
}

//! Commands: rows, argument parsing, dispatch, and one file per family.
//!
#![doc = include_str!("../../docs/adding-a-command.md")]

pub mod args;
pub mod blocking;
#[cfg(feature = "server")]
mod context;
pub mod deadline;
#[cfg(feature = "server")]
pub mod dispatch;
#[cfg(feature = "server")]
pub mod documentation;
pub mod error;
#[cfg(feature = "server")]
pub mod exec;
pub mod family;
pub mod float_text;
pub mod help;
pub mod keys;
pub mod lookup;
#[cfg(feature = "server")]
pub mod scripting;
pub mod spec;
pub mod string_value;
pub mod table;

#[cfg(feature = "server")]
pub use context::Context;

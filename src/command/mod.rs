//! Commands: rows, argument parsing, dispatch, and one file per family.

pub mod args;
#[cfg(feature = "server")]
mod context;
pub mod error;
pub mod family;
pub mod float_text;
pub mod help;
pub mod keys;
pub mod spec;
pub mod table;

#[cfg(feature = "server")]
pub use context::Context;

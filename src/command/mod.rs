//! Commands: rows, argument parsing, dispatch, and one file per family.

pub mod args;
pub mod error;
pub mod family;
pub mod help;
pub mod keys;
pub mod spec;
pub mod table;

/// What a command about the client or the server may touch.
#[cfg(feature = "server")]
pub struct Context<'a> {
    /// All commands.
    pub table: &'a table::Table,
}

//! The families: one file each, with the rows beside the functions that they name.

#[cfg(feature = "server")]
pub mod command;
#[cfg(feature = "server")]
pub mod connection;
pub mod generic;
pub mod list;
pub mod string;

use super::spec::Row;

/// The rows of every family. A new command is a row in its family's file; only a new family needs a line here.
pub static FAMILIES: &[&[Row]] = &[
    #[cfg(feature = "server")]
    command::ROWS,
    #[cfg(feature = "server")]
    connection::ROWS,
    generic::ROWS,
    list::ROWS,
    string::ROWS,
];

//! The families: one file each, with the rows beside the functions that they name.

#[cfg(feature = "server")]
pub mod cluster;
#[cfg(feature = "server")]
pub mod command;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod connection;
#[cfg(feature = "server")]
pub mod debug;
#[cfg(feature = "server")]
pub mod function;
pub mod generic;
#[cfg(feature = "server")]
pub mod info;
pub mod list;
#[cfg(feature = "server")]
pub mod lolwut;
#[cfg(feature = "server")]
pub mod pubsub;
#[cfg(feature = "server")]
pub mod scripting;
#[cfg(feature = "server")]
pub mod server;
pub mod string;
#[cfg(feature = "server")]
pub mod transaction;

#[cfg(feature = "server")]
pub mod tracking;

#[cfg(test)]
mod testing;

use super::spec::Row;

/// The rows of every family. A new command is a row in its family's file; only a new family needs a line here.
pub static FAMILIES: &[&[Row]] = &[
    #[cfg(feature = "server")]
    cluster::ROWS,
    #[cfg(feature = "server")]
    command::ROWS,
    #[cfg(feature = "server")]
    connection::ROWS,
    #[cfg(feature = "server")]
    config::ROWS,
    #[cfg(feature = "server")]
    debug::ROWS,
    #[cfg(feature = "server")]
    function::ROWS,
    generic::ROWS,
    #[cfg(feature = "server")]
    info::ROWS,
    list::ROWS,
    #[cfg(feature = "server")]
    lolwut::ROWS,
    #[cfg(feature = "server")]
    pubsub::ROWS,
    #[cfg(feature = "server")]
    scripting::ROWS,
    #[cfg(feature = "server")]
    server::ROWS,
    string::ROWS,
    #[cfg(feature = "server")]
    transaction::ROWS,
];

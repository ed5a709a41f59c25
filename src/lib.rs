//! Caswell: a Redis-compatible server that runs every command on every core.
//!
//! The modules stand in layer order: a lower one never names a higher one (`tests/tidy.rs` checks it).
#![warn(missing_docs)]

// The core: builds without tokio, so that loom, the fuzzers and the sanitizers run the files that ship.
pub mod clock;
pub mod epoch;
pub mod glob;
pub mod limits;
pub mod random;
pub mod sync;

pub mod types;

pub mod store;

pub mod txn;

pub mod resp;

pub mod command;

// The server around it.
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod net;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod session;

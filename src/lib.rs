//! Caswell: a Redis-compatible server that runs every command on every core.
//!
//! The modules stand in layer order: a lower one never names a higher one (`tests/tidy.rs` checks it).
#![warn(missing_docs)]

/// The version of Redis whose commands, replies and errors these are; clients look at it to know what they may use.
pub const REDIS_VERSION: &str = "7.2.10";

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

pub mod pubsub;

#[cfg(feature = "server")]
pub mod script;

// The server around it.
pub mod config;
#[cfg(feature = "server")]
pub mod net;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod session;

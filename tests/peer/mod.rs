//! Other servers beside ours: starting them, and speaking RESP with them. Shared by the tests that compare.

#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

mod client;
mod server;
mod value;

pub use client::{Client, encode};
pub use server::Peer;
pub use value::Value;

//! Transactions: what one attempt of a command read and wants to write, and its commit.
//!
#![doc = include_str!("../../docs/commit-protocol.md")]

mod commit;
pub mod databases;
mod interest;
mod limits;
#[cfg(all(test, not(caswell_loom)))]
mod tests;
mod transaction;

pub use crate::store::events::{Event, EventClass, EventOrder, Events};
pub use interest::Interest;
pub use limits::RuntimeLimits;
pub use transaction::{KeyId, Lost, Otherwise, Scratch, Transaction, Wait};

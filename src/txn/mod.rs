//! Transactions: what one attempt of a command read and wants to write, and its commit.

mod transaction;

pub use transaction::{KeyId, RuntimeLimits, Transaction};

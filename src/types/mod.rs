//! Immutable values and the nodes they are made of.
//!
//! [`root`] is what an entry word points to. Its payload is flat, or the head of a persistent structure: a [`List`] of packed
//! [`chunk`]s or a [`Rope`] of counted [`blob`]s, both around the counted tree of [`seq`]. [`node`] says who owns the nodes, and [`listpack`] how
//! Redis would call a list.

pub mod access;
mod blob;
mod chunk;
#[cfg(test)]
mod ledger;
pub mod list;
pub mod listpack;
pub mod node;
pub mod root;
pub mod rope;
pub mod seq;

pub use list::List;
pub use listpack::ListpackLimit;
pub use node::{Attempt, NodeHeader, NodePtr};
pub use root::{Kind, NewRoot, Root, StringEncoding, View};
pub use rope::Rope;
pub use seq::Side;

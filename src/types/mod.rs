//! Immutable values and the nodes they are made of.

pub mod access;
pub mod list;
pub mod node;
pub mod root;
pub mod rope;

pub use list::List;
pub use node::{Attempt, NodeHeader, NodePtr};
pub use root::{Kind, NewRoot, Root, StringEncoding, View};
pub use rope::Rope;

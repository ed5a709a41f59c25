//! The one door to epoch-based reclamation (Fraser 2004; crossbeam-epoch).
//!
//! Each store has its own collector, so that tests and models start clean and one store's stalled thread cannot hold up another's
//! garbage. A thread registers once per store ([`LocalHandle`]) and pins it around a slice of commands ([`Guard`]); memory that was
//! unlinked before a pin ended is freed only after every pin that was there has ended.

pub use crossbeam_epoch::{Collector, Guard, LocalHandle};

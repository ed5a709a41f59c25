//! Commands: rows, argument parsing, dispatch, and one file per family.

pub mod error;

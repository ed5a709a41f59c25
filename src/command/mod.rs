//! Commands: rows, argument parsing, dispatch, and one file per family.

pub mod args;
pub mod error;
pub mod spec;

/// What a command about the client or the server may touch.
#[cfg(feature = "server")]
pub struct Context<'a> {
    _borrowed: std::marker::PhantomData<&'a ()>,
}

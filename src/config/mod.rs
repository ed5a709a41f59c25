//! How is the server set up? One table of settings ([`table`]) behind the configuration file, the command line, CONFIG and
//! the documentation.
//!
//! - [`mod@file`] splits a file's text into directives; [`load`] puts them, and the command line's, into effect.
//! - [`Settings`] holds the values: a relaxed load where they are read often.
//! - [`rewrite`] writes them back into the user's file.

// Part of the core, so that the fuzzers reach the parser of the file.
pub mod file;

#[cfg(feature = "server")]
pub mod command_line;
#[cfg(feature = "server")]
pub mod documentation;
#[cfg(feature = "server")]
pub mod load;
#[cfg(feature = "server")]
pub mod rewrite;
#[cfg(feature = "server")]
pub mod setting;
#[cfg(feature = "server")]
pub mod settings;
#[cfg(feature = "server")]
pub mod table;
#[cfg(feature = "server")]
pub mod value;
#[cfg(feature = "server")]
pub mod words;

#[cfg(feature = "server")]
pub use settings::{Allow, ClientClass, EvictionPolicy, Live, LogLevel, OutputLimit, SetError, Settings};

//! How is the server set up? One table of settings ([`table`]) behind the configuration file, the command line, CONFIG and
//! the documentation.
//!
//! - [`file`] splits a file's text into directives; [`load`] puts them, and the command line's, into effect.
//! - [`Settings`] holds the values: a relaxed load where they are read often.
//! - [`rewrite`] writes them back into the user's file.

pub mod command_line;
pub mod file;
pub mod load;
pub mod rewrite;
pub mod setting;
pub mod settings;
pub mod table;
pub mod value;
pub mod words;

pub use settings::{Allow, ClientClass, EvictionPolicy, Live, LogLevel, OutputLimit, SetError, Settings};

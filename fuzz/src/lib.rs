//! What the fuzz targets do with their bytes. Nothing here needs a fuzzer: the test `tests/fuzz_seeds.rs` runs every target on its
//! seeds with the ordinary tests.

pub mod commands;
pub mod config_file;
pub mod float_text;
pub mod glob;
pub mod resp_decoder;

/// What runs one input; it panics where something is wrong.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also that of its folder under `seeds`.
pub const TARGETS: &[(&str, Target)] = &[
    ("resp_decoder", resp_decoder::run),
    ("commands", commands::run),
    ("glob", glob::run),
    ("config_file", config_file::run),
    ("float_text", float_text::run),
];

//! See `src/commands.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| caswell_fuzz::commands::run(bytes));

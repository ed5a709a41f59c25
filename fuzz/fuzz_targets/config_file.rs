//! See `src/config_file.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| caswell_fuzz::config_file::run(bytes));

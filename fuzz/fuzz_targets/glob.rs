//! See `src/glob.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| caswell_fuzz::glob::run(bytes));

//! See `src/float_text.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| caswell_fuzz::float_text::run(bytes));

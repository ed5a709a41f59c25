//! See `src/resp_decoder.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| caswell_fuzz::resp_decoder::run(bytes));

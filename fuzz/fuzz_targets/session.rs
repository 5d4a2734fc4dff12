#![no_main]
//! See `trunkline_fuzz::serve_session`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::serve_session(data));

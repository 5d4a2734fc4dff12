#![no_main]
//! See `trunkline_fuzz::read_frame`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::read_frame(data));

#![no_main]
//! See `trunkline_fuzz::cut_super_frame`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::cut_super_frame(data));

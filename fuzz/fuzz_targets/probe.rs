#![no_main]
//! See `trunkline_fuzz::read_probe`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::read_probe(data));

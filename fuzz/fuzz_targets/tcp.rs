#![no_main]
//! See `trunkline_fuzz::read_tcp`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| trunkline_fuzz::read_tcp(data));

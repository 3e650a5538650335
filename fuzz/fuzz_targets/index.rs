#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| xtask::fuzz::run_target("index", input));

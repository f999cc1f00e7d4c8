//! See [`crosstie_fuzz::scenario::scenario`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::scenario::scenario(data));

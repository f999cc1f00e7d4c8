//! See [`crosstie_fuzz::store::segment`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::store::segment(data));

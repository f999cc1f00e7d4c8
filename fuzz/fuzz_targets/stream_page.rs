//! See [`crosstie_fuzz::streams::page`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::streams::page(data));

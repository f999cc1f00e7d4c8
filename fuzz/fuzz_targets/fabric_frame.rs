//! See [`crosstie_fuzz::fabric::frame`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::fabric::frame(data));

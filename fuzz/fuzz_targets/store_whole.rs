//! See [`crosstie_fuzz::store::store`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::store::store(data));

//! See [`crosstie_fuzz::mqtt::properties`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::mqtt::properties(data));

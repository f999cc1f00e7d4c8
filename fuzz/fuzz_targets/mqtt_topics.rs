//! See [`crosstie_fuzz::mqtt::topics`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::mqtt::topics(data));

//! See [`crosstie_fuzz::mqtt::packets_v31`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::mqtt::packets_v31(data));

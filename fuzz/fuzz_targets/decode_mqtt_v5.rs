//! See [`crosstie_fuzz::mqtt::packets_v5`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::mqtt::packets_v5(data));

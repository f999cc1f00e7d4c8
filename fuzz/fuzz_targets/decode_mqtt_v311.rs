//! See [`crosstie_fuzz::mqtt::packets_v311`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::mqtt::packets_v311(data));

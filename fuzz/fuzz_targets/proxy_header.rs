//! See [`crosstie_fuzz::proxy::header`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::proxy::header(data));

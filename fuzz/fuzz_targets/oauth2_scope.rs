//! See [`crosstie_fuzz::oauth2::scope`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::oauth2::scope(data));

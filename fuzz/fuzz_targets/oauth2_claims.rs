//! See [`crosstie_fuzz::oauth2::claims`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::oauth2::claims(data));

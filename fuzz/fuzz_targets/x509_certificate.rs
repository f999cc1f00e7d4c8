//! See [`crosstie_fuzz::x509::certificate`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::x509::certificate(data));

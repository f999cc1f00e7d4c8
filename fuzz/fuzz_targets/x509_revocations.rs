//! See [`crosstie_fuzz::x509::revocations`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::x509::revocations(data));

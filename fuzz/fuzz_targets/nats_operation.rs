//! See [`crosstie_fuzz::fabric::nats`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::fabric::nats(data));

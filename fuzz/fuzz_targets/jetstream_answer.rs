//! See [`crosstie_fuzz::fabric::answer`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::fabric::answer(data));

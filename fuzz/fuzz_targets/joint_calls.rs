//! See [`crosstie_fuzz::joints::calls`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::joints::calls(data));

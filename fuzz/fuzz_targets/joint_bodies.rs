//! See [`crosstie_fuzz::joints::bodies`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::joints::bodies(data));

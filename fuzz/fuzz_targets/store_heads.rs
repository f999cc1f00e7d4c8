//! See [`crosstie_fuzz::store::heads`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::store::heads(data));

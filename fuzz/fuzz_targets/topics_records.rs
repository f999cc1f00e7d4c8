//! See [`crosstie_fuzz::topics::records`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::topics::records(data));

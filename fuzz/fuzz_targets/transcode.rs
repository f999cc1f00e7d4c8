//! See [`crosstie_fuzz::codec::transcode`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::codec::transcode(data));

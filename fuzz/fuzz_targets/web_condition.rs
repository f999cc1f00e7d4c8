//! See [`crosstie_fuzz::web::condition`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::web::condition(data));

//! See [`crosstie_fuzz::web::passed_on`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::web::passed_on(data));

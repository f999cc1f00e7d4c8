//! See [`crosstie_fuzz::web::bridge_body`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::web::bridge_body(data));

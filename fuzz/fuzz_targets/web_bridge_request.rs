//! See [`crosstie_fuzz::web::bridge_request`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::web::bridge_request(data));

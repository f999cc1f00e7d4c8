//! See [`crosstie_fuzz::web::script_answer`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::web::script_answer(data));

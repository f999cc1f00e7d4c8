//! See [`crosstie_fuzz::amqp::table`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::amqp::table(data));

//! See [`crosstie_fuzz::amqp::method`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::amqp::method(data));

//! See [`crosstie_fuzz::amqp::properties`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::amqp::properties(data));

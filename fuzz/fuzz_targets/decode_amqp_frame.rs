//! See [`crosstie_fuzz::amqp::frames`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::amqp::frames(data));

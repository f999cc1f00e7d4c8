//! See [`crosstie_fuzz::codec::decode_msgpack`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::codec::decode_msgpack(data));

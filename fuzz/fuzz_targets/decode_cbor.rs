//! See [`crosstie_fuzz::codec::decode_cbor`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::codec::decode_cbor(data));

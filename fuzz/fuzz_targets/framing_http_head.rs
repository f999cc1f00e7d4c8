//! The heads of WebSocket handshakes, from both sides: see `crosstie_fuzz::framing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::framing::http_head(data));

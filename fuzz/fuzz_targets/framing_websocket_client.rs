//! WebSocket frames as a client reads them: see `crosstie_fuzz::framing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::framing::websocket_client(data));

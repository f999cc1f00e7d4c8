//! WebSocket frames as a server reads them: see `crosstie_fuzz::framing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| crosstie_fuzz::framing::websocket_server(data));

//! Control frames: pings, and WebSocket's Close.

use std::ops::ControlFlow;

use crosstie_wamp::framing::rawsocket;
use crosstie_wamp::framing::websocket::CloseFrame;

use crate::session::Session;

impl Session {
    /// Answers a ping.
    pub(crate) fn pong(&self, payload: &[u8]) -> ControlFlow<()> {
        // A ping may be longer than its sender's maximum; it then gets no answer.
        let pong_bytes = payload.len() + rawsocket::PREFIX_LENGTH;
        if !rawsocket::fits(pong_bytes, self.peer.wire.message_bytes_max as usize) {
            return ControlFlow::Continue(());
        }
        // A peer that pings without reading loses some pongs, and nothing else.
        self.append(|framing, out| framing.pong(payload, out));
        ControlFlow::Continue(())
    }

    /// Answers a WebSocket's Close.
    pub(crate) fn answer_close(&self, close: CloseFrame<'_>, echo: bool) -> ControlFlow<()> {
        match close.code {
            Some(code) if echo => self.say_close(code, close.reason),
            _ => self.say_close(1000, ""),
        }
    }
}

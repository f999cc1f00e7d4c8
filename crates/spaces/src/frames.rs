//! Packets in the frames of a WebSocket: a frame has any part of the stream of packets.

use crosstie_transport::Connection;
use crosstie_wamp::Serializer;
use crosstie_wamp::framing::websocket::{Decoder, DecoderConfig, Role};
use crosstie_wamp::framing::{Framing, FramingError, Item};
use std::sync::Arc;

/// The frames of a connection, and the packets that are not handled yet.
pub struct Frames {
    decoder: Decoder,
    pub(crate) packets: Vec<u8>,
    noted: usize,
}

/// The outcome of an input.
pub(crate) enum Framed {
    /// A part of the stream, or a control frame that is answered.
    Taken(usize),
    /// No frame is complete; the next needs so many bytes, as far as is known.
    Wanted(usize),
    /// The client has closed.
    Closed,
}

/// How frames are written: a server's, with binary payloads.
pub(crate) const FRAMING: Framing = Framing::WebSocketServer { batched: false };
/// A serializer whose frames are binary, as those of packets are.
pub(crate) const BINARY: Serializer = Serializer::Cbor;

impl Frames {
    pub fn new(config: DecoderConfig) -> Self {
        Self {
            decoder: Decoder::new(Role::Server, config),
            packets: Vec::new(),
            noted: 0,
        }
    }

    /// Takes the frame at the front of `input`.
    pub(crate) fn take(
        &mut self,
        input: &mut [u8],
        connection: &Arc<Connection>,
    ) -> Result<Framed, FramingError> {
        let step = self.decoder.next(input)?;
        if step.consumed == 0 {
            return Ok(Framed::Wanted(step.wanted));
        }
        let consumed = step.consumed;
        match step.item {
            Some(Item::Message { bytes, .. }) => self.packets.extend_from_slice(bytes),
            Some(Item::Ping(payload)) => append(connection, |out| FRAMING.pong(payload, out)),
            Some(Item::Close(_)) => {
                append(connection, |out| FRAMING.close(1000, "", out));
                return Ok(Framed::Closed);
            }
            Some(Item::Pong(_)) | None => {}
        }
        Ok(Framed::Taken(consumed))
    }

    /// Forgets handled packets.
    pub(crate) fn consume(&mut self, bytes: usize) {
        match bytes >= self.packets.len() {
            // An idle connection holds no buffer.
            true => self.packets = Vec::new(),
            false => drop(self.packets.drain(..bytes)),
        }
    }

    /// Puts what is kept on the connection's account.
    pub(crate) fn note_kept(&mut self, connection: &Arc<Connection>) {
        let kept = self.packets.len() + self.decoder.kept_bytes();
        if kept != self.noted {
            self.noted = kept;
            connection.note_partial(kept);
        }
    }
}

/// Queues a control frame, unless the queue is full.
pub(crate) fn append(connection: &Arc<Connection>, write: impl FnOnce(&mut Vec<u8>)) {
    let _ = connection.append(|out| {
        write(out);
        Ok::<(), ()>(())
    });
}

/// Queues the frame that ends a WebSocket.
pub(crate) fn close(connection: &Arc<Connection>, code: u16, reason: &str) {
    append(connection, |out| FRAMING.close(code, reason, out));
}

/// Appends what `write` writes, in a frame if the connection has frames.
#[expect(
    clippy::result_unit_err,
    reason = "a connection's queue wants this form, and nobody reads the error"
)]
pub fn write_framed(
    is_framed: bool,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(), ()> {
    match is_framed {
        true => {
            let framed = FRAMING.frame(BINARY, 64, out, |out| {
                write(out);
                Ok::<(), ()>(())
            });
            framed.map_err(drop)
        }
        false => {
            write(out);
            Ok(())
        }
    }
}

//! permessage-deflate for output (RFC 7692).

use crosstie_transport::{Filter, StageError};
use crosstie_wamp::framing::websocket::{self, Decoder, DecoderConfig, Deflate, Deflater, Role};
use crosstie_wamp::framing::{Framing, Item};

/// Compresses queued frames just before they are sent. The queue holds the same bytes for all receivers; only the
/// compressor's state differs from one receiver to the next.
pub(crate) struct CompressFilter {
    frames: Decoder,
    deflater: Deflater,
    /// The compressor's bytes as reported to the connection.
    told_bytes: usize,
}

/// Compressing a shorter message costs more than it saves; the RFC allows to send it uncompressed.
const COMPRESS_BYTES_MIN: usize = 64;

const FRAMING: Framing = Framing::WebSocketServer { batched: false };

impl CompressFilter {
    pub(crate) fn new(deflate: Deflate) -> Self {
        let config = DecoderConfig {
            message_bytes_max: usize::MAX,
            frame_bytes_max: usize::MAX,
            // The router has encoded the text.
            validate_text: false,
            ..DecoderConfig::default()
        };
        Self {
            frames: Decoder::new(Role::Client, config),
            deflater: Deflater::new(deflate),
            told_bytes: 0,
        }
    }
}

impl Filter for CompressFilter {
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        let mut frames = queued.to_vec();
        let mut done = 0;
        while done < frames.len() {
            let step = self.frames.next(&mut frames[done..]);
            let step =
                step.map_err(|e| StageError(format!("invalid frame in the output queue: {e}")))?;
            match step.item {
                Some(Item::Message { bytes, text }) if bytes.len() < COMPRESS_BYTES_MIN => {
                    websocket::message(text, None, bytes, out);
                }
                Some(Item::Message { bytes, text }) => {
                    self.deflater.message(text, None, bytes, out);
                }
                Some(Item::Ping(payload)) => FRAMING.ping(payload, out),
                Some(Item::Pong(payload)) => FRAMING.pong(payload, out),
                Some(Item::Close(close)) => {
                    FRAMING.close(close.code.unwrap_or(1000), close.reason, out);
                }
                None => {}
            }
            if step.consumed == 0 {
                return Err(StageError("queued bytes end inside a frame".to_owned()));
            }
            done += step.consumed;
        }
        Ok(())
    }
    fn take_growth(&mut self) -> isize {
        let before = std::mem::replace(&mut self.told_bytes, self.deflater.held_bytes());
        self.told_bytes as isize - before as isize
    }
}

//! WebSocket (RFC 6455) and its permessage-deflate extension (RFC 7692), for both sides.

mod close;
mod decoder;
mod deflate;
mod encoder;
mod extension;
mod handshake;
mod header;
mod http;
mod inflate;
mod mask;
mod subprotocol;
mod utf8;

use std::fmt;

pub use close::{CloseFrame, code_is_allowed};
pub use decoder::{Decoder, DecoderConfig};
pub use deflate::{Compressor, Deflater, NotCompressed, Parameters};
pub(super) use encoder::{close, frame, ping, pong};
pub use encoder::{message, raw_frame};
pub use extension::{Deflate, DeflateConfig};
pub use handshake::{
    Accepted, ClientRequest, ResponseError, Upgrade, accept_key, accept_response, key,
};
pub use header::{Opcode, sent_frame};
pub use http::{
    HEAD_BYTES_MAX, HEADERS_MAX, HandshakeError, HeaderList, Request, closing_response,
    parse_request,
};
pub use subprotocol::{from_subprotocol, subprotocol};

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Expects masked frames.
    Server,
    /// Expects unmasked frames.
    Client,
}

/// The type that a data message claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    Text,
    Binary,
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Binary => "binary",
        })
    }
}

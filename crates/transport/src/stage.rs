//! What some connections do to bytes between the queue and the socket: TLS, permessage-deflate.

use std::fmt;

/// Transforms queued bytes just before they are sent, and received ones before they are read.
///
/// A stage works when a connection is flushed, not when something is appended, so that it costs
/// nothing while a realm is locked, and so that one event's bytes can be shared by receivers
/// whose stages differ.
pub trait Stage: Send {
    /// Transforms `queued` and appends what is to be sent to `out`. It is also called with
    /// nothing queued, for what the stage has to say by itself (a handshake's answer, an alert).
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError>;

    /// Transforms received bytes, of which it takes all, and appends the result to `out`.
    fn receive(&mut self, received: &[u8], out: &mut Vec<u8>) -> Result<(), StageError>;

    /// Whether the peer has said that nothing more comes.
    fn is_ended(&self) -> bool;

    /// Has [`Stage::send`] tell the peer, in the end, that nothing more comes.
    fn finish(&mut self);

    /// The certificate that the peer has shown, checked, in DER.
    fn peer_certificate(&self) -> Option<Vec<u8>> {
        None
    }

    /// What both ends know of the channel between them and nobody else does: `tls-exporter` (RFC 9266).
    fn tls_exporter(&self) -> Option<[u8; 32]> {
        None
    }
}

/// Transforms queued bytes before any [`Stage`]: it is agreed on while the connection is open.
///
/// It is handed whole appended items only, never a part of one.
pub trait Filter: Send {
    /// Transforms `queued` and appends what is to be sent to `out`.
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError>;

    /// How many bytes more it holds for the connection than when this was asked last.
    fn take_growth(&mut self) -> isize {
        0
    }
}

/// Why a stage could not go on; the connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageError(pub String);

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StageError {}

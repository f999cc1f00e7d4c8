//! Transformations of bytes between the queue and the socket: TLS, permessage-deflate.

use std::fmt;

use bytes::Bytes;

use crate::queue::Queue;

/// Transforms queued bytes just before they are sent, and received ones before they are read.
///
/// A stage works when a connection is flushed, not on appends. It costs nothing while a realm is locked, and one
/// event's bytes can be shared by receivers whose stages differ.
pub trait Stage: Send {
    /// Transforms `queued` and appends the result to `out`. Also called with nothing queued, for the stage's own
    /// messages (a handshake's answer, an alert).
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError>;

    /// Transforms all received bytes, and appends the result to `out`.
    fn receive(&mut self, received: &[u8], out: &mut Vec<u8>) -> Result<(), StageError>;

    /// Whether the peer has announced the end of its stream.
    fn is_ended(&self) -> bool;

    /// Makes [`Stage::send`] announce the end of this side's stream.
    fn finish(&mut self);

    /// The peer's verified certificate, in DER.
    fn peer_certificate(&self) -> Option<Vec<u8>> {
        None
    }

    /// The secret that both ends of the channel share: `tls-exporter` (RFC 9266).
    fn tls_exporter(&self) -> Option<[u8; 32]> {
        None
    }
}

/// Transforms queued bytes before any [`Stage`]; set while the connection is open.
///
/// Gets whole appended items only, never a part of one.
pub trait Filter: Send {
    /// Transforms `queued` and appends the result to `out`.
    fn send(&mut self, queued: &[u8], out: &mut Filtered<'_>) -> Result<(), StageError>;

    /// How many more bytes it holds for the connection than at the last call.
    fn take_growth(&mut self) -> isize {
        0
    }

    /// Drops what it holds only to do better: the account is full, and the connection owes much.
    fn give_up(&mut self) {}

    /// The same if it was not used for long. Called from time to time.
    fn give_up_unused(&mut self, _now_s: u32) {}
}

/// The output of a [`Filter`].
pub struct Filtered<'q>(pub(crate) &'q mut Queue);

impl Filtered<'_> {
    /// Appends bytes for this connection alone.
    pub fn append(&mut self, bytes: &[u8]) {
        let appended = self.0.append(|out| {
            out.extend_from_slice(bytes);
            Ok::<(), ()>(())
        });
        debug_assert!(appended.is_ok());
    }

    /// Appends bytes that other connections send too.
    pub fn append_shared(&mut self, bytes: &Bytes) {
        self.0.append_shared(bytes);
    }
}

/// The reason why a stage failed; the connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageError(pub String);

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StageError {}

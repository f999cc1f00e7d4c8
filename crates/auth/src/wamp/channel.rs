//! The properties of a handshake's connection that authentication needs.

use std::sync::Arc;

use super::cookie::Remembered;
use super::{Certificate, SigningKey};

/// The connection's properties that a handshake may use, besides the client's messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channel<'c> {
    pub is_tls: bool,
    /// The channel id of a TLS 1.3 connection (RFC 9266).
    pub tls_exporter: Option<[u8; 32]>,
    /// The client's TLS certificate, if it has sent one.
    pub certificate: Option<&'c Certificate>,
    /// The login that the client's cookie stands for.
    pub remembered: Option<&'c Remembered>,
    /// The key with which the router signs.
    pub own_key: Option<&'c Arc<SigningKey>>,
}

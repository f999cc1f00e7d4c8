//! What is known of the connection that a handshake comes by.

use std::sync::Arc;

use super::cookie::Remembered;
use super::{Certificate, SigningKey};

/// What a handshake may look at beside what the client says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channel<'c> {
    pub is_tls: bool,
    /// The id of a TLS 1.3 connection (RFC 9266).
    pub tls_exporter: Option<[u8; 32]>,
    /// The one that the client has shown, if it has.
    pub certificate: Option<&'c Certificate>,
    /// Who its cookie says that it is.
    pub remembered: Option<&'c Remembered>,
    /// What the router signs with.
    pub own_key: Option<&'c Arc<SigningKey>>,
}

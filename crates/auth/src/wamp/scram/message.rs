//! The message that both sides prove: RFC 5802, section 3, `AuthMessage`.

use std::fmt;

/// The exchanged values, in RFC 5802's form.
#[derive(Clone, Copy, Debug)]
pub struct AuthMessage<'m> {
    /// In the client's encoding.
    pub name: &'m str,
    pub client_nonce: &'m str,
    /// The router's nonce, which contains the client's.
    pub nonce: &'m str,
    /// In Base64.
    pub salt: &'m str,
    pub iterations: u32,
    /// In Base64: the channel binding with its header.
    pub binding: &'m str,
}

impl AuthMessage<'_> {
    /// Of a client without channel binding support, Autobahn's form.
    pub const NO_BINDING: &'static str = "";
    /// Of a client that requests no channel binding (`n,,`), RFC 5802's form.
    pub const BINDING_NOT_ASKED_FOR: &'static str = "biws";
    /// Of a client that has one, and takes the router not to (`y,,`).
    pub const BINDING_NOT_OFFERED: &'static str = "eSws";
    pub(super) const BINDINGS: [&'static str; 3] = [
        Self::NO_BINDING,
        Self::BINDING_NOT_ASKED_FOR,
        Self::BINDING_NOT_OFFERED,
    ];
}

impl fmt::Display for AuthMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            client_nonce,
            nonce,
            salt,
            iterations,
            binding,
        } = self;
        write!(
            f,
            "n={name},r={client_nonce},r={nonce},s={salt},i={iterations},c={binding},r={nonce}"
        )
    }
}

/// An authid in the encoding of Autobahn's clients: normalized, without escapes.
pub fn prepare_name(authid: &str) -> String {
    let prepared = stringprep::saslprep(authid);
    prepared.map_or_else(|_| authid.to_owned(), |text| text.into_owned())
}

/// The encodings of an authid among clients: normalized, and with delimiters escaped (RFC 5802, section 5.1) or, by
/// Autobahn, not. Equal ones are listed once.
pub(super) fn names(authid: &str) -> Vec<String> {
    let prepared = prepare_name(authid);
    let escaped = prepared.replace('=', "=3D").replace(',', "=2C");
    let mut names = vec![prepared, escaped];
    names.dedup();
    names
}

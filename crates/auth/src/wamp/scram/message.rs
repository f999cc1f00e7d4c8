//! What both sides prove that they have seen: RFC 5802, section 3, `AuthMessage`.

use std::fmt;

/// What was said, in RFC 5802's form.
#[derive(Clone, Copy, Debug)]
pub struct AuthMessage<'m> {
    /// In the form that the client has it in.
    pub name: &'m str,
    pub client_nonce: &'m str,
    /// The router's, which has the client's in it.
    pub nonce: &'m str,
    /// In Base64.
    pub salt: &'m str,
    pub iterations: u32,
    /// In Base64: the channel binding, with its head.
    pub binding: &'m str,
}

impl AuthMessage<'_> {
    /// Of a client that knows nothing of channel bindings, as Autobahn has it.
    pub const NO_BINDING: &'static str = "";
    /// Of a client that asks for none (`n,,`), as RFC 5802 has it.
    pub const BINDING_NOT_ASKED_FOR: &'static str = "biws";
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

/// An authid as Autobahn's clients have it in a message: normalized, and with nothing escaped.
pub fn prepare_name(authid: &str) -> String {
    let prepared = stringprep::saslprep(authid);
    prepared.map_or_else(|_| authid.to_owned(), |text| text.into_owned())
}

/// The forms in which clients have an authid: normalized, and with what delimits escaped (RFC 5802, section 5.1) or,
/// by Autobahn, not. One where they are the same.
pub(super) fn names(authid: &str) -> Vec<String> {
    let prepared = prepare_name(authid);
    let escaped = prepared.replace('=', "=3D").replace(',', "=2C");
    let mut names = vec![prepared, escaped];
    names.dedup();
    names
}

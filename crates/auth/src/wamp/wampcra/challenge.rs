//! The text that a client signs.

use std::fmt;

/// The text that a client signs. Its keys have Crossbar.io's order.
pub(super) struct Challenge<'c> {
    pub(super) authid: &'c str,
    pub(super) authrole: &'c str,
    pub(super) authprovider: &'c str,
    pub(super) session: u64,
    pub(super) nonce: &'c str,
    pub(super) timestamp: &'c str,
}

impl fmt::Display for Challenge<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            authid,
            authrole,
            authprovider,
            session,
            nonce,
            timestamp,
        } = self;
        write!(
            f,
            "{{\"authid\": {}, \"authrole\": {}, \"authmethod\": \"wampcra\", \"authprovider\": {}, \
             \"session\": {session}, \"nonce\": {}, \"timestamp\": {}}}",
            Json(authid),
            Json(authrole),
            Json(authprovider),
            Json(nonce),
            Json(timestamp)
        )
    }
}

/// A text in JSON.
struct Json<'t>(&'t str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for character in self.0.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                control if u32::from(control) < 0x20 => {
                    write!(f, "\\u{:04x}", u32::from(control))?;
                }
                other => write!(f, "{other}")?,
            }
        }
        f.write_str("\"")
    }
}

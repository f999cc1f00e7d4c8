//! A received message.

use crosstie_nats::headers;

/// A message, or an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    /// The subject for an answer.
    pub reply: Option<String>,
    /// Empty without headers.
    pub headers: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Message {
    /// The server's own status for a request: 503 means no responders.
    pub fn status(&self) -> Option<u16> {
        headers::status(&self.headers)
    }

    /// The first value of a header; its name is case-sensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        headers::value(&self.headers, name)
    }

    /// A header with a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.subject.len() + self.headers.len() + self.payload.len()
    }
}

//! A message that came.

use crosstie_nats::headers;

/// A message, or an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    /// Where an answer to it goes.
    pub reply: Option<String>,
    /// Empty where it has none.
    pub headers: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Message {
    /// What the server says itself about a request: 503, nobody is there to answer it.
    pub fn status(&self) -> Option<u16> {
        headers::status(&self.headers)
    }

    /// A header's first value; case counts in its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        headers::value(&self.headers, name)
    }

    /// A header that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.subject.len() + self.headers.len() + self.payload.len()
    }
}

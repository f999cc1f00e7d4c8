//! Who is to own a vhost next, as its last owner says.

use std::sync::Arc;

use crate::broken::Broken;
use crate::reader::{Reader, put};

/// Who is to own a vhost next. What comes behind it is somebody's claim, and nothing else: its owner writes no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// The node; empty: whoever has read the log along.
    pub to: Arc<str>,
}

impl Handed {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(self.to.as_bytes(), &mut out);
        out
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Broken> {
        let to = Reader(body).shared_text()?;
        Ok(Self { to })
    }
}

//! Answers to a session of the router's own.

use std::fmt;

use bytes::Bytes;
use crosstie_wamp::{Payload, PublicationId, RegistrationId, Serializer, SubscriptionId};

use super::room::NotLetIn;

/// The answer to a request, as received.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'r> {
    Result(Payload<'r>),
    Published(PublicationId),
    Subscribed(SubscriptionId),
    Registered(RegistrationId),
    Error {
        uri: &'r str,
        payload: Payload<'r>,
    },
    /// No answer will come, for this reason.
    Lost(&'r str),
}

/// Called with the reply.
pub(crate) type Then = Box<dyn FnOnce(Reply<'_>) + Send>;

/// A payload in memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub serializer: Serializer,
    /// One list, or empty.
    pub args: Bytes,
    /// One dictionary, or empty.
    pub kwargs: Bytes,
}

impl Kept {
    pub fn of(payload: &Payload<'_>) -> Self {
        // One buffer for both.
        let bytes = Bytes::from([payload.args, payload.kwargs].concat());
        Self {
            serializer: payload.serializer,
            args: bytes.slice(..payload.args.len()),
            kwargs: bytes.slice(payload.args.len()..),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.args.len() + self.kwargs.len()
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// An error from the realm or the callee.
    Error { uri: String, payload: Kept },
    /// The realm or the role does not exist.
    NotLetIn(NotLetIn),
    /// The session ended, or did not accept the request.
    Lost(String),
}

impl Failed {
    /// The failure that a reply other than the expected one stands for.
    pub fn of(reply: Reply<'_>) -> Self {
        match reply {
            Reply::Error { uri, payload } => Self::Error {
                uri: uri.to_owned(),
                payload: Kept::of(&payload),
            },
            Reply::Lost(text) => Self::Lost(text.to_owned()),
            _ => Self::Lost("the answer does not match the request".to_owned()),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error { uri, .. } => f.write_str(uri),
            Self::NotLetIn(why) => why.fmt(f),
            Self::Lost(text) => f.write_str(text),
        }
    }
}

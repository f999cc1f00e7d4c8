//! What a session of the router's own is answered.

use std::fmt;

use bytes::Bytes;
use crosstie_wamp::{Payload, PublicationId, RegistrationId, Serializer, SubscriptionId};

use super::room::NotLetIn;

/// The answer to a request, as it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply<'r> {
    Result(Payload<'r>),
    Published(PublicationId),
    Subscribed(SubscriptionId),
    Registered(RegistrationId),
    Error {
        uri: &'r str,
        payload: Payload<'r>,
    },
    /// There is none, and will be none: why.
    Lost(&'r str),
}

/// What is done with it.
pub(crate) type Then = Box<dyn FnOnce(Reply<'_>) + Send>;

/// A payload that somebody keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) serializer: Serializer,
    /// One list, or empty.
    pub(crate) args: Bytes,
    /// One dictionary, or empty.
    pub(crate) kwargs: Bytes,
}

impl Kept {
    pub(crate) fn of(payload: &Payload<'_>) -> Self {
        // One buffer for both.
        let bytes = Bytes::from([payload.args, payload.kwargs].concat());
        Self {
            serializer: payload.serializer,
            args: bytes.slice(..payload.args.len()),
            kwargs: bytes.slice(payload.args.len()..),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.args.len() + self.kwargs.len()
    }
}

/// Why a request has not come to what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The realm, or whoever was called, says no.
    Error { uri: String, payload: Kept },
    /// There is no such realm or role.
    NotLetIn(NotLetIn),
    /// The session ended, or did not take the request.
    Lost(String),
}

impl Failed {
    /// Of a reply that is no answer to what was asked.
    pub(super) fn of(reply: Reply<'_>) -> Self {
        match reply {
            Reply::Error { uri, payload } => Self::Error {
                uri: uri.to_owned(),
                payload: Kept::of(&payload),
            },
            Reply::Lost(text) => Self::Lost(text.to_owned()),
            _ => Self::Lost("the answer is one to something else".to_owned()),
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

//! The meaning of the router's messages for the application.

use crosstie_wamp::{
    Dict, EventDetails, InterruptOptions, InvocationDetails, Payload, PublicationId, RequestId,
    SessionId,
};
use thiserror::Error;

use super::ListenerKey;
use crate::error::ApplicationError;

/// See [`Session::handle`](super::Session::handle).
#[derive(Debug)]
pub(crate) enum Effect<'a, W, I> {
    None,
    Joined {
        session: SessionId,
        details: Dict,
    },
    Challenged {
        method: String,
        extra: Dict,
    },
    /// The session is over, or never began.
    Aborted(ApplicationError),
    /// The session is over; at this client's request (`asked`), or by the router for this reason.
    Left {
        asked: bool,
        error: ApplicationError,
    },
    /// A result that is not the last.
    Progress {
        request: RequestId,
        waiter: &'a mut W,
        payload: Payload<'a>,
    },
    Answered {
        waiter: W,
        answer: Answer<'a>,
    },
    /// To be run, and [attached](super::Session::attach) at once.
    Invoked {
        request: RequestId,
        key: ListenerKey,
        details: InvocationDetails<'a>,
        payload: Payload<'a>,
    },
    /// A further chunk for a running invocation.
    Continued {
        request: RequestId,
        running: &'a mut I,
        last: bool,
        payload: Payload<'a>,
    },
    /// The registration or subscription of these has ended without a request.
    Revoked(Vec<ListenerKey>),
    Interrupted {
        running: &'a mut I,
        options: InterruptOptions<'a>,
    },
    Event {
        listeners: &'a [ListenerKey],
        topic: &'a str,
        publication: PublicationId,
        details: EventDetails<'a>,
        payload: Payload<'a>,
    },
}

/// The router's final answer to a request.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    /// RESULT.
    Result(Payload<'a>),
    /// PUBLISHED.
    Published(PublicationId),
    /// REGISTERED, UNREGISTERED, SUBSCRIBED or UNSUBSCRIBED.
    Done,
    /// ERROR.
    Refused { uri: String, payload: Payload<'a> },
}

/// A message that the router must not send. The session cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected {expected}, got {found}")]
pub(crate) struct Violation {
    pub(crate) expected: String,
    pub(crate) found: String,
}

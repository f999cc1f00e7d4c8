//! The errors, one enum per operation; each variant names the party that erred.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crosstie_wamp::codec::TranscodeError;
use thiserror::Error;

use crate::arguments::Arguments;
use crate::authenticator::AuthenticateError;
use crate::endpoint::UrlError;

/// An ERROR message: an error URI with arguments.
///
/// A handler returns one to its caller. A caller gets one from the callee, or from the router if no callee could be
/// called.
#[derive(Clone, Debug, Error)]
#[error("{uri}{}", Shown(arguments))]
pub struct ApplicationError {
    /// The error's URI.
    pub uri: String,
    /// The error's arguments.
    pub arguments: Arguments,
}

impl ApplicationError {
    /// An error with that URI, for instance `com.example.error.too_young`.
    pub fn new(uri: impl Into<String>, arguments: impl Into<Arguments>) -> Self {
        Self {
            uri: uri.into(),
            arguments: arguments.into(),
        }
    }
}

struct Shown<'a>(&'a Arguments);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        match self.0.to_json() {
            Ok((args, kwargs)) if kwargs == "{}" => write!(f, " {args}"),
            Ok((args, kwargs)) => write!(f, " {args} {kwargs}"),
            Err(error) => write!(f, " (arguments that JSON cannot show: {error})"),
        }
    }
}

/// The reason why a message cannot be sent: the application exceeded a limit.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsendable {
    /// The message is larger than the router accepts.
    #[error("message of {length} bytes, but the router accepts at most {length_max}")]
    TooLong {
        /// Its size, in bytes.
        length: usize,
        /// The router's maximum, in bytes.
        length_max: usize,
    },
    /// The arguments have no form in the session's serializer, for instance not a number in JSON.
    #[error("arguments that the session's serializer cannot hold: {0}")]
    Arguments(#[from] TranscodeError),
}

/// The reason why a client did not join a realm.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The URL is not a router's.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// Nothing listens at the address, or it cannot be reached.
    #[error("cannot reach {endpoint}: {source}")]
    Dial {
        /// The address.
        endpoint: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The router's certificate is not trusted, or a CA file is malformed.
    #[error("no TLS with {endpoint}: {source}")]
    Tls {
        /// The address.
        endpoint: String,
        /// The reason for the rejection.
        source: io::Error,
    },
    /// The server does not support that transport, or not with this serializer.
    #[error("no handshake with {endpoint}: {reason}")]
    Handshake {
        /// The address.
        endpoint: String,
        /// The reason, for people.
        reason: String,
    },
    /// The router refused the session.
    #[error("router refused realm {realm:?}: {error}")]
    Aborted {
        /// The realm.
        realm: String,
        /// The reason, an error URI that the router sent.
        error: ApplicationError,
    },
    /// The router's challenge cannot be answered, or its proof is wrong.
    #[error(transparent)]
    Authenticate(#[from] AuthenticateError),
    /// The connection ended before the session began.
    #[error("{endpoint}: {cause}")]
    Lost {
        /// The address.
        endpoint: String,
        /// The reason of the end.
        cause: Disconnected,
    },
    /// There was no session within [`Config::connect_timeout`](crate::Config::connect_timeout).
    #[error("no session with {endpoint} within {after:?}")]
    TimedOut {
        /// The address.
        endpoint: String,
        /// The time limit.
        after: Duration,
    },
}

/// The reason why there is no session any more.
#[non_exhaustive]
#[derive(Clone, Debug, Error)]
pub enum Disconnected {
    /// This client has left, or all its handles were dropped.
    #[error("this client has left")]
    Left,
    /// The router sent GOODBYE with this reason.
    #[error("the router ended the session: {0}")]
    Goodbye(ApplicationError),
    /// The router sent ABORT with this reason.
    #[error("the router aborted the session: {0}")]
    Aborted(ApplicationError),
    /// The router closed the connection without a message of WAMP.
    #[error("the router closed the connection{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Closed {
        /// The reason in a WebSocket's close frame.
        reason: Option<String>,
    },
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Broken(Arc<io::Error>),
    /// The router sent what WAMP forbids.
    #[error("the router broke the protocol: {0}")]
    Protocol(String),
    /// The router did not answer a ping for a whole [`Config::ping_interval`](crate::Config::ping_interval).
    #[error("the router was silent for {0:?} after a ping")]
    Silent(Duration),
    /// The router does not read what it is sent, and messages that cannot wait fill the queue.
    #[error("the router reads too slowly: {0} bytes are queued")]
    Stalled(usize),
    /// The last attempt that the configuration allows has failed.
    #[error("reconnecting failed {attempts} times: {last}")]
    GivenUp {
        /// The number of attempts.
        attempts: u32,
        /// The failure of the last one.
        last: Arc<ConnectError>,
    },
}

/// The reason why a call has no result.
#[non_exhaustive]
#[derive(Clone, Debug, Error)]
pub enum CallError {
    /// The callee failed, or the router found none that may be called.
    #[error("{0}")]
    Application(ApplicationError),
    /// The call was cancelled: `wamp.error.canceled`.
    #[error("call cancelled: {0}")]
    Canceled(ApplicationError),
    /// The call's time limit is over.
    #[error("no result in time")]
    TimedOut,
    /// More arguments were sent to a call that was answered already.
    #[error("the call was answered already")]
    Answered,
    /// Progressive results arrived faster than they were taken; the call was cancelled.
    #[error("more than {results_max} progressive results were waiting")]
    Overflow {
        /// The bound, [`CallOptions::results_max`](crate::CallOptions::results_max).
        results_max: usize,
    },
    /// The call cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// The session ended before the result; the callee may have been called.
    #[error("{0}")]
    Disconnected(Disconnected),
}

/// The reason why a procedure was not registered or unregistered.
#[non_exhaustive]
#[derive(Clone, Debug, Error)]
pub enum RegisterError {
    /// The router refused the request, with this reason.
    #[error("router refused: {0}")]
    Refused(ApplicationError),
    /// The request cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// There is no session, or it ended before the answer.
    #[error("{0}")]
    Disconnected(Disconnected),
}

/// The reason why a topic was not subscribed or unsubscribed.
#[non_exhaustive]
#[derive(Clone, Debug, Error)]
pub enum SubscribeError {
    /// The router refused the request, with this reason.
    #[error("router refused: {0}")]
    Refused(ApplicationError),
    /// The request cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// There is no session, or it ended before the answer.
    #[error("{0}")]
    Disconnected(Disconnected),
}

/// The reason why a publication failed, or was not acknowledged.
#[non_exhaustive]
#[derive(Clone, Debug, Error)]
pub enum PublishError {
    /// The router refused the publication, with this reason.
    #[error("router refused: {0}")]
    Refused(ApplicationError),
    /// The publication cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// There is no session; with `acknowledge`, also: it ended before the answer.
    #[error("{0}")]
    Disconnected(Disconnected),
}

/// The reason why a progressive result was not sent.
#[non_exhaustive]
#[derive(Clone, Debug, Error)]
pub enum ProgressError {
    /// The caller did not request progressive results; only a final one may be sent.
    #[error("the caller does not accept progressive results")]
    NotWanted,
    /// The invocation was answered, or its session has ended.
    #[error("the invocation is over")]
    Over,
    /// The result cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// The session of the invocation is over.
    #[error("{0}")]
    Disconnected(Disconnected),
}

/// The failure of a request that the router answers once; the operations' own enums are more specific.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Refused(ApplicationError),
    Unsendable(Unsendable),
    Disconnected(Disconnected),
}

impl From<Unsendable> for Failure {
    fn from(error: Unsendable) -> Self {
        Self::Unsendable(error)
    }
}

impl From<Disconnected> for Failure {
    fn from(error: Disconnected) -> Self {
        Self::Disconnected(error)
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => match error.uri.as_str() {
                "wamp.error.canceled" => Self::Canceled(error),
                "wamp.error.timeout" => Self::TimedOut,
                _ => Self::Application(error),
            },
            Failure::Unsendable(error) => Self::Unsendable(error),
            Failure::Disconnected(error) => Self::Disconnected(error),
        }
    }
}

macro_rules! from_failure {
    ($($name:ident)*) => {$(
        impl From<Failure> for $name {
            fn from(failure: Failure) -> Self {
                match failure {
                    Failure::Refused(error) => Self::Refused(error),
                    Failure::Unsendable(error) => Self::Unsendable(error),
                    Failure::Disconnected(error) => Self::Disconnected(error),
                }
            }
        }
    )*};
}

from_failure! { RegisterError SubscribeError PublishError }

//! The operations on a realm.

use crosstie_routing::{ClientFeatures, Refused, Verdict, error};
use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Message, MessageType, Payload, PublishOptions,
    RegisterOptions, RegistrationId, RequestId, Serializer, SubscribeOptions, SubscriptionId,
    YieldOptions,
};

use crate::Ask;

/// A session of the simulation: its handle in the realm, never used twice.
pub type Name = u32;

/// One step.
#[derive(Clone, Debug)]
pub enum Operation {
    Join {
        name: Name,
        authid: String,
        authrole: String,
        features: ClientFeatures,
        /// It is sent its WELCOME at once.
        welcomed: bool,
    },
    /// A session is sent its WELCOME, and is spoken of from now on.
    Welcome {
        name: Name,
    },
    Leave {
        name: Name,
    },
    Send {
        from: Name,
        request: Request,
    },
    /// An authorizer has answered: the message that it was asked about comes again. Its session may have
    /// left meanwhile.
    Judge {
        name: Name,
        request: Request,
        verdict: Verdict,
    },
    /// From now on the session takes no messages, or all again.
    Refuse {
        name: Name,
        refusing: Option<Refusing>,
    },
    Pass {
        milliseconds: u64,
    },
    /// A role is stopped, and started again.
    StopRole {
        authrole: String,
    },
    /// The realm is stopped.
    End,
}

/// How a session refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusing {
    Full,
    Gone,
    /// Other sessions' payloads have a form that it cannot receive.
    Unrepresentable,
}

impl Refusing {
    /// The refusal of a message, if it is refused.
    pub fn refusal(self, carries_payload: bool) -> Option<Refused> {
        match self {
            Self::Full => Some(Refused::Full),
            Self::Gone => Some(Refused::Gone),
            Self::Unrepresentable => {
                carries_payload.then_some(Refused::Unrepresentable("simulated"))
            }
        }
    }
}

/// A message of a client. Payloads are numbers, so that each can be told from all others.
#[derive(Clone, Debug)]
pub enum Request {
    Publish {
        request: u64,
        options: PublishOptions,
        topic: String,
        payload: u64,
    },
    Subscribe {
        request: u64,
        options: SubscribeOptions,
        topic: String,
    },
    Unsubscribe {
        request: u64,
        subscription: u64,
    },
    Call {
        request: u64,
        options: CallOptions,
        procedure: String,
        payload: u64,
    },
    Cancel {
        request: u64,
        mode: CancelMode,
    },
    Register {
        request: u64,
        options: RegisterOptions,
        procedure: String,
    },
    Unregister {
        request: u64,
        registration: u64,
    },
    Yield {
        invocation: u64,
        progress: bool,
        payload: u64,
    },
    Error {
        invocation: u64,
        /// Another callee is to be asked.
        is_unavailable: bool,
        payload: u64,
    },
    /// A CALL of the meta API.
    Meta {
        request: u64,
        ask: Ask,
    },
    /// A message that no client may send.
    Nonsense,
}

/// The error that simulated callees fail with.
const CALLEE_ERROR: &str = "com.simulated.error";

/// A callee's error for a call.
pub(crate) fn callee_error(is_unavailable: bool) -> &'static str {
    match is_unavailable {
        true => error::UNAVAILABLE,
        false => CALLEE_ERROR,
    }
}

impl Request {
    /// Shows the message that this is.
    pub fn with_message<R>(&self, show: impl FnOnce(&Message<'_>) -> R) -> R {
        let args = match self {
            Self::Meta { ask, .. } => ask.arguments(),
            _ => self
                .payload()
                .map(|number| format!("[{number}]"))
                .unwrap_or_default(),
        };
        let payload = Payload::new(Serializer::Json, args.as_bytes(), b"");
        let message = match self {
            Self::Publish {
                request,
                options,
                topic,
                ..
            } => Message::Publish {
                request: RequestId(*request),
                options: options.clone(),
                topic: topic.into(),
                payload,
            },
            Self::Subscribe {
                request,
                options,
                topic,
            } => Message::Subscribe {
                request: RequestId(*request),
                options: options.clone(),
                topic: topic.into(),
            },
            Self::Unsubscribe {
                request,
                subscription,
            } => Message::Unsubscribe {
                request: RequestId(*request),
                subscription: SubscriptionId(*subscription),
            },
            Self::Call {
                request,
                options,
                procedure,
                ..
            } => Message::Call {
                request: RequestId(*request),
                options: options.clone(),
                procedure: procedure.into(),
                payload,
            },
            Self::Meta { request, ask } => Message::Call {
                request: RequestId(*request),
                options: CallOptions::default(),
                procedure: ask.procedure().into(),
                payload,
            },
            Self::Cancel { request, mode } => Message::Cancel {
                request: RequestId(*request),
                options: CancelOptions { mode: *mode },
            },
            Self::Register {
                request,
                options,
                procedure,
            } => Message::Register {
                request: RequestId(*request),
                options: options.clone(),
                procedure: procedure.into(),
            },
            Self::Unregister {
                request,
                registration,
            } => Message::Unregister {
                request: RequestId(*request),
                registration: RegistrationId(*registration),
            },
            Self::Yield {
                invocation,
                progress,
                ..
            } => Message::Yield {
                request: RequestId(*invocation),
                options: YieldOptions {
                    progress: *progress,
                    passthru: None,
                },
                payload,
            },
            Self::Error {
                invocation,
                is_unavailable,
                ..
            } => Message::Error {
                request_type: MessageType::Invocation,
                request: RequestId(*invocation),
                details: Vec::new(),
                error: callee_error(*is_unavailable).into(),
                payload,
            },
            Self::Nonsense => Message::Unregistered {
                request: RequestId(1),
                revoked: None,
            },
        };
        show(&message)
    }

    /// The number of a request that is the next in its session's sequence. A CALL has rules of its own: it may continue
    /// a call.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Publish { request, .. }
            | Self::Subscribe { request, .. }
            | Self::Unsubscribe { request, .. }
            | Self::Register { request, .. }
            | Self::Unregister { request, .. } => Some(*request),
            _ => None,
        }
    }

    /// The number of a call.
    pub(crate) fn call_number(&self) -> Option<u64> {
        match self {
            Self::Call { request, .. } | Self::Meta { request, .. } => Some(*request),
            _ => None,
        }
    }

    fn payload(&self) -> Option<u64> {
        match self {
            Self::Publish { payload, .. }
            | Self::Call { payload, .. }
            | Self::Yield { payload, .. }
            | Self::Error { payload, .. } => Some(*payload),
            _ => None,
        }
    }
}

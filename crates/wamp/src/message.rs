//! The WAMP messages (basic profile "Messages", advanced profile "Messages").

use std::borrow::Cow;

use crate::options::{
    CallOptions, CancelOptions, EventDetails, InterruptOptions, InvocationDetails, PublishOptions,
    RegisterOptions, ResultDetails, Revoked, SubscribeOptions, YieldOptions,
};
use crate::{
    Dict, Payload, PublicationId, RegistrationId, RequestId, SessionId, SubscriptionId, Value,
};

/// One message, borrowing from the bytes it was decoded from.
///
/// A value of this type is well-formed: ids are in range, URIs are text (their grammar is the
/// realm's business), and the payload is valid in its serializer.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    Hello {
        /// Empty if the client leaves it to the router (null).
        realm: Cow<'a, str>,
        details: Dict,
    },
    Welcome {
        session: SessionId,
        details: Dict,
    },
    Abort {
        details: Dict,
        reason: Cow<'a, str>,
    },
    Challenge {
        method: Cow<'a, str>,
        extra: Dict,
    },
    Authenticate {
        signature: Cow<'a, str>,
        extra: Dict,
    },
    Goodbye {
        details: Dict,
        reason: Cow<'a, str>,
    },
    Error {
        request_type: MessageType,
        request: RequestId,
        details: Dict,
        error: Cow<'a, str>,
        payload: Payload<'a>,
    },
    Publish {
        request: RequestId,
        options: PublishOptions,
        topic: Cow<'a, str>,
        payload: Payload<'a>,
    },
    Published {
        request: RequestId,
        publication: PublicationId,
    },
    Subscribe {
        request: RequestId,
        options: SubscribeOptions,
        topic: Cow<'a, str>,
    },
    Subscribed {
        request: RequestId,
        subscription: SubscriptionId,
    },
    Unsubscribe {
        request: RequestId,
        subscription: SubscriptionId,
    },
    Unsubscribed {
        /// 0 if a subscription is revoked.
        request: RequestId,
        revoked: Option<Revoked<'a, SubscriptionId>>,
    },
    Event {
        subscription: SubscriptionId,
        publication: PublicationId,
        details: EventDetails<'a>,
        payload: Payload<'a>,
    },
    EventReceived {
        publication: PublicationId,
    },
    Call {
        request: RequestId,
        options: CallOptions,
        procedure: Cow<'a, str>,
        payload: Payload<'a>,
    },
    Cancel {
        request: RequestId,
        options: CancelOptions,
    },
    Result {
        request: RequestId,
        details: ResultDetails<'a>,
        payload: Payload<'a>,
    },
    Register {
        request: RequestId,
        options: RegisterOptions,
        procedure: Cow<'a, str>,
    },
    Registered {
        request: RequestId,
        registration: RegistrationId,
    },
    Unregister {
        request: RequestId,
        registration: RegistrationId,
    },
    Unregistered {
        /// 0 if a registration is revoked.
        request: RequestId,
        revoked: Option<Revoked<'a, RegistrationId>>,
    },
    Invocation {
        request: RequestId,
        registration: RegistrationId,
        details: InvocationDetails<'a>,
        payload: Payload<'a>,
    },
    Interrupt {
        request: RequestId,
        options: InterruptOptions<'a>,
    },
    Yield {
        request: RequestId,
        options: YieldOptions,
        payload: Payload<'a>,
    },
}

/// The code under which clients send EVENT_RECEIVED as long as the specification does not have it.
pub(crate) const EVENT_RECEIVED_IN_USE: u64 = 337;

/// The type code, first element of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MessageType {
    Hello = 1,
    Welcome = 2,
    Abort = 3,
    Challenge = 4,
    Authenticate = 5,
    Goodbye = 6,
    Error = 8,
    Publish = 16,
    Published = 17,
    Subscribe = 32,
    Subscribed = 33,
    Unsubscribe = 34,
    Unsubscribed = 35,
    Event = 36,
    /// Proposed for the specification, and in use under [`EVENT_RECEIVED_IN_USE`].
    EventReceived = 37,
    Call = 48,
    Cancel = 49,
    Result = 50,
    Register = 64,
    Registered = 65,
    Unregister = 66,
    Unregistered = 67,
    Invocation = 68,
    Interrupt = 69,
    Yield = 70,
}

impl MessageType {
    /// Every type, in the order of the codes.
    pub const ALL: [Self; 25] = [
        Self::Hello,
        Self::Welcome,
        Self::Abort,
        Self::Challenge,
        Self::Authenticate,
        Self::Goodbye,
        Self::Error,
        Self::Publish,
        Self::Published,
        Self::Subscribe,
        Self::Subscribed,
        Self::Unsubscribe,
        Self::Unsubscribed,
        Self::Event,
        Self::EventReceived,
        Self::Call,
        Self::Cancel,
        Self::Result,
        Self::Register,
        Self::Registered,
        Self::Unregister,
        Self::Unregistered,
        Self::Invocation,
        Self::Interrupt,
        Self::Yield,
    ];

    /// The type with that code.
    pub fn from_code(code: u64) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.code() == code);
        found.or_else(|| (code == EVENT_RECEIVED_IN_USE).then_some(Self::EventReceived))
    }

    /// The code on the wire.
    pub fn code(self) -> u64 {
        self as u64
    }

    /// The specification's name, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Welcome => "WELCOME",
            Self::Abort => "ABORT",
            Self::Challenge => "CHALLENGE",
            Self::Authenticate => "AUTHENTICATE",
            Self::Goodbye => "GOODBYE",
            Self::Error => "ERROR",
            Self::Publish => "PUBLISH",
            Self::Published => "PUBLISHED",
            Self::Subscribe => "SUBSCRIBE",
            Self::Subscribed => "SUBSCRIBED",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::Unsubscribed => "UNSUBSCRIBED",
            Self::Event => "EVENT",
            Self::EventReceived => "EVENT_RECEIVED",
            Self::Call => "CALL",
            Self::Cancel => "CANCEL",
            Self::Result => "RESULT",
            Self::Register => "REGISTER",
            Self::Registered => "REGISTERED",
            Self::Unregister => "UNREGISTER",
            Self::Unregistered => "UNREGISTERED",
            Self::Invocation => "INVOCATION",
            Self::Interrupt => "INTERRUPT",
            Self::Yield => "YIELD",
        }
    }
}

impl Message<'_> {
    /// The type code of this message.
    pub fn kind(&self) -> MessageType {
        match self {
            Self::Hello { .. } => MessageType::Hello,
            Self::Welcome { .. } => MessageType::Welcome,
            Self::Abort { .. } => MessageType::Abort,
            Self::Challenge { .. } => MessageType::Challenge,
            Self::Authenticate { .. } => MessageType::Authenticate,
            Self::Goodbye { .. } => MessageType::Goodbye,
            Self::Error { .. } => MessageType::Error,
            Self::Publish { .. } => MessageType::Publish,
            Self::Published { .. } => MessageType::Published,
            Self::Subscribe { .. } => MessageType::Subscribe,
            Self::Subscribed { .. } => MessageType::Subscribed,
            Self::Unsubscribe { .. } => MessageType::Unsubscribe,
            Self::Unsubscribed { .. } => MessageType::Unsubscribed,
            Self::Event { .. } => MessageType::Event,
            Self::EventReceived { .. } => MessageType::EventReceived,
            Self::Call { .. } => MessageType::Call,
            Self::Cancel { .. } => MessageType::Cancel,
            Self::Result { .. } => MessageType::Result,
            Self::Register { .. } => MessageType::Register,
            Self::Registered { .. } => MessageType::Registered,
            Self::Unregister { .. } => MessageType::Unregister,
            Self::Unregistered { .. } => MessageType::Unregistered,
            Self::Invocation { .. } => MessageType::Invocation,
            Self::Interrupt { .. } => MessageType::Interrupt,
            Self::Yield { .. } => MessageType::Yield,
        }
    }

    /// The application payload, when this kind of message has one.
    pub fn payload(&self) -> Option<&Payload<'_>> {
        match self {
            Self::Error { payload, .. }
            | Self::Publish { payload, .. }
            | Self::Event { payload, .. }
            | Self::Call { payload, .. }
            | Self::Result { payload, .. }
            | Self::Invocation { payload, .. }
            | Self::Yield { payload, .. } => Some(payload),
            _ => None,
        }
    }

    /// The same message with that payload, when this kind of message has one.
    pub fn with_payload<'b>(&'b self, other: Payload<'b>) -> Message<'b> {
        let mut message: Message<'b> = self.clone();
        match &mut message {
            Message::Error { payload, .. }
            | Message::Publish { payload, .. }
            | Message::Event { payload, .. }
            | Message::Call { payload, .. }
            | Message::Result { payload, .. }
            | Message::Invocation { payload, .. }
            | Message::Yield { payload, .. } => *payload = other,
            _ => {}
        }
        message
    }

    /// Whether its head says how its payload is encoded (`enc_algo`), so that the payload may be
    /// one text or binary value in place of the arguments.
    pub fn is_encoded(&self) -> bool {
        let attributes = match self {
            Self::Error { details, .. } => Some(details),
            Self::Publish { options, .. } => options.passthru.as_deref(),
            Self::Event { details, .. } => details.passthru.as_deref(),
            Self::Call { options, .. } => options.passthru.as_deref(),
            Self::Result { details, .. } => details.passthru.as_deref(),
            Self::Invocation { details, .. } => details.passthru.as_deref(),
            Self::Yield { options, .. } => options.passthru.as_deref(),
            _ => None,
        };
        attributes.is_some_and(|attributes| {
            // Text that looks like binary in JSON has become binary on its way through it.
            attributes.iter().any(|(key, value)| {
                key == "enc_algo" && matches!(value, Value::String(_) | Value::Binary(_))
            })
        })
    }
}

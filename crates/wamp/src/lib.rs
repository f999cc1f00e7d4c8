//! WAMP values and wire formats: messages, ids, URIs, the three serializers and the two framings.
//!
//! Everything here is a function of its bytes. There is no IO, no clock and no async in this
//! crate, and it knows nothing of realms or sessions: `crosstie-routing` decides, this crate
//! only reads and writes.
//!
//! A message's head (type, ids, options, URI) is decoded; its arguments are walked by a
//! validator and kept as the bytes they came in ([`Payload`]), so that a router which passes
//! them on to a peer with the same serializer never builds a value from them.

pub mod codec;
pub mod framing;
mod id;
mod message;
mod options;
mod payload;
mod seldom;
mod serializer;
mod text;
pub mod uri;
mod value;

pub use id::{ID_MAX, PublicationId, RegistrationId, RequestId, SessionId, SubscriptionId};
pub use message::{Message, MessageType};
pub use options::{
    CallOptions, CancelMode, CancelOptions, Disclosed, EventDetails, FORWARD_FOR, InterruptOptions,
    InvocationDetails, InvocationPolicy, MatchPolicy, PublishOptions, Receivers, RegisterOptions,
    ResultDetails, Revoked, Runmode, Sharding, SubscribeOptions, TRUSTLEVEL, Unsupported,
    YieldOptions,
};
pub use payload::Payload;
pub use seldom::Seldom;
pub use serializer::Serializer;
pub use value::{Dict, Value};

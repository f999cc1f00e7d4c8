//! What WAMP and AMQP say to each other through a joint: functions of text and bytes.
//!
//! A WAMP procedure can be a target of oslo.messaging, and the reverse; a WAMP topic can be an AMQP
//! exchange, and the reverse. Here is what of the one becomes what of the other:
//!
//! - [`Arguments`]: a message's arguments, and what they are in a call, a result or a [`Body`];
//! - [`Call`], [`Request`], [`Reply`], [`RemoteFailure`]: oslo.messaging's envelope and what is in it;
//! - [`Exceptions`]: errors, by URI on one side and by class on the other;
//! - [`Template`]: names made from names;
//! - [`Circle`]: whether joints lead back to themselves.
//!
//! Never: IO, a clock, a session, a channel.

mod arguments;
mod body;
mod circle;
mod envelope;
mod exceptions;
mod failure;
mod template;
mod version;

pub use arguments::{Arguments, ArgumentsError};
pub use body::{Body, BodyError, Written};
pub use circle::{AmqpPlace, Circle, End, Uris};
pub use envelope::{Call, EnvelopeError, Reply, Request, RequestText, read_reply, read_request};
pub use exceptions::{Exception, Exceptions};
pub use failure::RemoteFailure;
pub use template::{Template, TemplateError, uri_part};
pub use version::is_compatible;

/// The header of an AMQP message that says through how many joints it has come.
pub const HOPS_HEADER: &str = "crosstie-hops";

/// The same in the options of a WAMP message, which a realm passes on because of the underscore.
pub const HOPS_OPTION: &str = "_crosstie_hops";

//! The translation between WAMP and AMQP in a joint: functions of text and bytes.
//!
//! A WAMP procedure can be a target of oslo.messaging, and the reverse; a WAMP topic can be an AMQP exchange, and the
//! reverse. This crate converts the messages:
//!
//! - [`Arguments`]: a message's arguments, and their form in a call, a result or a [`Body`];
//! - [`Call`], [`Request`], [`Reply`], [`RemoteFailure`]: oslo.messaging's envelope and its contents;
//! - [`Exceptions`]: errors, by URI on one side and by class on the other;
//! - [`Template`]: names made from names;
//! - [`Circle`]: detects joints that form a circle.
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

/// The header of an AMQP message with the number of joints that it has passed.
pub const HOPS_HEADER: &str = "crosstie-hops";

/// The same as an option of a WAMP message; realms forward it because of the underscore.
pub const HOPS_OPTION: &str = "_crosstie_hops";

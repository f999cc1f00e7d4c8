//! OAuth 2 tokens in the place of AMQP passwords: the claims and scopes of RabbitMQ's plugin.
//!
//! ```text
//! a token ─▶ Rules::read (the signature, the claims) ─▶ Token: a user, tags, scopes, an end
//! Token, a vhost ─▶ Grants, if the user may open it ─▶ may(…), may_topic(…)
//! ```
//!
//! The end of a token is not judged here, as one that has ended may replace another one.

mod claims;
mod flaw;
mod grants;
mod rules;
mod scope;
mod token;
mod wildcard;

pub use flaw::Flaw;
pub use grants::Grants;
pub use rules::Rules;
pub use scope::{Scope, ScopeError};
pub use token::Token;

//! The identity that this client claims, and its proof.

mod anonymous;
mod challenge;
mod cryptosign;
mod scram;
mod ticket;
mod wampcra;

pub use anonymous::Anonymous;
pub use challenge::{AuthenticateError, Authenticator, Challenge, Signature};
pub use cryptosign::Cryptosign;
pub use scram::Scram;
pub use ticket::Ticket;
pub use wampcra::WampCra;

//! WAMP's authentication methods (advanced profile, "Authentication"), with Crossbar.io's additional ones.
//!
//! ```text
//! Methods, Hello, Given, Channel ─▶ Handshake::begin ─▶ Step
//! AUTHENTICATE              ─▶ Handshake::handle_authenticate ─▶ Step
//! an authenticator answered ─▶ Handshake::handle_answer ─▶ Step
//! a key was derived         ─▶ Handshake::handle_key ─▶ Step
//! keys were fetched         ─▶ Handshake::handle_keys ─▶ Step
//!
//! Step: Accept(Principal)   send WELCOME, if the realm exists and has the role
//!       Challenge           send CHALLENGE; the next input is AUTHENTICATE
//!       Call                call an authenticator; the next input is its answer
//!       Derive              derive a key, on a thread that may block
//!       Fetch               fetch the keys of the tokens' issuer
//!       Refuse(Refusal)     send ABORT
//! ```

mod anonymous;
mod answer;
mod authenticator;
mod channel;
mod choose;
mod client;
pub mod cookie;
mod cryptosign;
mod decoys;
mod derivation;
mod fresh;
mod handshake;
mod hello;
mod hexadecimal;
pub mod jwt;
mod mac;
mod method;
mod methods;
mod next;
mod principal;
mod principals_file;
mod refusal;
mod resumption;
pub mod scram;
mod source;
mod standing;
mod step;
mod ticket;
mod tls;
mod wampcra;

pub use anonymous::Anonymous;
pub use answer::{Answer, Unanswered};
pub use authenticator::Authenticator;
pub use channel::Channel;
pub use choose::offers_cookie;
pub use client::dict_bytes;
pub use cryptosign::{Cryptosign, KeyHolder, KeyHolders, PublicKey, PublicKeyError, SigningKey};
pub use derivation::Derivation;
pub use fresh::{Given, rfc3339};
pub use handshake::Handshake;
pub use hello::{Hello, Malformed};
pub use jwt::Jwt;
pub use method::Method;
pub use methods::Methods;
pub use principal::{Principal, Provider};
pub use principals_file::PrincipalsFile;
pub use refusal::{Cause, ErrorTexts, Refusal};
pub use resumption::{ResumeToken, Resumption};
pub use scram::Scram;
pub use source::Source;
pub use step::{Call, Step};
pub use ticket::{Ticket, TicketHash, TicketHashError, TicketWork, Tickets};
pub use tls::{Certificate, CertificateHolder, CertificateHolders, Tls, fingerprint};
pub use wampcra::{Key, KeyDerivation, Salted, Secret, SecretError, Users, WampCra};

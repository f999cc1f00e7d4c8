//! What a router's web services say over HTTP: functions of text and bytes.
//!
//! A path of a request goes in, and what may be served below a directory comes out; who asks for a
//! procedure by a signed request, and what is answered; what another server or a script is told of a
//! request, and what it may answer. *Never:* IO, a clock, a realm.

pub mod bridge;
pub mod cgi;
pub mod coding;
pub mod condition;
pub mod forward;
pub mod http2;
pub mod leading;
pub mod longpoll;
pub mod path;
pub mod range;

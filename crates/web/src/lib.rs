//! The logic of a router's web services: functions of text and bytes.
//!
//! Paths and files, signed requests for procedures, the bridge's answers, the requests and answers of other servers and
//! of scripts. *Never:* IO, a clock, a realm.

pub mod bridge;
pub mod cgi;
pub mod coding;
pub mod condition;
pub mod forward;
pub mod http2;
pub mod longpoll;
pub mod path;
pub mod range;
pub mod rewrite;

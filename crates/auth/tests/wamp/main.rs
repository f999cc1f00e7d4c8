//! WAMP's methods of authentication: handshakes as scripts, and vectors.

mod cookies;
mod cryptosign;
mod handshakes;
mod jwt;
mod scram;
mod script;
mod ticket_hashes;
mod tls;
mod vectors;

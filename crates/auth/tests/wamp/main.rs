//! WAMP's methods of authentication: handshakes as scripts, and vectors.

mod handshakes;
mod script;
mod vectors;

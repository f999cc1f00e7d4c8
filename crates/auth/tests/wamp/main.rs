//! WAMP's methods of authentication: handshakes as scripts, and vectors.

mod handshakes;
mod scram;
mod script;
mod vectors;

//! Users of AMQP, and the credentials of both protocols; `wamp` has the methods of WAMP.

mod guesses;
mod oauth2;
mod password;
mod permissions;
mod private_key;
mod sasl;
mod users;
mod x509;

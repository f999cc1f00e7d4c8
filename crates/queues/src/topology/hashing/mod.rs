//! Exchanges that choose one of their bindings for each message: `x-consistent-hash`, `x-modulus-hash` and `x-random`.
//!
//! A message's hash and its place are RabbitMQ's, so that clients that compute them agree. An exchange as destination
//! is chosen like a queue.

mod consistent;
mod erlang;
mod jump;
mod modulus;
mod shares;

pub(super) use consistent::{ConsistentHash, HashOn, Weight};
pub(super) use modulus::ModulusHash;

/// RabbitMQ's hash of a binding's arguments, by which its management API names the binding.
pub fn arguments_hash(arguments: crosstie_amqp::Table<'_>) -> u32 {
    erlang::arguments(arguments)
}

/// Bytes of a hashed text per step.
const BYTES_PER_STEP: usize = 256;

/// The steps of hashing that many bytes and of finding a place.
fn steps(bytes: usize) -> u64 {
    2 + (bytes / BYTES_PER_STEP) as u64
}

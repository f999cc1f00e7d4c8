//! The parts that `bench oslo` and `bench amqp` share: brokers of AMQP 0-9-1, ours and others', starting and reaching
//! them, and a blocking connection with minimal costs.

pub(crate) mod confirms;
pub(crate) mod depth;
pub(crate) mod floor;
mod node;
mod queue;
mod replicated;
mod spliced;
pub(crate) mod subjects;
pub(crate) mod url;
pub(crate) mod wire;

pub(crate) use queue::Queue;
pub(crate) use spliced::Spliced;
pub(crate) use url::Broker;

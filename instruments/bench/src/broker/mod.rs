//! What `bench oslo` and `bench amqp` share: brokers of AMQP 0-9-1, ours and others', how they are
//! started and reached, and a blocking connection that costs as little as one can.

pub(crate) mod confirms;
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

//! The keys of declarations.

use std::sync::Arc;

use crosstie_amqp::TableBuf;
use crosstie_queues::{Destination, QueueId, Record};

/// The key of a live declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Exchange(Arc<str>),
    Queue(QueueId),
    Binding(Arc<Binding>),
    Setting(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Binding {
    pub(crate) source: Arc<str>,
    pub(crate) destination: Destination,
    routing_key: Arc<str>,
    arguments: TableBuf,
}

impl Binding {
    pub(crate) fn record(&self, order: u64) -> Record {
        Record::Bound {
            source: Arc::clone(&self.source),
            destination: self.destination.clone(),
            routing_key: Arc::clone(&self.routing_key),
            arguments: self.arguments.clone(),
            order,
        }
    }
}

pub(crate) fn binding(record: &Record) -> Option<Binding> {
    let (Record::Bound {
        source,
        destination,
        routing_key,
        arguments,
        ..
    }
    | Record::Unbound {
        source,
        destination,
        routing_key,
        arguments,
    }) = record
    else {
        return None;
    };
    Some(Binding {
        source: Arc::clone(source),
        destination: destination.clone(),
        routing_key: Arc::clone(routing_key),
        arguments: arguments.clone(),
    })
}

//! Traces of a vhost: a copy of each published and each delivered message, sent to the exchange `amq.rabbitmq.trace`.
//!
//! Copies wait for the end of the input, so that no queue delivers while another does. They are transient, confirmed to
//! nobody, and dropped if memory is short.

use std::sync::Arc;

use crosstie_amqp::{BasicProperties, Table, TableBuf, Value};

use super::Vhost;
use crate::channels::Outgoing;
use crate::queues::{Handling, Incoming, array_field, push_string};
use crate::topology::{Routed, header_keys};
use crate::{ChannelKey, MessageContent, Outbox, QueueKey, Time};

/// The exchange of traces, which each vhost has.
pub(crate) const TRACE_EXCHANGE: &str = "amq.rabbitmq.trace";

/// Steps of a copy, beside its routing: its headers are written.
const TRACE_STEPS: usize = 16;

impl<H> Vhost<H> {
    /// Begins to trace messages, or ends that. The copies name the node.
    pub fn set_traced(&mut self, node: Option<Arc<str>>) {
        self.tracing = node;
    }

    /// Copies a publication that is about to go to these queues. `headers` has all routing keys.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_published(
        &mut self,
        key: ChannelKey,
        (message, headers): (&Outgoing<'_>, Table<'_>),
        targets: &[QueueKey],
        out: &dyn Outbox<H>,
    ) {
        let mut names = Vec::new();
        for queue in targets.iter().filter_map(|key| self.queues.find(*key)) {
            push_string(&mut names, queue.name.as_bytes());
        }
        let routing_key = format!("publish.{}", message.exchange);
        let more = with_array(TableBuf::new(), "routed_queues", &names);
        self.trace(key, (message, headers), &routing_key, more, out);
    }

    /// Copies a message that a queue has delivered.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_delivered(
        &mut self,
        key: ChannelKey,
        queue: QueueKey,
        message: &Outgoing<'_>,
        out: &dyn Outbox<H>,
    ) {
        let Some(queue) = self.queues.find(queue) else {
            return;
        };
        let routing_key = format!("deliver.{}", queue.name);
        let more = TableBuf::new().with("redelivered", Value::I32(message.is_redelivered.into()));
        let headers = message.properties.parse_for_broker().headers;
        let headers = headers.unwrap_or_default();
        self.trace(key, (message, headers), &routing_key, more, out);
    }

    fn trace(
        &mut self,
        key: ChannelKey,
        (message, headers): (&Outgoing<'_>, Table<'_>),
        routing_key: &str,
        more: TableBuf,
        out: &dyn Outbox<H>,
    ) {
        let Some((channel, connection)) = self.channels.both(key) else {
            return;
        };
        let name = out.traced_name(&connection.handle);
        let (Some(name), Some(node)) = (name, &self.tracing) else {
            return;
        };
        // Copies are not copied.
        if message.exchange == TRACE_EXCHANGE {
            return;
        }
        let mut keys = Vec::new();
        push_string(&mut keys, message.routing_key.as_bytes());
        for key in header_keys(headers) {
            push_string(&mut keys, key.as_bytes());
        }
        let properties = properties(&message.properties.parse());
        let table = more
            .with(
                "exchange_name",
                Value::LongString(message.exchange.as_bytes()),
            )
            .with("properties", Value::Table(properties.as_table()))
            .with("node", Value::LongString(node.as_bytes()))
            .with("vhost", Value::LongString(self.config.name.as_bytes()))
            .with("connection", Value::LongString(name.as_bytes()))
            .with("channel", Value::I32(channel.number.into()))
            .with("user", Value::LongString(connection.client.user.as_bytes()));
        let table = with_array(table, "routing_keys", &keys);
        let written = BasicProperties {
            headers: Some(table.as_table()),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        written.write(&mut bytes);
        let steps = &mut self.ledger.steps;
        steps.spend(TRACE_STEPS);
        steps.spend_on_body(message.body.len());
        let content = MessageContent::new(TRACE_EXCHANGE, routing_key, &bytes, message.body);
        self.queues.dead_mut().trace(content);
    }

    /// Sends the copies of this input to the queues that are bound for them.
    pub(super) fn publish_traces(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        while let Some(content) = self.queues.dead_mut().next_trace() {
            let Some(exchange) = self.topology.exchange(TRACE_EXCHANGE) else {
                return;
            };
            let content = Arc::new(content);
            let headers = content.properties().parse_for_broker().headers;
            let routed = Routed {
                routing_key: content.routing_key(),
                headers: headers.unwrap_or_default(),
                properties: content.properties(),
            };
            let mut targets = std::mem::take(&mut self.targets);
            targets.clear();
            self.topology.route(exchange, routed, &mut targets);
            let mut incoming = Incoming::kept(&content, Handling::default());
            for target in &targets {
                self.enqueue(now, *target, &mut incoming, out);
            }
            self.targets = targets;
            if self.topology.has_passed() {
                self.keep_passed(now, routed.headers, &mut incoming);
            }
        }
    }
}

/// The properties of a message as a table, with RabbitMQ's types.
fn properties(properties: &BasicProperties<'_>) -> TableBuf {
    let mut table = TableBuf::new();
    for (name, text) in properties.texts() {
        if let Some(text) = text {
            table = table.with(name, Value::LongString(text.as_bytes()));
        }
    }
    for (name, number) in properties.numbers() {
        table = match number.map(|number| (number, i32::try_from(number))) {
            None => table,
            Some((_, Ok(number))) => table.with(name, Value::I32(number)),
            Some((number, Err(_))) => table.with(name, Value::I64(number as i64)),
        };
    }
    match properties.headers {
        Some(headers) => table.with("headers", Value::Table(headers)),
        None => table,
    }
}

/// A table with a list more.
fn with_array(table: TableBuf, name: &str, values: &[u8]) -> TableBuf {
    let field = array_field(name, values);
    let list = Table::from_bytes(&field).ok();
    match list.and_then(|list| list.find(name)) {
        Some(list) => table.with(name, list),
        None => table,
    }
}

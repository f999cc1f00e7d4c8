//! From an exchange to queues.

use crosstie_amqp::{ReplyCode, Table, Value};
use crosstie_auth::Access;

use super::destinations::Target;
use super::{Caller, ExchangeKey, Resource, Topology};
use crate::{Fault, QueueKey};

impl Topology {
    /// The exchange that a client wants to publish to.
    pub(crate) fn exchange_to_publish(
        &self,
        caller: &Caller<'_>,
        name: &str,
    ) -> Result<ExchangeKey, Fault> {
        let resource = Resource::exchange(name, &self.vhost);
        caller.check(Access::Write, resource)?;
        let key = self.exchange(name);
        let Some((key, exchange)) = key.and_then(|key| Some((key, self.exchanges.find(key)?)))
        else {
            return Err(caller.not_found(resource));
        };
        if exchange.internal {
            let text = format!("cannot publish to internal {resource}");
            return Err(caller.fault(ReplyCode::AccessRefused, text));
        }
        Ok(key)
    }

    /// Appends the queues that a message goes to, each once. Headers `CC` and `BCC` are routing
    /// keys too. Nothing but `queues` grows here.
    pub(crate) fn route(
        &mut self,
        exchange: ExchangeKey,
        routing_key: &str,
        headers: Table<'_>,
        queues: &mut Vec<QueueKey>,
    ) {
        self.visit += 1;
        let visit = self.visit;
        if exchange == self.default_exchange {
            // Mostly there is one key, and a `for` would ask all parts of the chain for another.
            routing_keys(routing_key, headers).for_each(|key| {
                if let Some(queue) = self.queue(key)
                    && self.queues.visit(queue, visit)
                {
                    queues.push(queue);
                }
            });
            return;
        }
        self.ahead.clear();
        self.ahead.push(exchange);
        while let Some(exchange) = self.ahead.pop() {
            let Some(exchange) = self.exchanges.find_mut(exchange) else {
                continue;
            };
            // Exchanges may be bound in circles.
            if std::mem::replace(&mut exchange.visit, visit) == visit {
                continue;
            }
            let mut is_matched = false;
            let keys = routing_keys(routing_key, headers);
            exchange.each(keys, headers, |target| {
                is_matched = true;
                match target {
                    Target::Queue(queue) if self.queues.visit(queue, visit) => queues.push(queue),
                    Target::Queue(_) => {}
                    Target::Exchange(exchange) => self.ahead.push(exchange),
                }
            });
            if !is_matched && let Some(alternate) = &exchange.alternate {
                // The default exchange is nobody's alternate: it would be found by no name.
                let alternate = self.exchange_keys.get(alternate);
                self.ahead.extend(alternate);
            }
        }
    }
}

fn routing_keys<'a>(routing_key: &'a str, headers: Table<'a>) -> impl Iterator<Item = &'a str> {
    let more = ["CC", "BCC"].into_iter().filter_map(move |name| {
        // Mostly there are no headers at all.
        match headers.is_empty() {
            true => None,
            false => headers.find(name),
        }
    });
    let more = more.flat_map(|value| {
        let array = match value {
            Value::Array(array) => array,
            _ => Default::default(),
        };
        array.iter().filter_map(Value::as_str)
    });
    std::iter::once(routing_key).chain(more)
}

//! Exchanges of type `x-recent-history`: a message that passes one is kept, and a new binding gets the kept ones.

use crosstie_amqp::Value;

use super::Vhost;
use super::facets::Facets;
use crate::queues::Incoming;
use crate::topology::{ExchangeKey, NewBinding, Routed, Target};
use crate::{Outbox, Time};

/// A message with this header is in no history.
const NO_STORE: &str = "x-recent-history-no-store";

impl<H> Vhost<H> {
    /// Keeps a message in the history of each of these exchanges.
    pub(super) fn keep_history(
        &mut self,
        passed: impl Iterator<Item = ExchangeKey>,
        incoming: &mut Incoming<'_>,
    ) {
        let headers = incoming.properties.parse_for_broker().headers;
        let no_store = headers.and_then(|headers| headers.find(NO_STORE));
        if no_store == Some(Value::Bool(true)) {
            return;
        }
        for exchange in passed {
            let Some(messages_max) = self.topology.history_messages(exchange) else {
                continue;
            };
            let content = incoming.content();
            self.histories
                .keep(exchange, messages_max, content, &mut self.ledger);
        }
    }

    /// Publishes the history of a new binding's source to its destination, the oldest message first. Expirations count
    /// from now.
    pub(super) fn replay_history(
        &mut self,
        now: Time,
        binding: NewBinding,
        out: &mut dyn Outbox<H>,
    ) {
        for content in self.histories.of(binding.source) {
            let facets = Facets::of_checked(content.properties());
            let mut incoming = Incoming::kept(&content, facets.handling);
            match binding.target {
                Target::Queue(queue) => {
                    self.enqueue(now, queue, &mut incoming, out);
                }
                Target::Exchange(exchange) => {
                    let message = Routed {
                        routing_key: incoming.routing_key,
                        headers: facets.headers,
                        properties: incoming.properties,
                    };
                    let mut targets = std::mem::take(&mut self.targets);
                    targets.clear();
                    self.topology.route(exchange, message, &mut targets);
                    for queue in &targets {
                        self.enqueue(now, *queue, &mut incoming, out);
                    }
                    self.targets = targets;
                    if self.topology.has_passed() {
                        self.keep_passed(now, facets.headers, &mut incoming);
                    }
                }
            }
        }
    }

    /// Forgets the messages that deleted exchanges have kept.
    #[cold]
    #[inline(never)]
    pub(super) fn forget_kept(&mut self) {
        for exchange in self.topology.take_ended() {
            self.queues.end_delays(exchange, &mut self.ledger);
            self.histories.end(exchange, &mut self.ledger);
        }
    }
}

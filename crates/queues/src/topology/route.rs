//! From an exchange to queues.

use std::cell::OnceCell;

use crosstie_amqp::ReplyCode;
use crosstie_auth::Access;

use super::delays::delay_ms;
use super::destinations::Target;
use super::headers::Headers;
use super::routed::{Copies, Routed};
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

    /// Counts a publication to an exchange.
    // Every message passes here: as a call it costs a dozen instructions more.
    #[inline(always)]
    pub(crate) fn count(&mut self, exchange: ExchangeKey, queues: usize) {
        match exchange == self.default_exchange {
            true => self.default_tally.count(queues),
            false => self.count_at(exchange, queues),
        }
    }

    #[inline(never)]
    fn count_at(&mut self, exchange: ExchangeKey, queues: usize) {
        if let Some(exchange) = self.exchanges.find_mut(exchange) {
            exchange.tally.count(queues);
        }
    }

    /// Counts a message of an exchange that reached no queue.
    #[cold]
    pub(crate) fn count_unroutable(&mut self, exchange: ExchangeKey) {
        if exchange == self.default_exchange {
            self.default_tally.unroutable += 1;
        } else if let Some(exchange) = self.exchanges.find_mut(exchange) {
            exchange.tally.unroutable += 1;
        }
    }

    /// Appends the queues that a message reaches, each once. Headers `CC` and `BCC` are routing keys, too. Only
    /// `queues` grows here.
    pub(crate) fn route(
        &mut self,
        exchange: ExchangeKey,
        message: Routed<'_>,
        queues: &mut Vec<QueueKey>,
    ) {
        if !message.headers.is_empty() {
            self.route_within(u64::MAX, exchange, message, queues);
        } else if exchange == self.default_exchange {
            self.count_steps(1);
            queues.extend(self.queue(message.routing_key));
        } else {
            // The path for messages without headers, which most are: a separate one saves a hundred instructions.
            self.walk::<false>(u64::MAX, exchange, message, queues);
        }
    }

    /// Checks the cost of a message with copies (`CC`, `BCC`) in a dry run. Each key is another walk through all
    /// patterns, and there may be thousands. A message may take as much as one key can, in an exchange and all behind
    /// it.
    #[cold]
    pub(crate) fn check_copies(
        &mut self,
        caller: &Caller<'_>,
        exchange: ExchangeKey,
        message: Routed<'_>,
        queues: &mut Vec<QueueKey>,
    ) -> Result<(), Fault> {
        let steps_max = 2 * self.steps_max;
        let is_within = self.route_within(steps_max, exchange, message, queues);
        queues.clear();
        self.passed.clear();
        if is_within {
            return Ok(());
        }
        Err(caller.precondition_failed(format!(
            "cannot route a message to all of CC and BCC: limit of the steps that a message may \
             take in vhost '{}' (twice exchange_steps_max, {steps_max}) is reached",
            self.vhost
        )))
    }

    /// Returns whether that took no more than that many steps; if not, some queues are missing.
    #[inline(never)]
    fn route_within(
        &mut self,
        steps_max: u64,
        exchange: ExchangeKey,
        message: Routed<'_>,
        queues: &mut Vec<QueueKey>,
    ) -> bool {
        if exchange != self.default_exchange {
            return self.walk::<true>(steps_max, exchange, message, queues);
        }
        self.visit += 1;
        let copies = Copies::of(message.headers);
        let mut steps = 0;
        for key in std::iter::once(message.routing_key).chain(copies.iter()) {
            steps += 1;
            if let Some(queue) = self.queue(key)
                && self.queues.visit(queue, self.visit) == Some(true)
            {
                queues.push(queue);
            }
        }
        self.count_steps(steps);
        steps <= steps_max
    }

    /// Walks from an exchange through all exchanges that it leads to.
    #[inline(always)]
    fn walk<const HAS_HEADERS: bool>(
        &mut self,
        steps_max: u64,
        exchange: ExchangeKey,
        message: Routed<'_>,
        queues: &mut Vec<QueueKey>,
    ) -> bool {
        self.visit += 1;
        let visit = self.visit;
        let copies = match HAS_HEADERS {
            true => Copies::of(message.headers),
            false => Copies::default(),
        };
        let found_headers = OnceCell::new();
        let mut steps = 0;
        let mut found = 0;
        self.ahead.clear();
        self.ahead.push(exchange);
        while let Some(key) = self.ahead.pop() {
            let Some(exchange) = self.exchanges.find_mut(key) else {
                continue;
            };
            // Exchanges may be bound in circles.
            if std::mem::replace(&mut exchange.visit, visit) == visit {
                continue;
            }
            // A binding's destination may be deleted before the binding is removed.
            let mut is_matched = false;
            let ahead_before = self.ahead.len();
            if exchange.keeps_messages {
                let is_delayed = exchange.is_delayed() && delay_ms(message.headers).is_some();
                if is_delayed || exchange.has_history() {
                    self.passed.push((key, is_delayed));
                }
                if is_delayed {
                    // Its bindings, and its alternate exchange, wait for the end of the delay.
                    continue;
                }
            }
            let headers =
                || found_headers.get_or_init(|| Headers::new(message.headers, &self.hasher));
            let each = |target| {
                found += 1;
                match target {
                    Target::Queue(queue) => {
                        let visited = self.queues.visit(queue, visit);
                        is_matched |= visited.is_some();
                        if visited == Some(true) {
                            queues.push(queue);
                        }
                    }
                    Target::Exchange(exchange) => self.ahead.push(exchange),
                }
            };
            steps += exchange.each::<HAS_HEADERS>(message, &copies, headers, steps_max, each);
            if steps > steps_max {
                break;
            }
            if !is_matched
                && let Some(alternate) = exchange.alternate.clone()
                && self.are_gone(&self.ahead[ahead_before..])
            {
                // The default exchange cannot be an alternate: its name is empty.
                let alternate = self.exchange_keys.get(&alternate);
                self.ahead.extend(alternate);
            }
        }
        self.count_steps(steps + found / FOUND_PER_STEP);
        steps <= steps_max
    }
}

/// Number of targets found per step, duplicates included.
const FOUND_PER_STEP: u64 = 4;

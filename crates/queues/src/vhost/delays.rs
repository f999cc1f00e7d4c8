//! Messages that pass exchanges which keep them: for later (`x-delayed-message`), or for later bindings
//! (`x-recent-history`).

use std::sync::Arc;

use crosstie_amqp::{Changes, Properties, Table, TableBuf, Value};

use super::Vhost;
use super::facets::Facets;
use crate::queues::{Due, Enqueued, Incoming};
use crate::topology::{ExchangeKey, Routed, X_DELAY, delay_ms};
use crate::{MessageContent, Outbox, Position, Time};

/// The places that delayed messages got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// The position at which a store has all of them, and their number.
    pub(super) position: Option<Position>,
    pub(super) stored: u32,
}

impl<H> Vhost<H> {
    /// Keeps a message for each exchange that it has just passed and that keeps messages. `headers` are all that its
    /// publisher sent.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_passed(
        &mut self,
        now: Time,
        headers: Table<'_>,
        incoming: &mut Incoming<'_>,
    ) -> Held {
        let passed = self.topology.take_passed();
        let mut held = Held::default();
        let mut later = None;
        for (exchange, is_delayed) in &passed {
            if !is_delayed {
                continue;
            }
            let content = later.get_or_insert_with(|| full_content(headers, incoming));
            if let Some(position) = self.delay(now, *exchange, headers, Arc::clone(content)) {
                held.position = held.position.max(Some(position));
                held.stored += 1;
            }
        }
        if passed.iter().any(|(_, is_delayed)| !is_delayed) {
            let passed = passed.into_iter().filter(|(_, is_delayed)| !is_delayed);
            self.keep_history(passed.map(|(exchange, _)| exchange), incoming);
        }
        if let Some(content) = later {
            // The confirm waits by it.
            incoming.content.get_or_insert(content);
        }
        held
    }

    fn delay(
        &mut self,
        now: Time,
        exchange: ExchangeKey,
        headers: Table<'_>,
        content: Arc<MessageContent>,
    ) -> Option<Position> {
        let due = Time(now.0.saturating_add(delay_ms(headers)?));
        let (name, is_durable) = self.topology.delayed_name(exchange)?;
        self.ledger.steps.spend(2);
        let exchange = (exchange, &*name, is_durable);
        self.queues
            .delay(now, exchange, content, due, &mut self.ledger)
    }

    /// Does what is due first: publishes a delayed message, or opens a bucket of them. Returns whether anything was due.
    pub(super) fn handle_delay(&mut self, now: Time, out: &mut dyn Outbox<H>) -> bool {
        // First those that are due; they may wait for another bucket to be read.
        if let Some(due) = self.queues.next_due(now) {
            self.publish_due(now, &due, out);
            self.queues.end_delay(&due, &mut self.ledger);
            return true;
        }
        let opening = self.queues.next_opening(now);
        if let Some(key) = opening {
            self.queues.move_on(now, key, &mut self.ledger);
        }
        opening.is_some()
    }

    /// Routes a message from the exchange that has delayed it. The header's sign tells receivers, and other exchanges
    /// like this one, that the delay is over.
    fn publish_due(&mut self, now: Time, due: &Due, out: &mut dyn Outbox<H>) {
        let content = &due.entry.content;
        let full = Facets::of_checked(content.properties());
        let headers = after_delay(full.headers);
        let visible = super::facets::without_blind_copies(headers.as_table());
        let changes = Changes {
            headers: Some(visible.as_table()),
            ..Changes::default()
        };
        let mut properties = Vec::new();
        content
            .properties()
            .write_changed(&changes, &mut properties);
        let properties = Properties::from_checked_bytes(&properties);
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        let routed = Routed {
            routing_key: content.routing_key(),
            headers: headers.as_table(),
            properties,
        };
        self.topology.route(due.exchange, routed, &mut targets);
        let mut incoming = Incoming {
            exchange: content.exchange(),
            routing_key: content.routing_key(),
            properties,
            body: content.body(),
            handling: full.handling,
            content: None,
        };
        self.ledger.steps.spend_on_body(content.body().len());
        let mut stored = 0;
        for target in &targets {
            let enqueued = self.enqueue(now, *target, &mut incoming, out);
            stored += u32::from(matches!(enqueued, Enqueued::Stored(_)));
        }
        if targets.is_empty() {
            self.ledger.counts.unroutable += 1;
            self.topology.count_unroutable(due.exchange);
        }
        self.targets = targets;
        if self.topology.has_passed() {
            let held = self.keep_passed(now, headers.as_table(), &mut incoming);
            stored += held.stored;
        }
        if let Some(later) = &incoming.content {
            self.confirms.follow(content, later, stored);
        }
        let routed = self.topology.take_steps();
        self.ledger.steps.spend(routed as usize);
    }
}

/// The message with all headers that its publisher sent: routing keys for blind copies are needed later.
fn full_content(headers: Table<'_>, incoming: &mut Incoming<'_>) -> Arc<MessageContent> {
    if headers.find("BCC").is_none() {
        return incoming.content();
    }
    let changes = Changes {
        headers: Some(headers),
        ..Changes::default()
    };
    let mut properties = Vec::new();
    incoming.properties.write_changed(&changes, &mut properties);
    let properties = Properties::from_checked_bytes(&properties);
    Arc::new(MessageContent::of(
        incoming.exchange,
        incoming.routing_key,
        properties,
        incoming.body,
    ))
}

/// The headers with the delay's sign changed.
fn after_delay(headers: Table<'_>) -> TableBuf {
    let mut changed = TableBuf::new();
    for (name, value) in headers.iter() {
        let negative = delay_ms(headers).map(|delay| -(delay as i64));
        changed = match negative.filter(|_| name == X_DELAY) {
            Some(delay) => match i32::try_from(delay) {
                Ok(delay) => changed.with(name, Value::I32(delay)),
                Err(_) => changed.with(name, Value::I64(delay)),
            },
            None => changed.with(name, value),
        };
    }
    changed
}

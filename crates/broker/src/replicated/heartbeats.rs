//! Heartbeats of other nodes: processed on arrival, and before their silence leads to any conclusion.

use std::future::pending;
use std::sync::Arc;
use std::time::Instant;

use crosstie_jetstream::{Connection, Message, Stream, Subscription};

use super::beat::Beat;
use super::driver::Driver;
use super::peers::SILENCE_MAX;
use super::spare::Spare;

/// The heartbeats of both connections.
pub(super) struct Beats<'s> {
    pub(super) first: Subscription,
    pub(super) spare: &'s mut Spare,
}

/// A heartbeat, and whether it came over the first connection. `None` at the end of that subscription.
pub(super) struct Heard {
    message: Option<Message>,
    is_first: bool,
}

impl Beats<'_> {
    pub(super) async fn next(&mut self) -> Heard {
        let (message, is_first) = tokio::select! {
            message = self.first.next() => (message, true),
            message = self.spare.next() => (Some(message), false),
        };
        Heard { message, is_first }
    }

    fn next_waiting(&mut self) -> Option<(Message, bool)> {
        let first = self.first.next_waiting().map(|message| (message, true));
        first.or_else(|| self.spare.next_waiting().map(|message| (message, false)))
    }
}

impl Driver {
    /// Listens until it is known whether the vhost has an owner.
    pub(super) async fn listen(&mut self, stream: &Stream, beats: &mut Beats<'_>) {
        let begun = Instant::now();
        self.hear_waiting(beats);
        while !self.others.has_heard_owner_since(begun) && self.others.vacancy() < SILENCE_MAX {
            let rest = SILENCE_MAX.saturating_sub(self.others.vacancy());
            if let Ok(heard) = tokio::time::timeout(rest, beats.next()).await {
                self.handle_beat(stream, beats, heard).await;
            }
        }
    }

    /// Handles a heartbeat, or subscribes again after an overflow.
    pub(super) async fn handle_beat(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
        heard: Heard,
    ) {
        if let Some(message) = heard.message {
            return self.hear(&message.payload, heard.is_first);
        }
        match self.dialler.subscribed(&stream.connection) {
            Ok(anew) => {
                beats.first = anew;
                self.others.begin_anew();
                self.others.expect();
            }
            // The connection has ended; the caller's task ends with it.
            Err(_) => pending().await,
        }
    }

    /// Handles heartbeats that arrived while the node was busy, so that their senders do not appear silent.
    pub(super) fn hear_waiting(&mut self, beats: &mut Beats<'_>) {
        while let Some((message, is_first)) = beats.next_waiting() {
            self.hear(&message.payload, is_first);
        }
    }

    /// Handles another node's heartbeat.
    fn hear(&mut self, payload: &[u8], is_first: bool) {
        let Some(beat) = Beat::decode(payload) else {
            return;
        };
        // It may have been sent over the other connection, or over an earlier one.
        if self.others.is_own(&beat) {
            return;
        }
        if beat.is_owner && self.term.is_some() {
            let now = self.now();
            self.ledger.handle_rival(now, beat.epoch);
        }
        if self.others.meets_namesake(&beat) {
            let (vhost, node) = (&self.task.vhost, &beat.node);
            tracing::warn!(
                "vhost '{vhost}': another node has the name '{node}' too, so the vhost cannot move to either: give each its own name by \
                 \"controller\": {{\"id\": …}}"
            );
        }
        let tidings = self.connection.as_ref().map_or(0, Connection::tidings);
        self.others.hear(beat, is_first.then_some(tidings));
        match self.term {
            Some(_) => self.adapt_to_readers(),
            None => self.show_owner(),
        }
        self.note_elders();
    }

    /// Notes which nodes of earlier versions are heard: the log gets no settings then.
    pub(super) fn note_elders(&self) {
        let elders = self.others.elders().map(Arc::from).collect();
        self.note(|seen| seen.elders = elders);
    }

    /// Has one append in flight only, and writes no clearance as one record, while a node of an earlier version is heard.
    pub(super) fn adapt_to_readers(&mut self) {
        self.ledger.limit_appends(match self.others.pass_over() {
            true => usize::MAX,
            false => 1,
        });
        self.ledger.write_clearances(self.others.know_clearances());
    }
}

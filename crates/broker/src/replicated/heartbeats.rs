//! Heartbeats of other nodes: processed on arrival, and before their silence leads to any conclusion.

use std::future::pending;
use std::time::Instant;

use crosstie_jetstream::{Connection, Failed, Message, Stream, Subscription};

use super::beat::Beat;
use super::driver::Driver;
use super::peers::SILENCE_MAX;

/// Maximum bytes of waiting heartbeats.
const BEATS_BYTES_MAX: usize = 1 << 20;

impl Driver {
    /// Listens until it is known whether the vhost has an owner.
    pub(super) async fn listen(&mut self, stream: &Stream, beats: &mut Subscription) {
        let begun = Instant::now();
        self.hear_waiting(beats);
        while !self.others.has_heard_owner_since(begun) && self.others.vacancy() < SILENCE_MAX {
            let rest = SILENCE_MAX.saturating_sub(self.others.vacancy());
            if let Ok(heard) = tokio::time::timeout(rest, beats.next()).await {
                self.handle_beat(stream, beats, heard).await;
            }
        }
    }

    pub(super) fn subscribed(&self, connection: &Connection) -> Result<Subscription, Failed> {
        connection.subscribe(&self.names.beat, BEATS_BYTES_MAX)
    }

    /// Handles a heartbeat, or subscribes again after an overflow.
    pub(super) async fn handle_beat(
        &mut self,
        stream: &Stream,
        beats: &mut Subscription,
        heard: Option<Message>,
    ) {
        if let Some(message) = heard {
            return self.hear(&message.payload);
        }
        match self.subscribed(&stream.connection) {
            Ok(anew) => {
                *beats = anew;
                self.others.begin_anew();
                self.others.expect();
            }
            // The connection has ended; the caller's task ends with it.
            Err(_) => pending().await,
        }
    }

    /// Handles heartbeats that arrived while the node was busy, so that their senders do not appear silent.
    pub(super) fn hear_waiting(&mut self, beats: &mut Subscription) {
        while let Some(message) = beats.next_waiting() {
            self.hear(&message.payload);
        }
    }

    /// Handles another node's heartbeat.
    pub(super) fn hear(&mut self, payload: &[u8]) {
        let Some(beat) = Beat::decode(payload) else {
            return;
        };
        // After a reconnection another server may deliver what was sent over the old one.
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
        self.others.hear(beat, tidings);
        if self.term.is_none() {
            self.show_owner();
        }
    }
}

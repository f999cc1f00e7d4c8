//! The client's side of a transport: its session, from HELLO on.

use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosstie_front::admission::Admitted;
use crosstie_front::cause::Facts;
use crosstie_front::end_reason::EndReason;
use crosstie_front::watch::WatchKey;
use crosstie_realms::entrance::Entrance;
use crosstie_realms::open::HELLO_BYTES_MAX;
use crosstie_realms::peer::{Peer, Wire};
use crosstie_realms::session::{Session, Stage};
use crosstie_transport::{Budget, Connection};
use crosstie_wamp::codec;
use crosstie_wamp::framing::{Framing, FramingError, batched, rawsocket};
use crosstie_web::longpoll::Protocol;

use super::Shared;

/// The session, with its counters and its watch.
pub(super) struct Talk {
    pub(super) session: Session,
    watch: WatchKey,
    stage: Stage,
    is_over: bool,
    session_timeout_s: u32,
    message_bytes_max: u32,
    decoding: codec::Limits,
    admitted: Admitted,
}

/// Minimum size of a message whose bytes receivers share.
const LARGE_BYTES_MIN: usize = 64 * 1024;
/// Time for which the last messages can be fetched.
const CLOSING_MAX: Duration = Duration::from_secs(15);

impl Talk {
    pub(super) fn new(
        shared: &Shared,
        entrance: &Arc<Entrance>,
        admitted: Admitted,
        protocol: Protocol,
        connection: &Arc<Connection>,
    ) -> Self {
        let listening = &admitted.listening;
        let within = listening.handshake_timeout;
        let watch = &listening.watch;
        connection.note_spoken();
        let watch = watch.add(Arc::clone(connection), listening.number, within);
        let peer = Peer {
            connection: Arc::clone(connection),
            wire: Wire {
                serializer: protocol.serializer,
                framing: Framing::LongPoll,
                // The maximum of the length prefix's short form.
                message_bytes_max: rawsocket::LENGTH_MAX as u32 - 1,
            },
        };
        let options = &shared.options;
        let message_bytes_max = options.session.message_bytes_max;
        Self {
            session: Session::new(Arc::clone(entrance), Arc::clone(&shared.auth), peer),
            watch,
            stage: Stage::Opening,
            is_over: false,
            session_timeout_s: u32::try_from(options.session_timeout.as_secs()).unwrap_or(u32::MAX),
            message_bytes_max: u32::try_from(message_bytes_max).unwrap_or(u32::MAX),
            decoding: entrance.decoding,
            admitted,
        }
    }

    pub(super) fn decoding(&self) -> &codec::Limits {
        &self.decoding
    }

    /// Maximum size of a body at this stage: a client that has not joined must not occupy much memory.
    pub(super) fn body_bytes_max(&self) -> usize {
        let bytes_max = self.message_bytes_max as usize;
        match self.stage {
            Stage::Joined => bytes_max,
            Stage::Opening | Stage::Asked => bytes_max.min(HELLO_BYTES_MAX),
        }
    }

    /// Whether the session is over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Handles a body that is exactly one message, and returns its bytes.
    pub(super) fn handle_message(&mut self, body: Vec<u8>) -> Bytes {
        let now = Instant::now();
        let (body, flow) = match body.len() >= LARGE_BYTES_MIN {
            true => {
                let (length, body) = (body.len(), self.session.peer.connection.share(body));
                let flow = self.session.handle_shared(&body, 0..length, now);
                (body, flow)
            }
            false => {
                let flow = self.session.handle_message(&body, now);
                (body.into(), flow)
            }
        };
        self.handle_flow(flow);
        body
    }

    /// Handles a turn's worth of messages of a batch. Returns the number of bytes left.
    pub(super) fn handle_batch(&mut self, batch: &[u8]) -> usize {
        let now = Instant::now();
        let mut budget = Budget::begin(now);
        let (flow, left) = self.session.handle_batch(batch, now, &mut budget, false);
        let left = left.len();
        self.handle_flow(flow);
        left
    }

    /// Continues with an outcome.
    pub(super) fn handle_elsewhere(&mut self) {
        let flow = self.session.handle_elsewhere();
        self.handle_flow(flow);
    }

    /// Handles a body that was too long.
    pub(super) fn handle_too_long(&mut self, length: u64) {
        let length_max = self.body_bytes_max();
        let fault = FramingError::TooLong { length, length_max };
        let flow = self.session.frame_fault(&fault, false);
        self.handle_flow(flow);
    }

    /// Applies the result of a step.
    fn handle_flow(&mut self, flow: ControlFlow<()>) {
        let watch = &self.admitted.listening.watch;
        if self.stage != self.session.stage() {
            let before = mem::replace(&mut self.stage, self.session.stage());
            match self.stage {
                Stage::Joined => watch.opened_by_requests(self.watch, self.session_timeout_s),
                stage => self.session.note_stage(self.watch, before, stage),
            }
        }
        if flow.is_break() {
            self.is_over = true;
            self.session.peer.connection.finish();
            watch.closing(self.watch, CLOSING_MAX);
            self.leave();
        }
    }

    fn leave(&mut self) {
        let is_stopping = self.admitted.listening.is_stopping();
        let connection = &self.session.peer.connection;
        let facts = Facts::of(connection, is_stopping, EndReason::Closed);
        self.session.leave(facts.reason);
    }
}

/// Whether a body consists of valid messages.
pub(super) fn has_messages(protocol: Protocol, body: &[u8], limits: &codec::Limits) -> bool {
    let is_message = |bytes: &[u8]| match codec::decode(protocol.serializer, bytes, limits) {
        Ok(_) => true,
        Err(e) => e.is_lone_surrogate(),
    };
    match protocol.is_batched {
        false => is_message(body),
        true => {
            batched::split(protocol.serializer, body).all(|message| message.is_ok_and(is_message))
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Also if the task is dropped with its runtime, or unwound by a panic.
        self.session.peer.connection.close();
        self.leave();
        self.admitted.listening.watch.remove(self.watch);
    }
}

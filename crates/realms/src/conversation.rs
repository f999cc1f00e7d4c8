//! The server's side of one connection, from its first byte: protocol, handshake, messages.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use crosstie_front::admission::Excess;
use crosstie_front::cause::{self, Facts};
use crosstie_front::counters::{Counter, counters};
use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_front::serve::{Arrival, Converse, Endpoint, Successor, serve};
use crosstie_front::watch::{self, CLOSING_MAX, WatchKey};
use crosstie_transport::{Connection, Ended, Outcome, Place, Protocol};

use crate::entrance::Entrance;
use crate::mqtt::Carrier;
use crate::open::{Done, Left, Open, Turn};
use crate::session::Stage;

mod opening;

/// The server's side of one connection.
pub(crate) struct Conversation {
    entrance: Arc<Entrance>,
    connection: Arc<Connection>,
    watch: WatchKey,
    /// Set if the connection limit is reached: this connection is refused.
    excess: Option<Excess>,
    /// Large messages shall be handled on another thread.
    is_quick: bool,
    /// The part of the router that it is handed over to.
    to: To,
    state: State,
}

/// The next owner of a connection that is no WAMP client's.
#[derive(Clone, Copy)]
enum To {
    Http,
    Mqtt,
    /// MQTT over the WebSocket at this place.
    MqttOver(u16),
}

enum State {
    /// Too few bytes to tell RawSocket from HTTP, or an incomplete handshake.
    Opening,
    Open(Box<Open>),
    /// The turn ended before its input was handled; nothing is read before that is done.
    Waiting(Box<Waiting>),
    /// Everything is sent; further input is not read.
    Over,
}

/// The remainder of a turn.
struct Waiting {
    open: Box<Open>,
    left: Left,
}

/// Minimum length of an input that is checked for being exactly one message, and of a partial message that is completed
/// where large ones are handled.
const LARGE_BYTES_MIN: usize = 64 * 1024;

impl Conversation {
    pub(crate) fn new(
        entrance: Arc<Entrance>,
        connection: Arc<Connection>,
        excess: Option<Excess>,
    ) -> Self {
        let listening = &entrance.listening;
        let watch = &listening.watch;
        let within = listening.handshake_timeout;
        let watch = watch.add(Arc::clone(&connection), listening.number, within);
        Self {
            entrance,
            connection,
            watch,
            excess,
            is_quick: false,
            to: To::Http,
            state: State::Opening,
        }
    }

    /// Stops reading and ends the session, for the noted cause if the router closed the connection.
    fn leave(&mut self, why: EndReason) {
        let open = match mem::replace(&mut self.state, State::Over) {
            State::Open(open) => Some(open),
            State::Waiting(waiting) => Some(waiting.open),
            State::Opening | State::Over => None,
        };
        if let Some(mut open) = open {
            let facts = Facts::of(&self.connection, self.entrance.is_stopping(), why);
            open.session.leave(facts.reason);
        }
    }

    fn append(&self, bytes: &[u8]) {
        // A new connection has room; if it is gone already, its reader sees that.
        let _ = self.connection.append(|out| {
            out.extend_from_slice(bytes);
            Ok::<(), ()>(())
        });
    }

    /// Sends the output queue, and gives the peer the closing timeout to close its side.
    fn finish(&mut self) -> Outcome {
        let closing_max = match &self.state {
            State::Open(open) => open.supervision.closing_max,
            State::Opening | State::Waiting(_) | State::Over => CLOSING_MAX,
        };
        self.connection.finish();
        self.entrance
            .listening
            .watch
            .closing(self.watch, closing_max);
        self.leave(EndReason::Closed);
        Outcome::consumed(0)
    }

    /// Takes the remainder of the last turn, and counts the bytes that have arrived since.
    fn take_left(&mut self, bytes: usize) -> Option<Left> {
        if !matches!(self.state, State::Waiting(_)) {
            counters().count(Counter::Reads);
            counters().add(Counter::ReceivedBytes, bytes as u64);
            return None;
        }
        let State::Waiting(waiting) = mem::replace(&mut self.state, State::Over) else {
            return None;
        };
        let Waiting { open, left } = *waiting;
        let received = bytes.saturating_sub(left.offered);
        counters().add(Counter::ReceivedBytes, received as u64);
        self.state = State::Open(open);
        Some(left)
    }

    /// Ends the turn: `consumed` bytes are handled, and `left` comes before the rest.
    #[cold]
    fn wait(&mut self, mut left: Left, consumed: usize, input: &[u8]) -> Outcome {
        if left.held_bytes != left.batch.len() {
            left.held_bytes = left.batch.len();
            self.connection.hold(left.held_bytes as isize);
        }
        self.keep_left(left, input.len().saturating_sub(consumed));
        Outcome::Yield { consumed }
    }

    /// Leaves the rest of the input to the handler of large messages.
    #[cold]
    fn leave_quick(&mut self, consumed: usize, input: &[u8]) -> Outcome {
        self.keep_left(Left::default(), input.len() - consumed);
        Outcome::Bulk { consumed }
    }

    fn keep_left(&mut self, left: Left, offered: usize) {
        self.state = match mem::replace(&mut self.state, State::Over) {
            State::Open(open) => State::Waiting(Box::new(Waiting {
                open,
                left: Left { offered, ..left },
            })),
            other => other,
        };
    }

    /// Continues a handshake that has waited for an outcome. The remainder is handled afterwards, unless the handshake
    /// must wait again.
    #[cold]
    fn handle_elsewhere(&mut self, left: &mut Option<Left>, input: &[u8]) -> Option<Outcome> {
        let State::Open(open) = &mut self.state else {
            return None;
        };
        let flow = open.session.handle_elsewhere();
        let rest = left.take_if(|_| open.session.waits());
        let done = Done {
            rest,
            ..Done::of(flow)
        };
        self.handle_done(done, &Turn::begin(), 0, input)
    }

    /// Handles the last turn's remainder and the messages in `input` until the turn is over.
    fn handle_frames(&mut self, left: Option<Left>, input: &mut [u8]) -> Outcome {
        if let State::Open(open) = &self.state
            && open.waits_for_line()
        {
            return self.wait(left.unwrap_or_default(), 0, input);
        }
        let mut turn = Turn::begin();
        let mut consumed = 0;
        let mut left = left.filter(|left| !left.batch.is_empty());
        if let State::Open(open) = &self.state
            && open.session.waits()
            && let Some(outcome) = self.handle_elsewhere(&mut left, input)
        {
            return outcome;
        }
        loop {
            let State::Open(open) = &mut self.state else {
                return Outcome::consumed(input.len());
            };
            let done = if let Some(left) = left.take() {
                open.handle_left(left, &mut turn)
            } else if self.is_quick && open.frames.may_swell(&input[consumed..]) {
                return self.leave_quick(consumed, input);
            } else {
                let watch = || self.entrance.listening.watch.answered(self.watch);
                match open.handle_next(&mut input[consumed..], &mut turn, watch) {
                    Ok((done, bytes)) => {
                        consumed += bytes;
                        done
                    }
                    Err(wanted) => {
                        open.end_turn(&turn);
                        if self.is_quick && open.frames.kept_bytes() >= LARGE_BYTES_MIN {
                            return self.leave_quick(consumed, input);
                        }
                        return Outcome::Continue { consumed, wanted };
                    }
                }
            };
            if let Some(outcome) = self.handle_done(done, &turn, consumed, input) {
                return outcome;
            }
        }
    }

    /// Applies a step's result. Returns the outcome if this was the turn's last step.
    #[inline]
    fn handle_done(
        &mut self,
        done: Done,
        turn: &Turn,
        consumed: usize,
        input: &[u8],
    ) -> Option<Outcome> {
        let State::Open(open) = &mut self.state else {
            return None;
        };
        if open.stage != open.session.stage() {
            let before = mem::replace(&mut open.stage, open.session.stage());
            open.limit_messages();
            let watch = &self.entrance.listening.watch;
            match open.stage {
                Stage::Joined => {
                    watch.opened(self.watch, &open.supervision.pings);
                }
                stage => open.session.note_stage(self.watch, before, stage),
            }
        }
        if done.flow.is_break() {
            self.finish();
            return Some(Outcome::consumed(input.len().max(consumed)));
        }
        if open.session.waits() {
            open.end_turn(turn);
            return Some(self.wait(done.rest.unwrap_or_default(), consumed, input));
        }
        let is_over = done.rest.is_some() || (done.is_over && consumed < input.len());
        if !is_over {
            return None;
        }
        open.end_turn(turn);
        counters().count(Counter::TurnsYielded);
        Some(self.wait(done.rest.unwrap_or_default(), consumed, input))
    }

    /// Handles an input that is exactly one message, whose bytes receivers may share.
    fn handle_whole(&mut self, place: Range<usize>, input: &mut Vec<u8>) -> Outcome {
        let consumed = input.len();
        let State::Open(open) = &mut self.state else {
            return Outcome::consumed(consumed);
        };
        let mut turn = Turn::begin();
        let done = open.handle_whole(place, mem::take(input), &mut turn);
        if let Some(outcome) = self.handle_done(done, &turn, consumed, &[]) {
            return outcome;
        }
        if let State::Open(open) = &mut self.state {
            open.end_turn(&turn);
        }
        Outcome::consumed(consumed)
    }

    /// Handles an input after the last turn's remainder was taken.
    fn handle_offered(&mut self, left: Option<Left>, input: &mut [u8]) -> Outcome {
        let mut opening = 0;
        if matches!(self.state, State::Opening) {
            match self.open(input) {
                Some(Outcome::Continue { consumed, .. }) => opening = consumed,
                Some(other) => return other,
                None => {
                    return Outcome::consumed(0);
                }
            }
        }
        match self.handle_frames(left, &mut input[opening..]) {
            Outcome::Continue { consumed, wanted } => Outcome::Continue {
                consumed: opening + consumed,
                wanted,
            },
            Outcome::Yield { consumed } => Outcome::Yield {
                consumed: opening + consumed,
            },
            Outcome::Bulk { consumed } => Outcome::Bulk {
                consumed: opening + consumed,
            },
            other => other,
        }
    }
}

impl Converse for Conversation {
    fn handle_ended(&mut self, ended: &Ended) {
        match (ended, &self.state) {
            (Ended::StageFailed(e), _) => {
                report::peer_fault(&self.connection, "stage", &e.to_string());
            }
            (Ended::ByPeer { unconsumed: 1.. }, State::Open(_)) if !self.connection.is_closed() => {
                report::peer_fault(&self.connection, "truncated", "closed inside a message");
            }
            _ => watch::look_given_up(&self.connection),
        }
        self.leave(cause::seen(ended));
    }

    fn take_successor(&mut self) -> Option<Successor> {
        let entrance = Arc::clone(&self.entrance);
        let (endpoint, carrier) = match self.to {
            To::Http => {
                let http = Arc::clone(entrance.http.as_ref()?);
                return Some(Box::new(move |handed| http.serve(entrance, handed)));
            }
            To::Mqtt => (entrance.mqtt.as_ref(), Carrier::Stream),
            To::MqttOver(place) => {
                let websocket = entrance.websockets.get(usize::from(place))?;
                let config = opening::decoding_mqtt(&websocket.options.options);
                (websocket.mqtt.as_ref(), Carrier::WebSocket(config))
            }
        };
        let endpoint = Arc::clone(endpoint?);
        let server = Arc::clone(entrance.mqtt_server.as_ref()?);
        Some(Box::new(move |handed| {
            server.serve(entrance, endpoint, carrier, handed);
        }))
    }
}

impl Endpoint for Entrance {
    fn start(self: Arc<Self>, arrival: Arrival) {
        serve(arrival, Place::Quick, |connection, excess| {
            Conversation::new(self, connection, excess)
        });
    }
}

impl Protocol for Conversation {
    fn may_move(&self) -> bool {
        true
    }

    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let left = self.take_left(input.len());
        self.handle_offered(left, input)
    }

    fn handle_buffer(&mut self, input: &mut Vec<u8>) -> Outcome {
        let left = self.take_left(input.len());
        let has_batch = left.as_ref().is_some_and(|left| !left.batch.is_empty());
        if let State::Open(open) = &self.state
            && input.len() >= LARGE_BYTES_MIN
            && !has_batch
            && !open.session.waits()
            && !open.waits_for_line()
            && let Some(place) = open.frames.whole(input)
        {
            return self.handle_whole(place, input);
        }
        self.handle_offered(left, input)
    }

    fn handle_place(&mut self, place: Place) {
        self.is_quick = place == Place::Quick;
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Also if the task is dropped with its runtime, or unwound by a panic.
        self.leave(EndReason::Lost);
        self.entrance.listening.watch.remove(self.watch);
        let endpoints = self.entrance.websockets.iter();
        for jar in endpoints.filter_map(|endpoint| endpoint.cookies.as_ref()) {
            jar.detach(&self.connection);
        }
        if std::thread::panicking() {
            self.connection.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_conversation_costs_little() {
        // With glibc's header 112 bytes, which fit between two of tokio's allocations: those begin at multiples of 128, and
        // take 272.
        assert!(size_of::<Open>() <= 104, "{}", size_of::<Open>());
        assert!(size_of::<Conversation>() <= 48);
    }
}

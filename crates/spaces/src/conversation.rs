//! One MQTT connection from its first byte: CONNECT, packets, end.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crosstie_front::admission::Excess;
use crosstie_front::cause::{self, Cause, Facts};
use crosstie_front::counters::{Counter, counters};
use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_front::serve::{Converse, Successor};
use crosstie_front::watch::{self, CLOSING_MAX, WatchKey};
use crosstie_mqtt::{
    ConnAck, DecodeError, Decoded, Fault, Packet, PacketType, ReasonCode, Version, decode,
    decode_connect,
};
use crosstie_transport::proxy_header::{ProxyHeader, UNEXPECTED_PROXY_HEADER};
use crosstie_transport::{Budget, Connection, Ended, Outcome, Protocol};

use crate::figures::Figures;
use crate::frames::{self, Framed, Frames, write_framed};
use crate::home::Home;

/// The server's side of one connection.
pub struct Conversation<H: Home> {
    pub ground: Arc<H>,
    pub connection: Arc<Connection>,
    pub watch: WatchKey,
    /// Set for packets in frames.
    frames: Option<Box<Frames>>,
    pub state: State<H>,
}

pub enum State<H: Home> {
    /// Waits for CONNECT. Beyond a limit of connections, this one is closed.
    Opening(Option<Excess>),
    /// CONNECT stays in the input until the login is done.
    LoggingIn(Box<H::LoggingIn>),
    Open(Box<H::Open>),
    /// Further input is dropped until the client closes its socket or the timeout ends.
    Over,
}

/// The outcome of the input's first packet.
pub enum Step {
    /// A packet is handled, at a cost of so many steps.
    Done {
        consumed: usize,
        steps: u32,
    },
    /// The packet is not complete.
    Wanted(usize),
    /// The packet is handled, or handled on, once reading is resumed.
    Halt {
        consumed: usize,
    },
    End(End),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By the client's DISCONNECT.
    ByClient,
    /// Without a packet, so that the client comes back.
    Silent,
    /// By CONNACK or DISCONNECT with a reason.
    Reason(ReasonCode),
    /// The end was begun elsewhere.
    Begun,
}

/// Maximum size of CONNECT: a client that has not logged in must not occupy much memory.
pub(crate) const CONNECT_BYTES_MAX: u32 = 64 * 1024;

/// Bytes checked and copied in the time of one step.
const STEP_BYTES: usize = 128;

impl<H: Home> Conversation<H> {
    pub fn new(
        ground: Arc<H>,
        connection: Arc<Connection>,
        frames: Option<Box<Frames>>,
        excess: Option<Excess>,
    ) -> Self {
        let listening = ground.listening();
        let within = listening.handshake_timeout;
        let watch = listening
            .watch
            .add(Arc::clone(&connection), listening.number, within);
        Self {
            ground,
            connection,
            watch,
            frames,
            state: State::Opening(excess),
        }
    }

    pub fn is_framed(&self) -> bool {
        self.frames.is_some()
    }

    /// Handles the packet at the front of `input`.
    fn step(&mut self, input: &[u8], now: Instant) -> Step {
        match &mut self.state {
            State::Opening(_) | State::LoggingIn(_) => self.step_in(input, now),
            State::Open(open) => {
                let size_max = self.ground.packet_bytes_max(open);
                match decode(input, H::version(open), size_max) {
                    Ok(Decoded::Packet { packet, consumed }) => {
                        let step = self.ground.handle(open, &packet, consumed, now);
                        match step {
                            Ok(step) => step,
                            Err(end) => Step::End(end),
                        }
                    }
                    Ok(Decoded::Incomplete { wanted }) => Step::Wanted(wanted),
                    Err(e) => Step::End(self.fault(&e)),
                }
            }
            State::Over => Step::Done {
                consumed: input.len(),
                steps: 0,
            },
        }
    }

    /// Reads CONNECT, and logs its client in.
    fn step_in(&mut self, input: &[u8], now: Instant) -> Step {
        if !input.is_empty() {
            self.connection.note_spoken();
        }
        if let State::Opening(Some(excess)) = &self.state {
            let refused = report::Refused::new(excess.reason(), excess.text());
            report::session_refused(&self.connection, &refused);
            counters().count(Counter::ConnectionsRefused);
            return Step::End(End::Silent);
        }
        if let State::LoggingIn(login) = &self.state
            && H::awaits_auth(login)
            && let Some(wanted) = Self::wanted_behind_connect(input)
        {
            return Step::Wanted(wanted);
        }
        let (connect, consumed) = match decode_connect(input, CONNECT_BYTES_MAX) {
            Ok(Decoded::Packet { packet, consumed }) => (packet, consumed),
            Ok(Decoded::Incomplete { wanted }) => return Step::Wanted(wanted),
            Err(e) => return self.bad_connect(&e, input),
        };
        if matches!(self.state, State::Opening(_)) {
            Figures::get().count_received(PacketType::Connect);
        }
        let behind = match &self.state {
            State::LoggingIn(login) if H::awaits_auth(login) => {
                return self.step_auth(&connect, &input[consumed..], consumed, now);
            }
            State::LoggingIn(login) => H::auth_bytes(login),
            _ => 0,
        };
        let logged_in = H::log_in(self, &connect, now);
        if logged_in == Ok(false)
            && let State::LoggingIn(login) = &self.state
            && H::awaits_auth(login)
        {
            return self.step_auth(&connect, &input[consumed..], consumed, now);
        }
        self.take_login(logged_in, connect.version, consumed + behind)
    }

    /// Continues after a step of a login. Packets of so many bytes are done with it.
    pub(crate) fn take_login(
        &self,
        outcome: Result<bool, End>,
        version: Version,
        consumed: usize,
    ) -> Step {
        match outcome {
            // Nothing is read before CONNACK.
            Ok(true) if self.waits() => Step::Halt { consumed },
            Ok(true) => Step::Done {
                consumed,
                steps: (consumed / STEP_BYTES) as u32,
            },
            // The packets are needed again.
            Ok(false) => Step::Halt { consumed: 0 },
            Err(end) => {
                counters().count(Counter::ConnectionsRefused);
                if let End::Reason(reason) = end {
                    self.refuse(version, reason);
                    return Step::End(End::Begun);
                }
                Step::End(end)
            }
        }
    }

    /// The first packet is no valid CONNECT. A client that speaks another version learns that.
    fn bad_connect(&self, e: &DecodeError, input: &[u8]) -> Step {
        counters().count(Counter::ConnectionsRefused);
        let text = match ProxyHeader::begins(input) {
            true => UNEXPECTED_PROXY_HEADER.to_owned(),
            false => e.to_string(),
        };
        report::peer_fault(&self.connection, "handshake", &text);
        match e.fault {
            Fault::Protocol {
                is_mqtt: true,
                level,
            } => {
                // A level that nobody knows may be a later version's, which reads the answer of 5.
                let version = if level > 5 {
                    Version::V5
                } else {
                    Version::V311
                };
                self.refuse(version, ReasonCode::UnsupportedProtocolVersion);
            }
            Fault::Protocol { .. } | Fault::NotConnect => return Step::End(End::Silent),
            _ if e.version.is_v5() => self.refuse(e.version, e.reason()),
            _ => return Step::End(End::Silent),
        }
        Step::End(End::Begun)
    }

    /// Refuses a client by CONNACK.
    fn refuse(&self, version: Version, reason: ReasonCode) {
        let packet = Packet::ConnAck(ConnAck::new(reason));
        Figures::get().count_sent(packet.packet_type());
        let is_framed = self.is_framed();
        frames::append(&self.connection, |out| {
            let _ = write_framed(is_framed, out, |out| {
                let _ = packet.encode(version, out);
            });
        });
        if is_framed {
            frames::close(&self.connection, 1000, "");
        }
    }

    fn fault(&self, e: &DecodeError) -> End {
        let reason = e.disconnect_reason();
        report::peer_fault(&self.connection, reason.name(), &e.to_string());
        End::Reason(reason)
    }

    /// Ends the conversation.
    fn end(&mut self, end: End) {
        let (why, is_silent) = match end {
            End::ByClient => (EndReason::Goodbye, false),
            End::Silent => (EndReason::Shutdown, true),
            End::Reason(_) => (EndReason::Violation, false),
            End::Begun => (EndReason::Closed, false),
        };
        if let (State::Open(open), End::Reason(reason)) = (&self.state, end) {
            H::end(open, reason);
        }
        self.leave(why);
        match is_silent {
            true => self.connection.close(),
            false => self.connection.finish(),
        }
        let watch = &self.ground.listening().watch;
        watch.closing(self.watch, CLOSING_MAX);
    }

    /// Stops reading and takes the client out of its space and its realm. The noted cause of the end takes precedence
    /// over `seen`.
    fn leave(&mut self, seen: EndReason) {
        match mem::replace(&mut self.state, State::Over) {
            State::Open(open) => {
                let is_stopping = self.ground.listening().is_stopping();
                let facts = Facts::of(&self.connection, is_stopping, seen);
                let is_stop = is_stopping || Cause::noted(&self.connection) == Some(Cause::Stop);
                self.ground.leave(*open, facts.reason, is_stop);
            }
            State::LoggingIn(login) => H::abandon(*login, seen),
            State::Opening(_) | State::Over => {}
        }
    }

    /// Handles packets until the turn is over. Returns the number of handled bytes, and how to go on.
    fn handle_packets(&mut self, input: &[u8], budget: &mut Budget, now: Instant) -> (usize, Next) {
        let mut at = 0;
        loop {
            match self.step(&input[at..], now) {
                Step::Done { consumed, steps } => {
                    at += consumed;
                    let bytes = u32::try_from(consumed / STEP_BYTES).unwrap_or(u32::MAX);
                    let is_over = budget.spend(steps.saturating_add(bytes))
                        || crosstie_transport::is_line_long();
                    if at >= input.len() {
                        return (at, Next::Wanted(0));
                    }
                    if is_over {
                        counters().count(Counter::TurnsYielded);
                        return (at, Next::Yield);
                    }
                }
                Step::Wanted(wanted) => return (at, Next::Wanted(wanted)),
                Step::Halt { consumed } => return (at + consumed, Next::Halt),
                Step::End(end) => {
                    self.end(end);
                    return (input.len(), Next::Wanted(0));
                }
            }
        }
    }

    /// Pauses reading until an outcome resumes it.
    fn halt(&self) {
        self.connection.pause_reading();
        // The outcome may have come meanwhile, and found the reader not paused.
        if !self.waits() {
            self.connection.resume_reading();
        }
    }

    /// Whether an outcome is due before the next packet.
    fn waits(&self) -> bool {
        match &self.state {
            State::LoggingIn(login) => H::is_login_due(login),
            State::Open(open) => H::waits(open),
            State::Opening(_) | State::Over => false,
        }
    }

    /// What a client has sent before it closes is handled, too, if the outcome is sure to come.
    fn awaiting(&self, consumed: usize) -> Outcome {
        match self.is_held_back() {
            true => Outcome::Yield { consumed },
            false => Outcome::Await { consumed },
        }
    }

    fn is_held_back(&self) -> bool {
        matches!(&self.state, State::Open(open) if H::is_held_back(open))
    }

    /// Looks whether input may be handled.
    fn check_waiting(&self) -> Option<Outcome> {
        if !self.waits() {
            return None;
        }
        if self.is_held_back() && self.connection.is_reading_paused() {
            // The client has gone, and its slow receiver may take any time.
            return Some(Outcome::Close);
        }
        self.halt();
        Some(self.awaiting(0))
    }

    fn handle_stream(&mut self, input: &[u8]) -> Outcome {
        let now = Instant::now();
        let mut budget = Budget::begin(now);
        let (consumed, next) = self.handle_packets(input, &mut budget, now);
        self.outcome(consumed, next)
    }

    fn handle_framed(&mut self, input: &mut [u8]) -> Outcome {
        let now = Instant::now();
        let mut budget = Budget::begin(now);
        let mut at = 0;
        loop {
            let Some(frames) = &mut self.frames else {
                return Outcome::Close;
            };
            let packets = mem::take(&mut frames.packets);
            let (consumed, next) = self.handle_packets(&packets, &mut budget, now);
            let Some(frames) = &mut self.frames else {
                return Outcome::Close;
            };
            frames.packets = packets;
            frames.consume(consumed);
            if !matches!(next, Next::Wanted(_)) {
                frames.note_kept(&self.connection);
                return self.outcome(at, next);
            }
            if matches!(self.state, State::Over) {
                return self.outcome(input.len(), Next::Wanted(0));
            }
            if budget.spend(0) && at < input.len() {
                counters().count(Counter::TurnsYielded);
                frames.note_kept(&self.connection);
                return self.outcome(at, Next::Yield);
            }
            match frames.take(&mut input[at..], &self.connection) {
                Ok(Framed::Taken(bytes)) => at += bytes,
                Ok(Framed::Wanted(wanted)) => {
                    frames.note_kept(&self.connection);
                    return self.outcome(at, Next::Wanted(wanted));
                }
                Ok(Framed::Closed) => {
                    self.end(End::Begun);
                    return self.outcome(input.len(), Next::Wanted(0));
                }
                Err(e) => {
                    report::peer_fault(&self.connection, "frame", &e.to_string());
                    frames::close(&self.connection, e.close_code(), "");
                    self.end(End::Begun);
                    return self.outcome(input.len(), Next::Wanted(0));
                }
            }
        }
    }

    fn outcome(&self, consumed: usize, next: Next) -> Outcome {
        match next {
            Next::Wanted(wanted) => Outcome::Continue { consumed, wanted },
            Next::Yield => Outcome::Yield { consumed },
            Next::Halt => {
                self.halt();
                self.awaiting(consumed)
            }
        }
    }
}

/// How to go on after packets.
enum Next {
    Wanted(usize),
    Yield,
    Halt,
}

impl<H: Home> Protocol for Conversation<H> {
    fn may_move(&self) -> bool {
        true
    }

    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        if let Some(outcome) = self.check_waiting() {
            return outcome;
        }
        counters().count(Counter::Reads);
        counters().add(Counter::ReceivedBytes, input.len() as u64);
        match self.frames.is_some() {
            true => self.handle_framed(input),
            false => self.handle_stream(input),
        }
    }
}

impl<H: Home> Converse for Conversation<H> {
    fn handle_ended(&mut self, ended: &Ended) {
        match (ended, &self.state) {
            (Ended::StageFailed(e), _) => {
                report::peer_fault(&self.connection, "stage", &e.to_string());
            }
            (Ended::ByPeer { unconsumed: 1.. }, State::Open(open))
                if !self.connection.is_closed() && !H::waits(open) =>
            {
                report::peer_fault(&self.connection, "truncated", "closed inside a packet");
            }
            _ => watch::look_given_up(&self.connection),
        }
        self.leave(cause::seen(ended));
    }

    fn take_successor(&mut self) -> Option<Successor> {
        None
    }
}

impl<H: Home> Drop for Conversation<H> {
    fn drop(&mut self) {
        // Also if the task is dropped with its runtime, or unwound by a panic.
        self.leave(EndReason::Lost);
        self.ground.listening().watch.remove(self.watch);
        if std::thread::panicking() {
            self.connection.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::Ground;
    use crate::open::Open;

    #[test]
    fn an_idle_conversation_costs_little() {
        // As much as WAMP's: one more word would make its task 128 bytes longer.
        assert!(size_of::<Conversation<Ground>>() <= 48);
        assert!(size_of::<Open>() <= 136, "{}", size_of::<Open>());
    }
}

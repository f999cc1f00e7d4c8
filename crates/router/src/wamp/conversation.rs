//! What one connection says, from its first byte: which protocol, its handshake, its messages.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_config::{Auth, Ping, RawSocket, WebSocketOptions};
use crosstie_transport::{Budget, Connection, Ended, Outcome, Protocol};
use crosstie_wamp::framing::websocket::{self, DecoderConfig, MessageKind, Role};
use crosstie_wamp::framing::{Framing, Item, rawsocket};
use parking_lot::Mutex;

use crate::admission::Excess;
use crate::counters::{Counter, counters};
use crate::listen::Listening;
use crate::report;
use crate::wamp::compression::CompressFilter;
use crate::wamp::end_reason::EndReason;
use crate::wamp::frames::Frames;
use crate::wamp::peer::{Peer, Wire};
use crate::wamp::session::{Flow, Session};
use crate::wamp::upgrade::{self, Upgraded};
use crate::watch::{self, WatchKey};

/// The server's side of one connection.
pub(crate) struct Conversation {
    listening: Arc<Listening>,
    connection: Arc<Connection>,
    watch: WatchKey,
    /// There are as many connections as may be: this one is told so.
    excess: Option<Excess>,
    stage: Stage,
}

enum Stage {
    /// Too few bytes yet to tell RawSocket from HTTP, or the handshake is incomplete.
    Opening,
    Open(Box<Open>),
    /// The turn was over before all was done; nothing is read before it is.
    Waiting(Box<Waiting>),
    /// Everything is said; what still comes is not read.
    Over,
}

/// Handshakes are over: messages come in frames.
struct Open {
    frames: Frames,
    session: Session,
    batched: bool,
    manners: Arc<Manners>,
    /// Until the session has joined, messages are short and the handshake's time limit is on.
    joined: bool,
    message_bytes_max: u32,
    /// Its last turn put much into the line of the thread's fan-outs.
    fans_out: bool,
    /// A part of a message is kept, and on the connection's account.
    keeps: bool,
}

/// What a turn has left for the next one.
struct Waiting {
    open: Box<Open>,
    left: Left,
}

/// What comes before the rest of the input.
#[derive(Default)]
struct Left {
    /// The rest of a batch, unmasked and decompressed: its frame is not to be seen twice.
    batch: Vec<u8>,
    /// So much of that is done.
    done: usize,
    /// So much of it is on the connection's account.
    held_bytes: usize,
    /// Bytes of the input that were offered already.
    offered: usize,
}

impl Open {
    fn limit_messages(&mut self) {
        let bytes_max = self.message_bytes_max as usize;
        let hello_max = if self.joined {
            bytes_max
        } else {
            HELLO_BYTES_MAX
        };
        self.frames.set_message_bytes_max(bytes_max.min(hello_max));
    }

    /// Has the connection's debt say what is kept between two inputs, `left_bytes` of it by the turn.
    #[inline]
    fn note_kept(&mut self, left_bytes: usize) {
        let kept = self.frames.kept_bytes() + left_bytes;
        if kept > 0 || self.keeps {
            self.keeps = kept > 0;
            self.session.peer.connection.note_partial(kept);
        }
    }

    /// Remembers how much a turn has appended.
    fn note_fan_out(&mut self, appended_before: usize) {
        let appended = crosstie_transport::appended_bytes().saturating_sub(appended_before);
        self.fans_out = appended >= FAN_OUT_BYTES_MIN;
    }
}

impl Left {
    /// The rest of a batch, if there is one.
    fn of(batch: &[u8]) -> Option<Self> {
        (!batch.is_empty()).then(|| Self {
            batch: batch.to_vec(),
            ..Self::default()
        })
    }
}

/// How the connections of an endpoint are watched and closed.
#[derive(Debug)]
pub(crate) struct Manners {
    ping: Ping,
    /// The peer has so long to close its side after the last bytes were sent to it.
    closing_max: Duration,
    /// A peer's Close is answered with its own code and reason, not with 1000.
    echo_close: bool,
    /// A peer's fault ends the connection without the last words.
    fail_by_drop: bool,
}

impl From<&RawSocket> for Manners {
    fn from(options: &RawSocket) -> Self {
        Self {
            ping: options.ping,
            closing_max: CLOSING_MAX,
            echo_close: false,
            fail_by_drop: false,
        }
    }
}

impl From<&WebSocketOptions> for Manners {
    fn from(options: &WebSocketOptions) -> Self {
        Self {
            ping: options.ping,
            closing_max: options.close_handshake_timeout,
            echo_close: options.echo_close_codereason,
            fail_by_drop: options.fail_by_drop,
        }
    }
}

/// The longest first message: whoever has not joined yet must not make the router hold much.
const HELLO_BYTES_MAX: usize = 64 * 1024;

/// Whoever appends so much in one turn waits where the line of fan-outs is long.
const FAN_OUT_BYTES_MIN: usize = 64 * 1024;

/// For whom nothing is configured: whoever was turned away, and RawSockets.
const CLOSING_MAX: Duration = Duration::from_secs(2);

impl Conversation {
    pub(crate) fn new(
        listening: Arc<Listening>,
        connection: Arc<Connection>,
        excess: Option<Excess>,
    ) -> Self {
        let watch = &listening.router.watch;
        let within = listening.handshake_timeout;
        let watch = watch.add(Arc::clone(&connection), listening.number, within);
        Self {
            listening,
            connection,
            watch,
            excess,
            stage: Stage::Opening,
        }
    }

    /// Cleans up after the connection, however it ended.
    pub(crate) fn handle_ended(&mut self, ended: &Ended) {
        match (ended, &self.stage) {
            (Ended::StageFailed(e), _) => {
                report::peer_fault(&self.connection, "stage", &e.to_string());
            }
            (Ended::ByPeer { unconsumed }, Stage::Open(_)) if *unconsumed > 0 => {
                report::peer_fault(&self.connection, "truncated", "closed inside a message");
            }
            // The system's own patience was over before the watch looked.
            _ if self.connection.was_given_up() => {
                EndReason::Stalled.note(&self.connection);
                counters().count(Counter::ConnectionsClosedForStall);
                report::peer_fault(&self.connection, "timeout", watch::STALLED);
            }
            _ => {}
        }
        self.leave(match ended {
            Ended::Failed(_) => EndReason::Lost,
            Ended::StageFailed(_) => EndReason::Violation,
            _ => EndReason::Closed,
        });
    }

    /// Nothing more is read, and the session is over: for what was noted, where it was closed from
    /// here.
    fn leave(&mut self, why: EndReason) {
        let open = match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Open(open) => Some(open),
            Stage::Waiting(waiting) => Some(waiting.open),
            Stage::Opening | Stage::Over => None,
        };
        if let Some(mut open) = open {
            let why = match EndReason::noted(&self.connection) {
                Some(noted) => noted,
                None if self.listening.is_stopping() => EndReason::Shutdown,
                None => why,
            };
            open.session.leave(why);
        }
    }

    /// Looks at the first bytes; `None` asks for more.
    fn open(&mut self, input: &[u8]) -> Option<Outcome> {
        match input.first()? {
            &rawsocket::MAGIC => input.first_chunk().map(|bytes| self.open_rawsocket(*bytes)),
            _ => self.open_http(input),
        }
    }

    fn open_rawsocket(&mut self, handshake: [u8; 4]) -> Outcome {
        let listening = Arc::clone(&self.listening);
        let Some(endpoint) = &listening.rawsocket else {
            return self.turn_away("this endpoint does not speak RawSocket", &[]);
        };
        let options = &endpoint.options;
        let accepted = match self.excess {
            None => rawsocket::ServerHandshake::accept(
                handshake,
                &options.serializers,
                options.message_bytes_max,
            ),
            Some(_) => Err(rawsocket::HandshakeError::ConnectionsMax),
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(e) => return self.turn_away(&e.to_string(), &e.reply().map_or(vec![], Vec::from)),
        };
        self.append(&accepted.reply);
        let wire = Wire {
            serializer: accepted.serializer,
            framing: Framing::RawSocket,
            message_bytes_max: accepted.peer_length_max as u32,
        };
        let frames = Frames::RawSocket(rawsocket::Decoder::new(accepted.receive_length_max));
        self.open_session(
            frames,
            wire,
            false,
            accepted.receive_length_max,
            &endpoint.auth,
            &endpoint.manners,
        );
        Outcome::Continue {
            consumed: handshake.len(),
            wanted: 0,
        }
    }

    fn open_http(&mut self, input: &[u8]) -> Option<Outcome> {
        let listening = Arc::clone(&self.listening);
        let (consumed, request) = match websocket::parse_request(input) {
            Ok(parsed) => parsed?,
            Err(e) => return Some(self.reject(e.status(), &e.to_string())),
        };
        if !request.is_websocket_upgrade() {
            if listening.pages.is_empty() {
                let e = websocket::HandshakeError::NotUpgrade;
                return Some(self.reject(e.status(), &e.to_string()));
            }
            return Some(Outcome::HandOver { consumed: 0 });
        }
        if let Some(excess) = self.excess {
            return Some(self.reject(503, excess.text()));
        }
        let upgraded = upgrade::upgrade(&request, &listening.websockets, &listening.allowed_hosts);
        Some(match upgraded {
            Ok(upgraded) => self.open_websocket(consumed, &upgraded),
            Err(refused) => self.reject(refused.status, &refused.reason),
        })
    }

    fn open_websocket(&mut self, consumed: usize, upgraded: &Upgraded<'_>) -> Outcome {
        let Upgraded {
            endpoint,
            serializer,
            batched,
            deflate,
            response,
        } = upgraded;
        let options = &endpoint.options.options;
        self.append(response);
        if let Some(deflate) = deflate {
            let filter = CompressFilter::new(*deflate);
            self.connection.set_filter(Box::new(Mutex::new(filter)));
        }
        let kind = if serializer.is_binary() {
            MessageKind::Binary
        } else {
            MessageKind::Text
        };
        let config = DecoderConfig {
            message_bytes_max: options.message_bytes_max,
            frame_bytes_max: options.frame_bytes_max.unwrap_or(options.message_bytes_max),
            // The JSON decoder checks the text that it reads; nobody needs it twice.
            validate_text: false,
            expect: Some(kind),
            deflate: *deflate,
        };
        let wire = Wire {
            serializer: *serializer,
            framing: Framing::WebSocketServer { batched: *batched },
            message_bytes_max: u32::MAX,
        };
        let frames = Frames::WebSocket(websocket::Decoder::new(Role::Server, config));
        self.open_session(
            frames,
            wire,
            *batched,
            options.message_bytes_max,
            &endpoint.auth,
            &endpoint.manners,
        );
        Outcome::Continue {
            consumed,
            wanted: 0,
        }
    }

    fn open_session(
        &mut self,
        frames: Frames,
        wire: Wire,
        batched: bool,
        message_bytes_max: usize,
        auth: &Arc<Auth>,
        manners: &Arc<Manners>,
    ) {
        let peer = Peer {
            connection: Arc::clone(&self.connection),
            wire,
        };
        let session = Session::new(Arc::clone(&self.listening), Arc::clone(auth), peer);
        let manners = Arc::clone(manners);
        let mut open = Open {
            frames,
            session,
            batched,
            manners,
            joined: false,
            keeps: false,
            message_bytes_max: u32::try_from(message_bytes_max).unwrap_or(u32::MAX),
            fans_out: false,
        };
        open.limit_messages();
        self.stage = Stage::Open(Box::new(open));
    }

    /// Ends an HTTP connection with a response of this status.
    fn reject(&mut self, status: u16, reason: &str) -> Outcome {
        self.turn_away(reason, &websocket::reject_response(status, reason, &[]))
    }

    /// Ends a connection that never became a session.
    fn turn_away(&mut self, why: &str, last_words: &[u8]) -> Outcome {
        match self.excess {
            Some(excess) => {
                report::session_refused(&self.connection, excess.reason(), excess.text())
            }
            None => report::peer_fault(&self.connection, "handshake", why),
        }
        counters().count(Counter::ConnectionsRefused);
        self.append(last_words);
        self.finish()
    }

    fn append(&self, bytes: &[u8]) {
        // A new connection has room; one that is gone already shows so to its reader.
        let _ = self.connection.append(|out| {
            out.extend_from_slice(bytes);
            Ok::<(), ()>(())
        });
    }

    /// Sends what is queued, and gives the peer a moment to close its side.
    fn finish(&mut self) -> Outcome {
        let closing_max = match &self.stage {
            Stage::Open(open) => open.manners.closing_max,
            Stage::Opening | Stage::Waiting(_) | Stage::Over => CLOSING_MAX,
        };
        self.connection.finish();
        self.listening.router.watch.closing(self.watch, closing_max);
        self.leave(EndReason::Closed);
        Outcome::Continue {
            consumed: 0,
            wanted: 0,
        }
    }

    /// Takes what the last turn has left, and counts what has come since.
    fn take_left(&mut self, bytes: usize) -> Option<Left> {
        if !matches!(self.stage, Stage::Waiting(_)) {
            counters().count(Counter::Reads);
            counters().add(Counter::ReceivedBytes, bytes as u64);
            return None;
        }
        let Stage::Waiting(waiting) = mem::replace(&mut self.stage, Stage::Over) else {
            return None;
        };
        let Waiting { open, left } = *waiting;
        let received = bytes.saturating_sub(left.offered);
        counters().add(Counter::ReceivedBytes, received as u64);
        self.stage = Stage::Open(open);
        Some(left)
    }

    /// Ends the turn: so much of the input is done, and this comes before the rest.
    #[cold]
    fn wait(&mut self, mut left: Left, consumed: usize, input: &[u8]) -> Outcome {
        if left.held_bytes != left.batch.len() {
            left.held_bytes = left.batch.len();
            self.connection.hold(left.held_bytes as isize);
        }
        let offered = input.len() - consumed;
        self.stage = match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Open(open) => Stage::Waiting(Box::new(Waiting {
                open,
                left: Left { offered, ..left },
            })),
            other => other,
        };
        Outcome::Yield { consumed }
    }

    /// Handles what the last turn has left and the messages in `input`, until the turn is over.
    fn handle_frames(&mut self, left: Option<Left>, input: &mut [u8]) -> Outcome {
        let Stage::Open(open) = &mut self.stage else {
            return Outcome::Continue {
                consumed: input.len(),
                wanted: 0,
            };
        };
        if open.fans_out && crosstie_transport::is_line_long() {
            return self.wait(left.unwrap_or_default(), 0, input);
        }
        let appended_before = crosstie_transport::appended_bytes();
        let watch = &self.listening.router.watch;
        // Reading the clock once for all messages of an input saves 5 % of the time per call.
        let now = Instant::now();
        let mut budget = Budget::begin(now);
        let mut consumed = 0;
        let mut left = left.filter(|left| !left.batch.is_empty());
        loop {
            let mut rest = None;
            let (flow, is_over) = if let Some(mut left) = left.take() {
                let batch = &left.batch[left.done..];
                let drop_on_fault = open.manners.fail_by_drop;
                let session = &mut open.session;
                let (flow, unsplit) = session.handle_batch(batch, now, &mut budget, drop_on_fault);
                let unsplit = unsplit.len();
                if unsplit > 0 {
                    left.done = left.batch.len() - unsplit;
                    rest = Some(left);
                } else {
                    self.connection.hold(-(left.held_bytes as isize));
                }
                (flow, false)
            } else {
                match open.frames.next(&mut input[consumed..]) {
                    Err(e) => {
                        let flow = open.session.frame_fault(&e, open.manners.fail_by_drop);
                        (flow, false)
                    }
                    Ok(step) if step.consumed == 0 => {
                        let wanted = step.wanted;
                        open.note_fan_out(appended_before);
                        open.note_kept(0);
                        return Outcome::Continue { consumed, wanted };
                    }
                    Ok(step) => {
                        consumed += step.consumed;
                        let session = &mut open.session;
                        let flow = match step.item {
                            Some(Item::Message { bytes, .. }) if open.batched => {
                                let drop_on_fault = open.manners.fail_by_drop;
                                let (flow, unsplit) =
                                    session.handle_batch(bytes, now, &mut budget, drop_on_fault);
                                rest = Left::of(unsplit);
                                flow
                            }
                            Some(Item::Message { bytes, .. }) => session.handle_message(bytes, now),
                            Some(Item::Ping(payload)) => session.pong(payload),
                            Some(Item::Pong(_)) => {
                                watch.answered(self.watch);
                                Flow::Continue
                            }
                            Some(Item::Close(close)) => {
                                session.answer_close(close, open.manners.echo_close)
                            }
                            None => Flow::Continue,
                        };
                        // The messages of a batch have been charged one by one.
                        let bytes = if open.batched { 0 } else { step.consumed };
                        (flow, session.spend(&mut budget, bytes))
                    }
                }
            };
            if open.joined != open.session.is_joined() {
                open.joined = !open.joined;
                open.limit_messages();
                match open.joined {
                    true => {
                        let framing = open.session.peer.wire.framing;
                        watch.opened(self.watch, framing, &open.manners.ping);
                    }
                    // The next session has as long to come as the first one had.
                    false => watch.opening(self.watch, self.listening.handshake_timeout),
                }
            }
            if flow == Flow::Finish {
                self.finish();
                return Outcome::Continue {
                    consumed: input.len(),
                    wanted: 0,
                };
            }
            if rest.is_some() || (is_over && consumed < input.len()) {
                open.note_fan_out(appended_before);
                open.note_kept(rest.as_ref().map_or(0, |rest| rest.batch.capacity()));
                return self.wait(rest.unwrap_or_default(), consumed, input);
            }
        }
    }
}

impl Protocol for Conversation {
    fn may_move(&self) -> bool {
        true
    }

    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let left = self.take_left(input.len());
        let mut opening = 0;
        if matches!(self.stage, Stage::Opening) {
            match self.open(input) {
                Some(Outcome::Continue { consumed, .. }) => opening = consumed,
                Some(other) => return other,
                None => {
                    return Outcome::Continue {
                        consumed: 0,
                        wanted: 0,
                    };
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
            other => other,
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Also when the task is dropped with its runtime, or a panic unwinds it.
        self.leave(EndReason::Lost);
        self.listening.router.watch.remove(self.watch);
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
        // With the allocator's word, a multiple of 16.
        assert!(size_of::<Open>() <= 136, "{}", size_of::<Open>());
        assert!(size_of::<Conversation>() <= 48);
    }
}

//! What one connection says, from its first octet: which protocol, its handshake, its messages.

use std::mem;
use std::sync::Arc;

use crosstie_config::{Auth, Ping, RawSocket, WebSocket};
use crosstie_transport::{Connection, Ended, Outcome, Protocol};
use crosstie_wamp::framing::websocket::{self, DecoderConfig, MessageKind, Role};
use crosstie_wamp::framing::{Framing, FramingError, Item, batched, rawsocket};

use crate::counters::counters;
use crate::listen::Listening;
use crate::peer::{Peer, Wire};
use crate::report;
use crate::session::{Flow, Session};
use crate::upgrade::{self, Upgraded};
use crate::watch::WatchKey;

/// The server's side of one connection.
pub(crate) struct Conversation {
    listening: Arc<Listening>,
    connection: Arc<Connection>,
    watch: WatchKey,
    stage: Stage,
}

enum Stage {
    /// Too few octets yet to tell RawSocket from HTTP, or the handshake is incomplete.
    Opening,
    RawSocket {
        decoder: rawsocket::Decoder,
        session: Session,
    },
    WebSocket {
        decoder: websocket::Decoder,
        session: Session,
        batched: bool,
    },
    /// Everything is said; what still comes is not read.
    Over,
}

/// How long a peer has to close its side after the last octets were sent to it.
const CLOSING_MAX: std::time::Duration = std::time::Duration::from_secs(2);

impl Conversation {
    pub(crate) fn new(listening: Arc<Listening>, connection: Arc<Connection>) -> Self {
        let watch = listening.router.watch.add(Arc::clone(&connection));
        Self {
            listening,
            connection,
            watch,
            stage: Stage::Opening,
        }
    }

    /// Cleans up after the connection, however it ended.
    pub(crate) fn handle_ended(&mut self, ended: &Ended) {
        if let Some(session) = self.session() {
            if session.is_joined() {
                match ended {
                    Ended::ByPeer { unconsumed } if *unconsumed > 0 => {
                        report::peer_fault(
                            &self.connection,
                            "truncated",
                            "closed inside a message",
                        );
                    }
                    Ended::StageFailed(e) => {
                        report::peer_fault(&self.connection, "stage", &e.to_string());
                    }
                    _ => {}
                }
            }
        } else if let Ended::StageFailed(e) = ended {
            report::peer_fault(&self.connection, "stage", &e.to_string());
        }
        if let Some(session) = self.session() {
            session.leave();
        }
        self.stage = Stage::Over;
        self.listening.router.watch.remove(self.watch);
    }

    fn session(&mut self) -> Option<&mut Session> {
        match &mut self.stage {
            Stage::RawSocket { session, .. } | Stage::WebSocket { session, .. } => Some(session),
            Stage::Opening | Stage::Over => None,
        }
    }

    /// Looks at the first octets; `None` asks for more.
    fn open(&mut self, input: &[u8]) -> Option<Outcome> {
        match input.first()? {
            &rawsocket::MAGIC => {
                let handshake = input.first_chunk::<4>()?;
                Some(match self.listening.rawsocket.clone() {
                    Some(options) => self.open_rawsocket(*handshake, &options),
                    None => self.turn_away("this endpoint does not speak RawSocket", &[]),
                })
            }
            _ => self.open_http(input),
        }
    }

    fn open_rawsocket(&mut self, handshake: [u8; 4], options: &RawSocket) -> Outcome {
        let accepted = rawsocket::ServerHandshake::accept(
            handshake,
            &options.serializers,
            options.message_bytes_max,
        );
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(e) => {
                let reply = e.reply().unwrap_or_default();
                let reply = if e.reply().is_some() { &reply[..] } else { &[] };
                return self.turn_away(&e.to_string(), reply);
            }
        };
        self.append(&accepted.reply);
        let wire = Wire {
            serializer: accepted.serializer,
            framing: Framing::RawSocket,
            message_bytes_max: accepted.peer_length_max as u32,
        };
        let session = self.session_of(wire, &options.auth, &options.ping);
        let decoder = rawsocket::Decoder::new(accepted.receive_length_max);
        self.stage = Stage::RawSocket { decoder, session };
        Outcome::Continue {
            consumed: handshake.len(),
            wanted: 0,
        }
    }

    fn open_http(&mut self, input: &[u8]) -> Option<Outcome> {
        let (consumed, request) = match websocket::parse_request(input) {
            Ok(parsed) => parsed?,
            Err(e) => {
                let response = websocket::reject_response(e.status(), &e.to_string(), &[]);
                return Some(self.turn_away(&e.to_string(), &response));
            }
        };
        if !request.is_websocket_upgrade() {
            if self.listening.pages.is_empty() {
                let e = websocket::HandshakeError::NotUpgrade;
                let response = websocket::reject_response(e.status(), &e.to_string(), &[]);
                return Some(self.turn_away(&e.to_string(), &response));
            }
            return Some(Outcome::HandOver { consumed: 0 });
        }
        let listening = Arc::clone(&self.listening);
        Some(match upgrade::upgrade(&request, &listening.websockets) {
            Ok(upgraded) => self.open_websocket(consumed, &upgraded),
            Err(refused) => self.turn_away(&refused.reason, &refused.response),
        })
    }

    fn open_websocket(&mut self, consumed: usize, upgraded: &Upgraded<'_>) -> Outcome {
        let Upgraded {
            options,
            serializer,
            batched,
            response,
        } = upgraded;
        let WebSocket { auth, options, .. } = options;
        self.append(response);
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
        };
        let wire = Wire {
            serializer: *serializer,
            framing: Framing::WebSocketServer { batched: *batched },
            message_bytes_max: u32::MAX,
        };
        let session = self.session_of(wire, auth, &options.ping);
        let decoder = websocket::Decoder::new(Role::Server, config);
        self.stage = Stage::WebSocket {
            decoder,
            session,
            batched: *batched,
        };
        Outcome::Continue {
            consumed,
            wanted: 0,
        }
    }

    fn session_of(&self, wire: Wire, auth: &Auth, ping: &Ping) -> Session {
        let router = &self.listening.router;
        router.watch.opened(self.watch, wire.framing, ping);
        let peer = Peer {
            connection: Arc::clone(&self.connection),
            wire,
        };
        Session::new(Arc::clone(router), Arc::new(auth.clone()), peer)
    }

    /// Ends a connection that never became a session.
    fn turn_away(&mut self, why: &str, last_words: &[u8]) -> Outcome {
        report::peer_fault(&self.connection, "handshake", why);
        counters().connection_refused();
        self.append(last_words);
        self.finish()
    }

    fn append(&self, octets: &[u8]) {
        // A new connection has room; one that is gone already shows so to its reader.
        let _ = self.connection.append(|out| {
            out.extend_from_slice(octets);
            Ok::<(), ()>(())
        });
    }

    fn finish(&mut self) -> Outcome {
        self.connection.finish();
        self.listening.router.watch.closing(self.watch, CLOSING_MAX);
        if let Some(session) = self.session() {
            session.leave();
        }
        self.stage = Stage::Over;
        Outcome::Continue {
            consumed: usize::MAX,
            wanted: 0,
        }
    }
}

impl Protocol for Conversation {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        counters().read(input.len());
        let mut consumed = 0;
        loop {
            let rest = &mut input[consumed..];
            let step = match &mut self.stage {
                Stage::Opening => match self.open(rest) {
                    Some(Outcome::Continue {
                        consumed: usize::MAX,
                        ..
                    }) => consumed_all(input.len()),
                    Some(Outcome::Continue {
                        consumed: count, ..
                    }) => {
                        consumed += count;
                        continue;
                    }
                    Some(other) => other,
                    None => Outcome::Continue {
                        consumed,
                        wanted: 0,
                    },
                },
                Stage::RawSocket { decoder, session } => {
                    match rawsocket_messages(decoder, session, rest) {
                        Messages::Handled {
                            consumed: count,
                            wanted,
                        } => Outcome::Continue {
                            consumed: consumed + count,
                            wanted,
                        },
                        Messages::Finish => {
                            self.finish();
                            consumed_all(input.len())
                        }
                    }
                }
                Stage::WebSocket {
                    decoder,
                    session,
                    batched,
                } => match websocket_messages(decoder, session, *batched, rest) {
                    Messages::Handled {
                        consumed: count,
                        wanted,
                    } => Outcome::Continue {
                        consumed: consumed + count,
                        wanted,
                    },
                    Messages::Finish => {
                        self.finish();
                        consumed_all(input.len())
                    }
                },
                Stage::Over => consumed_all(input.len()),
            };
            return step;
        }
    }
}

fn consumed_all(len: usize) -> Outcome {
    Outcome::Continue {
        consumed: len,
        wanted: 0,
    }
}

/// What became of the messages in an input.
enum Messages {
    Handled { consumed: usize, wanted: usize },
    Finish,
}

fn rawsocket_messages(
    decoder: &mut rawsocket::Decoder,
    session: &mut Session,
    input: &mut [u8],
) -> Messages {
    let mut consumed = 0;
    loop {
        match decoder.next(&mut input[consumed..]) {
            Ok(step) => {
                if step.consumed == 0 {
                    return Messages::Handled {
                        consumed,
                        wanted: step.wanted,
                    };
                }
                consumed += step.consumed;
                match step.item {
                    Some(Item::Message { octets, .. }) => {
                        if session.handle_message(octets) == Flow::Finish {
                            return Messages::Finish;
                        }
                    }
                    Some(Item::Ping(payload)) => pong(&session.peer, payload),
                    Some(Item::Pong(_) | Item::Close(_)) | None => {}
                }
            }
            Err(e) => return frame_fault(session, &e),
        }
    }
}

fn websocket_messages(
    decoder: &mut websocket::Decoder,
    session: &mut Session,
    is_batched: bool,
    input: &mut [u8],
) -> Messages {
    let mut consumed = 0;
    loop {
        match decoder.next(&mut input[consumed..]) {
            Ok(step) => {
                if step.consumed == 0 {
                    return Messages::Handled {
                        consumed,
                        wanted: step.wanted,
                    };
                }
                consumed += step.consumed;
                match step.item {
                    Some(Item::Message { octets, .. }) if is_batched => {
                        for message in batched::split(session.peer.wire.serializer, octets) {
                            match message {
                                Ok(message)
                                    if session.handle_message(message) == Flow::Continue => {}
                                Ok(_) => return close_after(session, 1000, ""),
                                Err(e) => return frame_fault(session, &e),
                            }
                        }
                    }
                    Some(Item::Message { octets, .. }) => {
                        if session.handle_message(octets) == Flow::Finish {
                            return close_after(session, 1000, "");
                        }
                    }
                    Some(Item::Ping(payload)) => pong(&session.peer, payload),
                    Some(Item::Close(close)) => {
                        return close_after(session, close.code.unwrap_or(1000), "");
                    }
                    Some(Item::Pong(_)) | None => {}
                }
            }
            Err(e) => return frame_fault(session, &e),
        }
    }
}

fn pong(peer: &Peer, payload: &[u8]) {
    // A peer that pings without reading its pongs loses some of them, and nothing else.
    let _ = peer.connection.append(|out| {
        peer.wire.framing.pong(payload, out);
        Ok::<(), ()>(())
    });
}

/// Octets that are no frame: the session is aborted, and a WebSocket closed with the code for it.
fn frame_fault(session: &mut Session, e: &FramingError) -> Messages {
    let text = e.to_string();
    session.abort(crosstie_routing::error::PROTOCOL_VIOLATION, &text);
    close_after(session, e.close_code(), &text)
}

/// Says the last frame of a WebSocket; a RawSocket has none.
fn close_after(session: &Session, code: u16, reason: &str) -> Messages {
    let peer = &session.peer;
    let _ = peer.connection.append(|out| {
        peer.wire.framing.close(code, reason, out);
        Ok::<(), ()>(())
    });
    Messages::Finish
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // A task that is dropped with its runtime has not been told how it ended.
        if let Some(session) = self.session() {
            session.leave();
        }
        let _ = mem::replace(&mut self.stage, Stage::Over);
    }
}

//! The beginning of a connection: detects the protocol, and performs the framing's handshake.

use std::sync::Arc;

use crosstie_config::WebSocketOptions;
use crosstie_front::counters::{Counter, counters};
use crosstie_front::report;
use crosstie_front::sniff::{First, Known, sniff};
use crosstie_transport::Outcome;
use crosstie_transport::proxy_header::{ProxyHeader, UNEXPECTED_PROXY_HEADER};
use crosstie_wamp::framing::websocket::{self, DecoderConfig, MessageKind, Role};
use crosstie_wamp::framing::{Framing, rawsocket};
use crosstie_web::http2;
use parking_lot::Mutex;

use super::{Conversation, State, To};
use crate::compression::CompressFilter;
use crate::endpoints::WebSocketEndpoint;
use crate::frames::Frames;
use crate::live_methods::LiveMethods;
use crate::open::Open;
use crate::peer::{Peer, Wire};
use crate::session::Session;
use crate::supervision::Supervision;
use crate::upgrade::{self, Spoken, Upgraded};

impl Conversation {
    /// Reads the first bytes; `None` asks for more.
    pub(super) fn open(&mut self, input: &[u8]) -> Option<Outcome> {
        if !input.is_empty() {
            self.connection.note_spoken();
        }
        let is_http2_spoken = self
            .entrance
            .http
            .as_ref()
            .is_some_and(|h| h.speaks_http2());
        let known = Known {
            magic: rawsocket::MAGIC,
            preface: is_http2_spoken.then_some(http2::PREFACE),
            is_mqtt_spoken: self.entrance.mqtt.is_some(),
        };
        match sniff(input, known)? {
            First::Handshake(bytes) => Some(self.open_rawsocket(bytes)),
            First::Preface => Some(Outcome::HandOver { consumed: 0 }),
            First::Connect => {
                self.to = To::Mqtt;
                Some(Outcome::HandOver { consumed: 0 })
            }
            First::Request => self.open_http(input),
        }
    }

    fn open_rawsocket(&mut self, handshake: [u8; 4]) -> Outcome {
        let entrance = Arc::clone(&self.entrance);
        let Some(endpoint) = &entrance.rawsocket else {
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
        self.open_session(frames, wire, false, &endpoint.auth, &endpoint.supervision);
        Outcome::consumed(handshake.len())
    }

    fn open_http(&mut self, input: &[u8]) -> Option<Outcome> {
        let entrance = Arc::clone(&self.entrance);
        let head_bytes_max = entrance.listening.bounds.request_head_bytes_max;
        let (consumed, request) = match websocket::parse_request(input, head_bytes_max) {
            Ok(parsed) => parsed?,
            Err(_) if ProxyHeader::begins(input) => {
                return Some(self.turn_away(UNEXPECTED_PROXY_HEADER, &[]));
            }
            Err(e) => return Some(self.reject(e.status(), &e.to_string())),
        };
        if !request.is_websocket_upgrade() || entrance.passes_websocket(request.path()) {
            if entrance.takes_http(self.excess) {
                return Some(Outcome::HandOver { consumed: 0 });
            }
            return Some(match entrance.answer(&request, self.excess) {
                (status @ (200 | 204), text) => {
                    let text = if request.method == "HEAD" { "" } else { &*text };
                    self.append(&websocket::closing_response(status, text, &[]));
                    self.finish()
                }
                (status, reason) => self.reject(status, &reason),
            });
        }
        if let Some(excess) = self.excess {
            return Some(self.reject(503, excess.text()));
        }
        let upgraded = upgrade::upgrade(&request, &entrance.websockets, &entrance.allowed_hosts);
        Some(match upgraded {
            Ok(upgraded) => self.open_websocket(consumed, upgraded),
            Err(refused) => self.reject(refused.status, &refused.reason),
        })
    }

    fn open_websocket(&mut self, consumed: usize, upgraded: Upgraded<'_>) -> Outcome {
        let Upgraded {
            endpoint,
            spoken,
            deflate,
            cookie,
            response,
        } = upgraded;
        let options = &endpoint.options.options;
        self.append(&response);
        let Spoken::Wamp {
            serializer,
            batched,
        } = spoken
        else {
            return self.hand_over_to_mqtt(consumed, endpoint);
        };
        if let Some(deflate) = deflate {
            let filter = CompressFilter::new(deflate, self.connection.account());
            self.connection.set_filter(Arc::new(Mutex::new(filter)));
        }
        let kind = if serializer.is_binary() {
            MessageKind::Binary
        } else {
            MessageKind::Text
        };
        let config = DecoderConfig {
            message_bytes_max: options.message_bytes_max,
            frame_bytes_max: options.frame_bytes_max.unwrap_or(options.message_bytes_max),
            // The JSON decoder validates its text, so that a second check is unnecessary.
            validate_text: false,
            expect: Some(kind),
            deflate,
        };
        let wire = Wire {
            serializer,
            framing: Framing::WebSocketServer { batched },
            message_bytes_max: u32::MAX,
        };
        if let (Some(jar), Some(cookie)) = (&endpoint.cookies, cookie) {
            jar.attach(cookie, &self.connection, wire);
        }
        let frames = Frames::WebSocket(websocket::Decoder::new(Role::Server, config));
        self.open_session(frames, wire, batched, &endpoint.auth, &endpoint.supervision);
        Outcome::consumed(consumed)
    }

    fn hand_over_to_mqtt(&mut self, consumed: usize, endpoint: &WebSocketEndpoint) -> Outcome {
        let websockets = &self.entrance.websockets;
        let place = websockets
            .iter()
            .position(|known| known.path == endpoint.path);
        let place = place.and_then(|place| u16::try_from(place).ok());
        // Found a moment ago.
        self.to = place.map_or(To::Http, To::MqttOver);
        Outcome::HandOver { consumed }
    }

    fn open_session(
        &mut self,
        frames: Frames,
        wire: Wire,
        batched: bool,
        auth: &Arc<LiveMethods>,
        supervision: &Arc<Supervision>,
    ) {
        let peer = Peer {
            connection: Arc::clone(&self.connection),
            wire,
        };
        let session = Session::new(Arc::clone(&self.entrance), Arc::clone(auth), peer);
        let open = Open::new(frames, session, batched, Arc::clone(supervision));
        self.state = State::Open(Box::new(open));
    }

    /// Ends an HTTP connection with a response of this status.
    fn reject(&mut self, status: u16, reason: &str) -> Outcome {
        self.turn_away(reason, &websocket::closing_response(status, reason, &[]))
    }

    /// Ends a connection that never became a session.
    fn turn_away(&mut self, why: &str, last_words: &[u8]) -> Outcome {
        match self.excess {
            Some(excess) => {
                let refused = report::Refused::new(excess.reason(), excess.text());
                report::session_refused(&self.connection, &refused);
            }
            None => report::peer_fault(&self.connection, "handshake", why),
        }
        counters().count(Counter::ConnectionsRefused);
        self.append(last_words);
        self.finish()
    }
}

/// The decoder's bounds for frames that carry MQTT.
pub(super) fn decoding_mqtt(options: &WebSocketOptions) -> DecoderConfig {
    DecoderConfig {
        message_bytes_max: options.message_bytes_max,
        frame_bytes_max: options.frame_bytes_max.unwrap_or(options.message_bytes_max),
        validate_text: false,
        expect: Some(MessageKind::Binary),
        deflate: None,
    }
}

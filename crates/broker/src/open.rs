//! A client in its vhost: handles the frames of an input, a turn's worth under one lock.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crosstie_amqp::frame::{self, Decoded, Frame, FrameKind};
use crosstie_amqp::{Method, ReplyCode, Version};
use crosstie_config::AmqpTransport;
use crosstie_front::counters::{Counter, counters};
use crosstie_front::watch::WatchKey;
use crosstie_queues::{Client, ConnectionKey, Fault};
use crosstie_transport::Connection;

use super::broker::Broker;
use super::channels::{Channels, method_fault};
use super::handled::{End, Handled};
use super::let_in::LetIn;
use super::peer::{Peer, PeerParts};
use super::turn::Turn;
use super::update_secret::update_secret;
use super::vhost::SharedVhost;

/// A client that enters a vhost of this node.
pub(super) type Entered = LetIn<Arc<SharedVhost>>;

/// A client in a vhost.
pub(super) struct Open {
    peer: Arc<Peer>,
    key: ConnectionKey,
    channels: Channels,
    /// What was received before `connection.close` was sent has been handled.
    has_handled_last: bool,
}

impl Open {
    /// Lets a client into its vhost.
    pub(super) fn enter(
        entered: Entered,
        connection: &Arc<Connection>,
        (transport, options): (u32, &AmqpTransport),
        watch: WatchKey,
        broker: &Broker,
    ) -> Self {
        let Entered {
            client,
            vhost,
            permissions,
            rights,
            is_impersonator,
            seat,
        } = entered;
        let user = Arc::clone(&client.about.user);
        let peer = Arc::new(Peer::new(PeerParts {
            connection: Arc::clone(connection),
            number: broker.next_number(),
            transport,
            watch,
            closing_timeout: options.closing_timeout,
            version: client.version,
            frame_bytes_max: client.frame_bytes_max,
            vhost: Arc::clone(&vhost),
            about: client.about,
            seat,
            rights,
            is_told_of_blocking: client.capabilities.connection_blocked,
        }));
        let properties_bytes = peer.about.properties.bytes();
        peer.connection.hold(properties_bytes as isize);
        if let Some(rights) = &peer.rights {
            rights.charge(&peer.connection);
        }
        let key = {
            let mut turn = vhost.turn(Instant::now());
            let (vhost, ..) = turn.enter();
            let client = Client {
                user,
                permissions,
                consumer_cancel_notify: client.capabilities.consumer_cancel_notify,
                is_impersonator,
            };
            let key = vhost.open_connection(Arc::clone(&peer), client);
            turn.finish();
            key
        };
        // This is the only place that sets the key.
        let _ = peer.key.set(key);
        Self {
            peer,
            key,
            channels: Channels::new(key, client.channels_max),
            has_handled_last: false,
        }
    }

    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Handles the frames in `input` until the turn is over.
    pub(super) fn handle(&mut self, input: &[u8], broker: &Broker) -> Handled {
        let Self {
            peer,
            key,
            channels,
            has_handled_last,
        } = self;
        for number in peer.take_closed_channels() {
            channels.note_closed(peer, number);
        }
        // A client that does not wait for answers, such as a publisher without confirms, has sent this input before it
        // could know that the broker closes.
        let is_closing = peer.is_told_to_close();
        let is_late = is_closing && mem::replace(has_handled_last, !input.is_empty());
        // Nothing more is taken from a client whose socket is closed because it holds too much.
        if is_late || is_closing && peer.connection.is_closed() {
            return Handled::End(End::Forced);
        }
        if let Some(handled) = peer.keeps_asking() {
            return handled;
        }
        if peer.has_resumed() {
            channels.forgive();
        }
        // Who closes does not wait for the alarm's end, and what it has sent is handled.
        let is_ending = || is_closing || peer.connection.has_peer_closed();
        channels.withholds = broker.shared.flow.has_alarm() && !peer.is_request() && !is_ending();
        // One reading of the clock serves all frames of a turn.
        let mut turn = peer.vhost.turn(Instant::now());
        let handled = handle_turn(peer, channels, broker, &mut turn, input, is_closing);
        if channels.published.content {
            turn.share();
        }
        let uncommitted_bytes = turn.uncommitted_bytes(*key);
        let journaled = turn.finish();
        if peer.connection.is_tapped() {
            peer.connection
                .tap_received(&input[..handled.consumed(input)]);
        }
        // Deliveries are sent before the confirms of their messages, because an answer to a delivery is usually urgent
        // and a confirm is not.
        crosstie_transport::uncork_few();
        if channels.note_incomplete(uncommitted_bytes) {
            broker
                .shared
                .incomplete
                .set(peer, channels.incomplete_bytes());
            peer.set_unfinished(channels.unfinished_since_s());
        }
        let mut published = mem::take(&mut channels.published);
        published.journaled = journaled;
        // A client that closes its connection is read to the end.
        if !matches!(handled, Handled::End(_)) {
            peer.vhost.judge(peer, published);
        }
        handled
    }

    /// Takes the client out of its vhost.
    pub(super) fn leave(self, broker: &Broker) {
        broker.remove_peer(self.peer.number);
        let mut turn = self.peer.vhost.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        vhost.close_connection(now, self.key, outbox);
        turn.finish();
        broker.shared.incomplete.set(&self.peer, 0);
    }
}

/// Handles the frames in `input` until the turn is over. Faults of a client that is closed anyway are not reported.
fn handle_turn(
    peer: &Arc<Peer>,
    channels: &mut Channels,
    broker: &Broker,
    turn: &mut Turn<'_>,
    input: &[u8],
    is_closing: bool,
) -> Handled {
    let mut at = 0;
    loop {
        let result = handle_next(peer, channels, broker, turn, &input[at..]);
        peer.note_handled();
        match result {
            Ok(Handled::Done { consumed }) => at += consumed,
            Ok(Handled::Wait { consumed, wanted }) => {
                let consumed = at + consumed;
                return Handled::Wait { consumed, wanted };
            }
            Ok(Handled::Yield { consumed }) => {
                let consumed = at + consumed;
                return Handled::Yield { consumed };
            }
            Ok(handled) => return handled,
            Err(_) if is_closing => return Handled::End(End::Forced),
            Err(fault) => return Handled::End(End::Fault(fault)),
        }
        if turn.spend() && at < input.len() {
            counters().count(Counter::TurnsYielded);
            return Handled::Yield { consumed: at };
        }
    }
}

/// Handles the front of `input`: a frame, or a message with all its frames.
fn handle_next(
    peer: &Arc<Peer>,
    channels: &mut Channels,
    broker: &Broker,
    turn: &mut Turn<'_>,
    input: &[u8],
) -> Result<Handled, Fault> {
    let (frame, consumed) = match next_frame(input, peer.frame_bytes_max) {
        Ok(found) => found,
        Err(handled) => return Ok(handled),
    };
    match (frame.channel, frame.kind) {
        (0, _) => handle_alone(&frame, consumed, peer, broker),
        (_, FrameKind::Heartbeat) => Err(heartbeat_fault(&frame)),
        _ => channels.handle(peer, broker, turn, &frame, &input[consumed..]),
    }
}

/// The frame at the front of `input` and its size, or what the caller must do instead.
pub(super) fn next_frame(
    input: &[u8],
    frame_bytes_max: u32,
) -> Result<(Frame<'_>, usize), Handled> {
    match frame::decode(input, frame_bytes_max) {
        Ok(Decoded::Frame { frame, consumed }) => Ok((frame, consumed)),
        Ok(Decoded::Incomplete { wanted }) => Err(Handled::Wait {
            consumed: 0,
            wanted,
        }),
        Err(e) => {
            let code = ReplyCode::FrameError;
            let fault = Fault::in_method(code, (0, 0), e.to_string());
            Err(Handled::End(End::Fault(fault)))
        }
    }
}

/// The method of a frame on channel 0; `None` for a heartbeat.
pub(super) fn decode_alone<'a>(
    frame: &Frame<'a>,
    version: Version,
) -> Result<Option<Method<'a>>, Fault> {
    match frame.kind {
        FrameKind::Heartbeat => Ok(None),
        FrameKind::Method => {
            let method = version.decode(frame.payload);
            let method = method.map_err(|e| method_fault(&e))?;
            match frame.channel {
                0 => Ok(Some(method)),
                _ => {
                    let text = "expected a method of the connection, on channel 0";
                    let code = ReplyCode::ChannelError;
                    Err(Fault::in_method(code, method.ids(), text))
                }
            }
        }
        FrameKind::Header | FrameKind::Body => Err(Fault::in_method(
            ReplyCode::UnexpectedFrame,
            (0, 0),
            "expected method frame, got non method frame instead",
        )),
    }
}

/// Heartbeats belong to channel 0.
fn heartbeat_fault(frame: &Frame<'_>) -> Fault {
    let text = match frame.payload {
        [] => "type 8, all octets = <<>>".to_owned(),
        payload => format!("type 8 with {} bytes on a channel", payload.len()),
    };
    Fault::in_method(ReplyCode::UnexpectedFrame, (0, 0), text)
}

/// Handles a frame on channel 0 of a client in a vhost.
fn handle_alone(
    frame: &Frame<'_>,
    consumed: usize,
    peer: &Arc<Peer>,
    broker: &Broker,
) -> Result<Handled, Fault> {
    match decode_alone(frame, peer.version)? {
        None => {
            crosstie_transport::expect_none(&peer.connection);
            Ok(Handled::Done { consumed })
        }
        Some(Method::ConnectionClose(_)) => Ok(Handled::End(End::ByClient)),
        Some(Method::ConnectionCloseOk(_)) => Ok(Handled::End(End::Answered)),
        Some(Method::ConnectionUpdateSecret(update)) => match update_secret(peer, broker, &update)?
        {
            true => Ok(Handled::Done { consumed }),
            false => Ok(Handled::Yield { consumed: 0 }),
        },
        Some(method) => Err(Fault::in_method(
            ReplyCode::ChannelError,
            method.ids(),
            "unexpected method in connection state running",
        )),
    }
}

//! A client in its vhost: the frames of an input, with one lock for all of them.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crosstie_amqp::frame::{self, Decoded, Frame, FrameKind};
use crosstie_amqp::method::ConnectionUpdateSecretOk;
use crosstie_amqp::{Method, ReplyCode};
use crosstie_config::AmqpTransport;
use crosstie_queues::{Client, ConnectionKey, Fault};
use crosstie_transport::Connection;

use super::broker::Broker;
use super::channels::{Channels, Handled, method_fault};
use super::negotiation::Entered;
use super::peer::{Peer, PeerParts};
use crate::watch::WatchKey;

/// A client in a vhost.
pub(super) struct Open {
    peer: Arc<Peer>,
    key: ConnectionKey,
    channels: Channels,
    /// Octets of incomplete messages, as the flow control knows them.
    assembling_bytes: usize,
}

/// What becomes of the connection after an input.
pub(super) enum Then {
    /// More is read: so many octets are done with, and so many wanted in all.
    Read { consumed: usize, wanted: usize },
    /// The client closes it.
    ClosedByClient,
    /// The client answers that it is closed, which nobody has said.
    Answered,
    /// Somebody else has said that it is closed.
    Forced,
    /// It is closed for this.
    Fault(Fault),
}

/// What becomes of an input after a frame.
enum Flow {
    /// The frame is handled, with so many octets behind it.
    Continue { more: usize },
    /// More octets are needed, so many from the frame's end.
    Wait { wanted: usize },
    /// The connection ends.
    Then(Then),
}

impl Flow {
    const DONE: Self = Self::Continue { more: 0 };
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
            is_impersonator,
        } = entered;
        let user = Arc::clone(&client.about.user);
        let peer = Arc::new(Peer::new(PeerParts {
            connection: Arc::clone(connection),
            number: broker.next_number(),
            transport,
            watch,
            closing_timeout: options.closing_timeout,
            frame_bytes_max: client.frame_bytes_max,
            vhost: Arc::clone(&vhost),
            about: client.about,
            is_told_of_blocking: client.capabilities.connection_blocked,
        }));
        let key = {
            let mut turn = vhost.turn(Instant::now());
            let (vhost, ..) = turn.enter();
            let client = Client {
                user,
                permissions,
                consumer_cancel_notify: client.capabilities.consumer_cancel_notify,
                is_impersonator,
            };
            vhost.open_connection(Arc::clone(&peer), client)
        };
        // Nobody else sets it.
        let _ = peer.key.set(key);
        Self {
            peer,
            key,
            channels: Channels::new(key, client.channels_max),
            assembling_bytes: 0,
        }
    }

    pub(super) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Handles the frames in `input`.
    pub(super) fn handle(&mut self, input: &[u8], broker: &Broker) -> Then {
        for number in self.peer.take_closed_channels() {
            self.channels.note_closed(&self.peer, number);
        }
        if self.peer.is_closing() {
            return Then::Forced;
        }
        // Reading the clock once for all frames of an input is enough.
        let mut turn = self.peer.vhost.turn(Instant::now());
        let mut consumed = 0;
        let then = loop {
            let flow = match frame::decode(&input[consumed..], self.peer.frame_bytes_max) {
                Ok(Decoded::Frame {
                    frame,
                    consumed: length,
                }) => {
                    consumed += length;
                    let rest = &input[consumed..];
                    let channels = &mut self.channels;
                    let flow = match (frame.channel, frame.kind) {
                        (0, _) => handle_alone(&frame, &self.peer),
                        (_, FrameKind::Heartbeat) => Err(heartbeat_fault(&frame)),
                        _ => channels
                            .handle(&self.peer, broker, &mut turn, &frame, rest)
                            .map(Flow::from),
                    };
                    // A message that is not all there begins with this frame again.
                    match flow {
                        Ok(Flow::Wait { wanted }) => {
                            consumed -= length;
                            let wanted = length + wanted;
                            Ok(Flow::Wait { wanted })
                        }
                        flow => flow,
                    }
                }
                Ok(Decoded::Incomplete { wanted }) => Ok(Flow::Wait { wanted }),
                Err(e) => {
                    let code = ReplyCode::FrameError;
                    Err(Fault::in_method(code, (0, 0), e.to_string()))
                }
            };
            match flow {
                Ok(Flow::Continue { more }) => consumed += more,
                Ok(Flow::Wait { wanted }) => break Then::Read { consumed, wanted },
                Ok(Flow::Then(then)) => break then,
                Err(fault) => break Then::Fault(fault),
            }
            // One input may hold thousands of messages for thousands of consumers.
            if crosstie_transport::is_much_appended() {
                turn.leave();
                crosstie_transport::relieve();
            }
        };
        let journaled = turn.leave();
        drop(turn);
        // Deliveries before the confirms of what they deliver: somebody waits for an answer to the
        // one, and only for a word about the other.
        crosstie_transport::uncork_few();
        let flow_control = &broker.shared.flow;
        let assembling_after = self.channels.assembling_bytes();
        if assembling_after != self.assembling_bytes {
            flow_control.incomplete_changed(self.assembling_bytes, assembling_after);
            self.assembling_bytes = assembling_after;
        }
        let mut published = mem::take(&mut self.channels.published);
        published.journaled = journaled;
        // Who says goodbye is read to the end.
        if let Then::Read { .. } = then {
            flow_control.judge(&self.peer, published);
        }
        then
    }

    /// Takes the client out of its vhost.
    pub(super) fn leave(self, broker: &Broker) {
        broker.remove_peer(self.peer.number);
        let mut turn = self.peer.vhost.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        vhost.close_connection(now, self.key, outbox);
        drop(turn);
        let flow_control = &broker.shared.flow;
        flow_control.incomplete_changed(self.assembling_bytes, 0);
    }
}

impl From<Handled> for Flow {
    fn from(handled: Handled) -> Self {
        match handled {
            Handled::With { more } => Self::Continue { more },
            Handled::Incomplete { wanted } => Self::Wait { wanted },
        }
    }
}

/// The method of a frame on channel 0; none in a heartbeat.
pub(super) fn decode_alone<'a>(frame: &Frame<'a>) -> Result<Option<Method<'a>>, Fault> {
    match frame.kind {
        FrameKind::Heartbeat => Ok(None),
        FrameKind::Method => {
            let method = Method::decode(frame.payload).map_err(|e| method_fault(&e))?;
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

/// Heartbeats are the connection's.
fn heartbeat_fault(frame: &Frame<'_>) -> Fault {
    let text = match frame.payload {
        [] => "type 8, all octets = <<>>".to_owned(),
        payload => format!("type 8 with {} octets on a channel", payload.len()),
    };
    Fault::in_method(ReplyCode::UnexpectedFrame, (0, 0), text)
}

/// Handles a frame on channel 0 of a client in a vhost.
fn handle_alone(frame: &Frame<'_>, peer: &Peer) -> Result<Flow, Fault> {
    match decode_alone(frame)? {
        None => Ok(Flow::DONE),
        Some(Method::ConnectionClose(_)) => Ok(Flow::Then(Then::ClosedByClient)),
        Some(Method::ConnectionCloseOk(_)) => Ok(Flow::Then(Then::Answered)),
        // Passwords do not wear out: a new one is as good as the one that it entered by.
        Some(Method::ConnectionUpdateSecret(_)) => {
            peer.send(&ConnectionUpdateSecretOk {});
            Ok(Flow::DONE)
        }
        Some(method) => Err(Fault::in_method(
            ReplyCode::ChannelError,
            method.ids(),
            "unexpected method in connection state running",
        )),
    }
}

//! The channels of a connection: takes frames, passes methods and whole messages to the vhost.

use std::sync::Arc;
use std::time::Instant;

use crosstie_amqp::frame::{self, Frame, FrameKind};
use crosstie_amqp::method::{
    AccessRequestOk, BasicPublish, ChannelCloseOk, ChannelOpen, ChannelOpenOk,
};
use crosstie_amqp::{Method, MethodError, ReplyCode};
use crosstie_queues::{ChannelKey, ConnectionKey, Fault, Outbox};
use crosstie_transport::now_s;

use super::broker::Broker;
use super::content::{self, Assembly, Lookahead};
use super::declared;
use super::flow::Published;
use super::handled::Handled;
use super::peer::Peer;
use super::spans;
use super::turn::Turn;
use super::unfinished::{may_publish, share_spent};

/// Channels, sorted by number. A connection has few, so that a sorted list is the fastest lookup.
pub(super) struct Channels {
    connection: ConnectionKey,
    channels_max: u16,
    pub(super) channels: Vec<(u16, Channel)>,
    /// The effects of the messages that this input has published.
    pub(super) published: Published,
    /// Whether messages stay in the input: an alarm stands.
    pub(super) withholds: bool,
    /// Bytes of incomplete messages.
    pub(super) assembling_bytes: usize,
    /// Bytes in open transactions, at the end of the last turn.
    pub(super) uncommitted_bytes: usize,
    /// Both figures, as last reported.
    pub(super) noted_bytes: (usize, usize),
}

pub(super) enum Channel {
    Open {
        key: ChannelKey,
        assembly: Option<Box<Assembly>>,
    },
    /// The broker has closed the channel, and drops frames until the client's `channel.close-ok`.
    Closing,
    /// The client has closed the channel at that time. The broker also drops frames that the client had sent behind
    /// `channel.close` before it could read the answer.
    Closed { at: Instant },
}

impl Channels {
    pub(crate) fn new(connection: ConnectionKey, channels_max: u16) -> Self {
        Self {
            connection,
            channels_max,
            channels: Vec::new(),
            published: Published::default(),
            withholds: false,
            assembling_bytes: 0,
            uncommitted_bytes: 0,
            noted_bytes: (0, 0),
        }
    }

    /// Handles a frame of a channel, together with the frames behind it that belong to the same message. Returns only
    /// faults of the connection: channel faults are answered here.
    pub(super) fn handle(
        &mut self,
        peer: &Arc<Peer>,
        broker: &Broker,
        turn: &mut Turn<'_>,
        frame: &Frame<'_>,
        behind: &[u8],
    ) -> Result<Handled, Fault> {
        let consumed = bytes(frame);
        let done = Handled::Done { consumed };
        let Ok(place) = self.place(frame.channel) else {
            self.handle_unopened(peer, broker, turn, frame)?;
            return Ok(done);
        };
        let (key, assembly) = match &mut self.channels[place].1 {
            Channel::Open { key, assembly } => (*key, assembly),
            Channel::Closing => {
                self.handle_closing(place, peer, turn, frame)?;
                return Ok(done);
            }
            Channel::Closed { at } => {
                let is_late = at.elapsed() >= peer.closing_timeout;
                self.handle_closed(place, is_late, peer, broker, turn, frame)?;
                return Ok(done);
            }
        };
        let handled = match (frame.kind, assembly) {
            (FrameKind::Method, None) => {
                let method = peer.version.decode(frame.payload);
                let method = method.map_err(|e| method_fault(&e))?;
                if let Method::BasicPublish(publish) = &method {
                    return self.publish(place, key, peer, broker, turn, publish, frame, behind);
                }
                if turn.must_wait(key, &method, peer) {
                    return Ok(Handled::Yield { consumed: 0 });
                }
                self.handle_method(place, key, peer, turn, &method)
            }
            (_, Some(_)) => self.assemble(place, key, peer, broker, turn, frame),
            (_, None) => Err(Fault::in_method(
                ReplyCode::UnexpectedFrame,
                (0, 0),
                "expected method frame, got non method frame instead",
            )),
        };
        if let Err(fault) = handled {
            if peer.awaits_right(broker) {
                return Ok(Handled::Yield { consumed: 0 });
            }
            self.fail(place, key, peer, turn, fault)?;
        }
        Ok(done)
    }

    /// Marks a channel as closed by the vhost, which has sent `channel.close`.
    pub(super) fn note_closed(&mut self, peer: &Peer, number: u16) {
        if let Ok(place) = self.place(number)
            && matches!(self.channels[place].1, Channel::Open { .. })
        {
            self.set_closing(peer, place);
        }
    }

    fn place(&self, number: u16) -> Result<usize, usize> {
        self.channels.binary_search_by_key(&number, |(n, _)| *n)
    }

    /// The usual path of a message: all its frames are in the input, and its body is passed on without a copy.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller, which has them all at hand"
    )]
    fn publish(
        &mut self,
        place: usize,
        key: ChannelKey,
        peer: &Arc<Peer>,
        broker: &Broker,
        turn: &mut Turn<'_>,
        publish: &BasicPublish<'_>,
        frame: &Frame<'_>,
        behind: &[u8],
    ) -> Result<Handled, Fault> {
        self.published.content = true;
        if self.withholds {
            // The end of this turn blocks the peer, and the alarm's end resumes its reading.
            return Ok(Handled::Yield { consumed: 0 });
        }
        let consumed = bytes(frame);
        let bytes_max = broker.message_bytes_max();
        match content::look_ahead(behind, frame.channel, peer.frame_bytes_max, bytes_max) {
            Lookahead::Whole(whole) => {
                let held_bytes = self.incomplete_bytes();
                let names = (publish.exchange, publish.routing_key);
                let body = whole.body.len();
                let span = spans::begin_published(peer.vhost.name(), names, whole.properties, body);
                let published = may_publish(key, held_bytes, broker, turn).and_then(|()| {
                    let (vhost, now, outbox) = turn.enter();
                    vhost.publish(now, key, publish, whole.properties, whole.body, outbox)
                });
                if published.is_err() && peer.awaits_right(broker) {
                    return Ok(Handled::Yield { consumed: 0 });
                }
                spans::end_published(span, published.as_ref().copied());
                if let Err(fault) = published {
                    self.fail(place, key, peer, turn, fault)?;
                }
                let consumed = consumed + whole.consumed;
                Ok(Handled::Done { consumed })
            }
            // The next turn decodes all of it again, from the method on.
            Lookahead::Incomplete { wanted } => Ok(Handled::Wait {
                consumed: 0,
                wanted: consumed + wanted,
            }),
            Lookahead::Other => {
                let assembly = Assembly::new(publish, now_s());
                self.assembling_bytes += assembly.bytes();
                self.channels[place].1 = Channel::Open {
                    key,
                    assembly: Some(Box::new(assembly)),
                };
                Ok(Handled::Done { consumed })
            }
        }
    }

    /// Handles the next frame of a message that comes in several.
    fn assemble(
        &mut self,
        place: usize,
        key: ChannelKey,
        peer: &Peer,
        broker: &Broker,
        turn: &mut Turn<'_>,
        frame: &Frame<'_>,
    ) -> Result<(), Fault> {
        self.published.content = true;
        let incomplete = &broker.shared.incomplete;
        let held_bytes = self.incomplete_bytes();
        let Channel::Open {
            assembly: Some(assembly),
            ..
        } = &mut self.channels[place].1
        else {
            return Ok(());
        };
        let before = assembly.bytes();
        // A single message may use the whole bound.
        let is_alone = held_bytes == before;
        let complete = match incomplete.is_share_spent(held_bytes) && !is_alone {
            true => Err(share_spent(incomplete)),
            false => {
                let timeout_s = incomplete.timeout_s();
                assembly.handle(frame, broker.message_bytes_max(), now_s(), timeout_s)
            }
        };
        self.assembling_bytes += assembly.bytes() - before;
        match complete? {
            true => self.publish_assembled(place, key, peer, broker, turn),
            false => Ok(()),
        }
    }

    fn publish_assembled(
        &mut self,
        place: usize,
        key: ChannelKey,
        peer: &Peer,
        broker: &Broker,
        turn: &mut Turn<'_>,
    ) -> Result<(), Fault> {
        let Channel::Open { assembly, .. } = &mut self.channels[place].1 else {
            return Ok(());
        };
        let Some(assembly) = assembly.take() else {
            return Ok(());
        };
        let bytes = assembly.bytes();
        self.assembling_bytes -= bytes;
        may_publish(key, self.incomplete_bytes(), broker, turn)?;
        let (mandatory, immediate) = (assembly.mandatory, assembly.immediate);
        let content = assembly.finish();
        let names = (content.exchange(), content.routing_key());
        let body = content.body().len();
        let span = spans::begin_published(peer.vhost.name(), names, content.properties(), body);
        let (vhost, now, outbox) = turn.enter();
        let published = vhost.publish_content(now, key, &content, mandatory, immediate, outbox);
        if published.is_err() && peer.wants_right() {
            // Its last frame is handled again when the answer is there.
            let assembly = Assembly::again(content, bytes, mandatory, immediate, now_s());
            self.assembling_bytes += bytes;
            self.channels[place].1 = Channel::Open {
                key,
                assembly: Some(Box::new(assembly)),
            };
            return published;
        }
        spans::end_published(span, published.as_ref().copied());
        turn.forget_later(content);
        published
    }

    fn handle_method(
        &mut self,
        place: usize,
        key: ChannelKey,
        peer: &Arc<Peer>,
        turn: &mut Turn<'_>,
        method: &Method<'_>,
    ) -> Result<(), Fault> {
        let number = self.channels[place].0;
        match method {
            Method::ChannelOpen(_) => Err(Fault::of::<ChannelOpen<'_>>(
                ReplyCode::ChannelError,
                "second 'channel.open' seen",
            )),
            Method::ChannelClose(_) => {
                self.set_closing(peer, place);
                self.channels[place].1 = Channel::Closed { at: Instant::now() };
                let (vhost, now, outbox) = turn.enter();
                vhost.close_channel(now, key, outbox);
                // A close by the vhost concerned the previous channel of this number, not the next.
                peer.forget_closed_channel(number);
                outbox.send(peer, number, &ChannelCloseOk {}.into());
                Ok(())
            }
            // An answer without a request, as after both sides closed a channel.
            Method::ChannelCloseOk(_) => Ok(()),
            Method::AccessRequest(_) => {
                let (_, _, outbox) = turn.enter();
                outbox.send(peer, number, &AccessRequestOk { ticket: 1 }.into());
                Ok(())
            }
            _ => {
                let (vhost, now, outbox) = turn.enter();
                let warned = declared::at_most_once(method).filter(|name| !vhost.has_queue(name));
                vhost.handle(now, key, method, outbox)?;
                if let Some(queue) = warned {
                    outbox.warn(peer, queue, declared::AT_MOST_ONCE);
                }
                Ok(())
            }
        }
    }

    /// Handles a frame of a channel that is not open: `channel.open`, or a fault.
    fn handle_unopened(
        &mut self,
        peer: &Arc<Peer>,
        broker: &Broker,
        turn: &mut Turn<'_>,
        frame: &Frame<'_>,
    ) -> Result<(), Fault> {
        let method = match frame.kind {
            FrameKind::Method => {
                let method = peer.version.decode(frame.payload);
                Some(method.map_err(|e| method_fault(&e))?)
            }
            _ => None,
        };
        match method {
            Some(Method::ChannelOpen(_)) => {}
            // The client closes a channel that the broker closed, and then answers the broker's close.
            Some(Method::ChannelCloseOk(_)) => return Ok(()),
            method => {
                let ids = method.map_or((0, 0), |method| method.ids());
                let text = "expected 'channel.open'";
                return Err(Fault::in_method(ReplyCode::ChannelError, ids, text));
            }
        }
        let is_closed = |(_, channel): &&(u16, Channel)| matches!(channel, Channel::Closed { .. });
        let opened = self.channels.len() - self.channels.iter().filter(is_closed).count();
        if opened >= self.channels_max.into() {
            let text = format!(
                "number of channels opened ({opened}) has reached the negotiated channel_max ({})",
                self.channels_max
            );
            return Err(Fault::of::<ChannelOpen<'_>>(ReplyCode::NotAllowed, text));
        }
        let counted = broker.count_channel(peer);
        counted.map_err(|text| Fault::of::<ChannelOpen<'_>>(ReplyCode::NotAllowed, text))?;
        let (vhost, _, outbox) = turn.enter();
        let opened = vhost.open_channel(self.connection, frame.channel);
        let key = opened.inspect_err(|_| peer.seat.close_channel())?;
        let place = self.place(frame.channel).unwrap_or_else(|place| place);
        let assembly = None;
        let channel = Channel::Open { key, assembly };
        self.channels.insert(place, (frame.channel, channel));
        outbox.send(
            peer,
            frame.channel,
            &ChannelOpenOk { channel_id: b"" }.into(),
        );
        Ok(())
    }

    /// Handles a frame that the client sent before it read `channel.close`, or its answer.
    fn handle_closing(
        &mut self,
        place: usize,
        peer: &Arc<Peer>,
        turn: &mut Turn<'_>,
        frame: &Frame<'_>,
    ) -> Result<(), Fault> {
        if frame.kind != FrameKind::Method {
            return Ok(());
        }
        let method = peer.version.decode(frame.payload);
        match method.map_err(|e| method_fault(&e))? {
            Method::ChannelCloseOk(_) => {
                self.channels.remove(place);
            }
            Method::ChannelClose(_) => {
                let (_, _, outbox) = turn.enter();
                outbox.send(peer, frame.channel, &ChannelCloseOk {}.into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles a frame of a channel that the client has closed: ignores it, or opens the channel again.
    fn handle_closed(
        &mut self,
        place: usize,
        is_late: bool,
        peer: &Arc<Peer>,
        broker: &Broker,
        turn: &mut Turn<'_>,
        frame: &Frame<'_>,
    ) -> Result<(), Fault> {
        let method = match frame.kind {
            FrameKind::Method => Some(Method::decode(frame.payload).map_err(|e| method_fault(&e))?),
            _ => None,
        };
        if !is_late && !matches!(method, Some(Method::ChannelOpen(_))) {
            return Ok(());
        }
        self.channels.remove(place);
        self.handle_unopened(peer, broker, turn, frame)
    }

    /// Closes the channel for `fault`, or returns a fault that must close the connection.
    fn fail(
        &mut self,
        place: usize,
        key: ChannelKey,
        peer: &Arc<Peer>,
        turn: &mut Turn<'_>,
        fault: Fault,
    ) -> Result<(), Fault> {
        if fault.code.is_hard() {
            return Err(fault);
        }
        let number = self.channels[place].0;
        self.set_closing(peer, place);
        let (vhost, now, outbox) = turn.enter();
        vhost.close_channel(now, key, outbox);
        outbox.say_channel_closed(peer, number, &fault);
        Ok(())
    }

    fn set_closing(&mut self, peer: &Peer, place: usize) {
        self.forget_assembly(place);
        let channel = &mut self.channels[place].1;
        if matches!(channel, Channel::Open { .. }) {
            peer.seat.close_channel();
        }
        *channel = Channel::Closing;
    }

    fn forget_assembly(&mut self, place: usize) {
        if let Channel::Open {
            assembly: Some(assembly),
            ..
        } = &self.channels[place].1
        {
            self.assembling_bytes -= assembly.bytes();
        }
    }
}

/// Size of a frame in bytes, including its envelope.
fn bytes(frame: &Frame<'_>) -> usize {
    frame::OVERHEAD_BYTES + frame.payload.len()
}

/// The fault of a payload that is not a method.
pub(super) fn method_fault(e: &MethodError) -> Fault {
    let code = match e {
        MethodError::Unknown { .. } => ReplyCode::CommandInvalid,
        MethodError::NoMethod | MethodError::Arguments { .. } => ReplyCode::SyntaxError,
    };
    Fault::in_method(code, e.ids(), e.to_string())
}

//! A vhost's outbox, which writes frames into the receivers' queues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::ChannelClose;
use crosstie_amqp::{Method, Properties};
use crosstie_queues::{Fault, Outbox, Refused};
use crosstie_transport::Refused as Unqueued;

use super::peer::{self, Peer};
use crate::cause::Cause;
use crate::report;

/// The outbox of one turn in a vhost. It is used under the vhost's lock, so it only encodes and
/// copies; the sockets are written when the input has been handled.
#[derive(Default)]
pub(crate) struct VhostOutbox {
    /// Peers that take no more deliveries until what is queued for them is sent.
    /// And until there is room for so many bytes in the account of all.
    refused: Vec<(Arc<Peer>, usize)>,
    /// Peers that could not be answered.
    overrun: Vec<Arc<Peer>>,
    /// Channels that were closed, and for what: for the log.
    closed: Vec<(Arc<Peer>, u16, String)>,
}

/// A peer for which so many bytes are queued gets no more deliveries: they stay in their queues
/// until it has read.
const DELIVERY_BYTES_MAX: usize = 1024 * 1024;

/// A body from which on a delivery may have to wait for those to others.
const LARGE_BYTES_MIN: usize = 16 * 1024;

impl VhostOutbox {
    /// Says that a channel is closed for `fault`.
    pub(crate) fn say_channel_closed(&mut self, to: &Arc<Peer>, channel: u16, fault: &Fault) {
        let close = ChannelClose {
            reply_code: fault.code.code(),
            reply_text: &peer::reply_text(&fault.text),
            class_id: fault.class_id,
            method_id: fault.method_id,
        };
        self.send(to, channel, &close.into());
        self.closed
            .push((Arc::clone(to), channel, fault.text.clone()));
    }

    /// Says that a queue is not all that its client has declared.
    pub(crate) fn warn(&self, declared_by: &Peer, queue: &str, text: &str) {
        let vhost = declared_by.vhost.name();
        report::queue_warning(&declared_by.connection, vhost, queue, text);
    }

    /// Does what needs no lock. Needs a tokio context.
    pub(crate) fn settle(&mut self) {
        for (peer, room_bytes) in self.refused.drain(..) {
            tokio::spawn(resume_when_sent(peer, room_bytes));
        }
        for peer in self.overrun.drain(..) {
            let cause = Cause::AnswerQueueFull;
            report::session_closed(&peer.connection, cause, cause.text());
            peer.connection.close();
        }
        for (peer, channel, text) in self.closed.drain(..) {
            report::channel_closed(&peer.connection, channel, &text);
        }
    }
}

impl Outbox<Arc<Peer>> for VhostOutbox {
    fn send(&mut self, to: &Arc<Peer>, channel: u16, method: &Method<'_>) {
        // Behind `connection.close` nothing else is said.
        if to.is_closing() {
            return;
        }
        let sent = to.connection.append(|out| {
            let write = |out: &mut Vec<u8>| to.version.write_any(method, out);
            frame::write(FrameKind::Method, channel, out, write);
            Ok::<(), ()>(())
        });
        if sent == Err(Unqueued::Full) {
            self.overrun.push(Arc::clone(to));
        }
    }

    fn send_content(
        &mut self,
        to: &Arc<Peer>,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if to.is_closing() {
            return Err(Refused::Gone);
        }
        // A message for many is copied for so many only as can be sent before more is.
        let is_after_others =
            body.len() >= LARGE_BYTES_MIN && crosstie_transport::is_much_appended();
        // A small one more does not matter beside what each connection may have queued.
        let is_large = body.len() >= LARGE_BYTES_MIN;
        let is_without_room = is_large && to.connection.is_room_short(body.len());
        let sent = match is_after_others || is_without_room {
            true => Err(Unqueued::Full),
            false => to.connection.append_below(DELIVERY_BYTES_MAX, |out| {
                write_content(to, channel, method, properties, body, out);
                Ok::<(), ()>(())
            }),
        };
        match sent {
            Ok(()) => Ok(()),
            Err(Unqueued::Full) => {
                if !to.is_resume_awaited.swap(true, Ordering::Relaxed) {
                    let room_bytes = if is_without_room { body.len() } else { 0 };
                    self.refused.push((Arc::clone(to), room_bytes));
                }
                Err(Refused::Full)
            }
            Err(Unqueued::Gone | Unqueued::Writer(())) => Err(Refused::Gone),
        }
    }

    fn send_owed(
        &mut self,
        to: &Arc<Peer>,
        channel: u16,
        method: &Method<'_>,
        properties: Properties<'_>,
        body: &[u8],
    ) -> Result<(), Refused> {
        if to.is_closing() {
            return Err(Refused::Gone);
        }
        let sent = to.connection.append(|out| {
            write_content(to, channel, method, properties, body, out);
            Ok::<(), ()>(())
        });
        match sent {
            Ok(()) => Ok(()),
            Err(Unqueued::Full) => {
                self.overrun.push(Arc::clone(to));
                Err(Refused::Full)
            }
            Err(Unqueued::Gone | Unqueued::Writer(())) => Err(Refused::Gone),
        }
    }

    fn close_channel(&mut self, to: &Arc<Peer>, channel: u16, fault: &Fault) {
        self.say_channel_closed(to, channel, fault);
        to.note_closed_channel(channel);
    }

    fn hold(&mut self, to: &Arc<Peer>, delta: isize) {
        to.connection.hold(delta);
    }
}

fn write_content(
    to: &Peer,
    channel: u16,
    method: &Method<'_>,
    properties: Properties<'_>,
    body: &[u8],
    out: &mut Vec<u8>,
) {
    frame::write(FrameKind::Method, channel, out, |out| method.write(out));
    frame::write_content(channel, properties.bytes(), body, to.frame_bytes_max, out);
}

/// Has a peer's deliveries go on when all that was queued for it has been sent.
async fn resume_when_sent(peer: Arc<Peer>, room_bytes: usize) {
    peer.connection.sent().await;
    if room_bytes > 0 {
        peer.connection.room(room_bytes).await;
    }
    // Before the vhost goes on: what it is refused then is waited for anew.
    peer.is_resume_awaited.store(false, Ordering::Relaxed);
    let Some(key) = peer.key.get() else { return };
    if !peer.connection.is_closed() {
        peer.vhost.resume(*key);
        crosstie_transport::uncork();
    }
}

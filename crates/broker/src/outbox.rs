//! A vhost's outbox, which writes frames into the receivers' queues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::ChannelClose;
use crosstie_amqp::{Method, Properties};
use crosstie_front::cause::Cause;
use crosstie_front::report;
use crosstie_queues::{Fault, Outbox, Refused};
use crosstie_transport::Refused as Unqueued;

use super::peer::{self, Peer};
use super::spans;

/// The outbox of one turn in a vhost. Under the vhost's lock it only encodes and copies; the sockets are written after
/// the input is handled.
#[derive(Default)]
pub(crate) struct VhostOutbox {
    /// Peers that accept no more deliveries until their queue is sent and the shared account has room for that many
    /// bytes.
    refused: Vec<(Arc<Peer>, usize)>,
    /// Peers with a full output queue, which are closed.
    overrun: Vec<Arc<Peer>>,
    /// Channels that were closed, with the reason for the log.
    closed: Vec<(Arc<Peer>, u16, String)>,
}

/// Maximum bytes in a peer's output queue for another delivery. Beyond, messages stay in their queues until the peer
/// has read.
const DELIVERY_BYTES_MAX: usize = 1024 * 1024;

/// Minimum body size of a delivery that may have to wait for deliveries to other peers.
const LARGE_BYTES_MIN: usize = 16 * 1024;

impl VhostOutbox {
    /// Sends `channel.close` with the fault.
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

    /// Logs a warning that a declared queue lacks a feature.
    pub(crate) fn warn(&self, declared_by: &Peer, queue: &str, text: &str) {
        let vhost = declared_by.vhost.name();
        report::queue_warning(&declared_by.connection, vhost, queue, text);
    }

    /// Does the work that needs no lock. Needs a tokio context.
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
    fn traced_name(&self, of: &Arc<Peer>) -> Option<Arc<str>> {
        let is_full = of.vhost.shared.flow.is_memory_full();
        (!is_full).then(|| of.title())
    }

    fn send(&mut self, to: &Arc<Peer>, channel: u16, method: &Method<'_>) {
        // Nothing follows `connection.close`.
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
        // A message for many receivers is copied only for as many as can be sent before the next are copied.
        let is_after_others =
            body.len() >= LARGE_BYTES_MIN && crosstie_transport::is_much_appended();
        // A small message is negligible beside the bound of each connection's queue.
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
            Ok(()) => {
                spans::note_sent(to.vhost.name(), method, properties, body.len());
                Ok(())
            }
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
            Ok(()) => {
                spans::note_sent(to.vhost.name(), method, properties, body.len());
                Ok(())
            }
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

/// Resumes a peer's deliveries when its output queue is empty.
async fn resume_when_sent(peer: Arc<Peer>, room_bytes: usize) {
    peer.connection.sent().await;
    if room_bytes > 0 {
        peer.connection.room(room_bytes).await;
    }
    // Cleared before the vhost resumes: a further refusal then starts a new wait.
    peer.is_resume_awaited.store(false, Ordering::Relaxed);
    let Some(key) = peer.key.get() else { return };
    if !peer.connection.is_closed() {
        peer.vhost.resume(*key);
        crosstie_transport::uncork();
    }
}

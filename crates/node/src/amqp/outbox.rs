//! What a vhost sends, turned into frames in the receivers' queues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::ChannelClose;
use crosstie_amqp::{Method, Properties};
use crosstie_queues::{Fault, Outbox, Refused};
use crosstie_transport::Refused as Unqueued;

use super::peer::{self, Peer};
use crate::report;

/// The outbox of one turn in a vhost. It is used under the vhost's lock, so it only encodes and
/// copies; the sockets are written when the input has been handled.
#[derive(Default)]
pub(crate) struct VhostOutbox {
    /// Who takes no more deliveries until what is queued for them is sent.
    refused: Vec<Arc<Peer>>,
    /// Who could not be answered.
    overrun: Vec<Arc<Peer>>,
    /// Channels that were closed, and for what: for the log.
    closed: Vec<(Arc<Peer>, u16, String)>,
}

/// A peer for which so many octets are queued gets no more deliveries: they stay in their queues
/// until it has read.
const DELIVERY_BYTES_MAX: usize = 1024 * 1024;

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

    /// Does what needs no lock. Needs a tokio context.
    pub(crate) fn settle(&mut self) {
        for peer in self.refused.drain(..) {
            tokio::spawn(resume_when_sent(peer));
        }
        for peer in self.overrun.drain(..) {
            let text = "an answer found its queue full";
            report::session_closed(&peer.connection, "queue_bytes_max", text);
            peer.connection.close();
        }
        for (peer, channel, text) in self.closed.drain(..) {
            report::channel_closed(&peer.connection, channel, &text);
        }
    }
}

impl Outbox<Arc<Peer>> for VhostOutbox {
    fn send(&mut self, to: &Arc<Peer>, channel: u16, method: &Method<'_>) {
        let sent = to.connection.append(|out| {
            frame::write(FrameKind::Method, channel, out, |out| method.write(out));
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
        let sent = to.connection.append_below(DELIVERY_BYTES_MAX, |out| {
            frame::write(FrameKind::Method, channel, out, |out| method.write(out));
            frame::write_content(channel, properties.octets(), body, to.frame_bytes_max, out);
            Ok::<(), ()>(())
        });
        match sent {
            Ok(()) => Ok(()),
            Err(Unqueued::Full) => {
                if !to.is_resume_awaited.swap(true, Ordering::Relaxed) {
                    self.refused.push(Arc::clone(to));
                }
                Err(Refused::Full)
            }
            Err(Unqueued::Gone | Unqueued::Writer(())) => Err(Refused::Gone),
        }
    }

    fn close_channel(&mut self, to: &Arc<Peer>, channel: u16, fault: &Fault) {
        self.say_channel_closed(to, channel, fault);
        to.note_closed_channel(channel);
    }
}

/// Has a peer's deliveries go on when all that was queued for it has been sent.
async fn resume_when_sent(peer: Arc<Peer>) {
    peer.connection.sent().await;
    // Before the vhost goes on: what it is refused then is waited for anew.
    peer.is_resume_awaited.store(false, Ordering::Relaxed);
    let Some(key) = peer.key.get() else { return };
    if !peer.connection.is_closed() {
        peer.vhost.resume(*key);
        crosstie_transport::uncork();
    }
}

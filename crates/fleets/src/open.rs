//! A client's packets after CONNECT.

use std::sync::Arc;

use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_mqtt::{Ack, Disconnect, Packet, QoS, ReasonCode, Side};
use crosstie_spaces::{End, Figures, Step};

use crate::deliveries::settle;
use crate::fleet::Fleet;
use crate::ground::Ground;
use crate::member::Member;
use crate::methods::delete_queue;
use crate::names;
use crate::will;

/// A client that is connected to its vhost.
pub(crate) struct Open {
    pub(crate) member: Arc<Member>,
    pub(crate) fleet: Arc<Fleet>,
    /// The packet at the front of the input is handled again.
    is_again: bool,
    /// The outcomes of its filters so far.
    pub(crate) codes: Vec<ReasonCode>,
}

/// How far a packet is handled.
pub(crate) enum Progress {
    Done,
    /// So many filters are handled. The rest follows in another turn.
    Part(usize),
    /// The rest follows once an outcome is there.
    Waits,
}

/// Steps of a packet or a filter, of which the vhost's methods are the most.
const STEPS: u32 = 32;

impl Open {
    pub(crate) fn new(member: Arc<Member>, fleet: Arc<Fleet>) -> Self {
        Self {
            member,
            fleet,
            is_again: false,
            codes: Vec::new(),
        }
    }

    /// Whether an outcome is due before the next packet: a right that is asked, the end of a block of publishers, or
    /// confirms.
    pub(crate) fn waits(&self) -> bool {
        self.member.mailbox.is_reading_paused() || self.member.is_unconfirmed()
    }

    /// Handles the packet at the front of the input.
    pub(crate) fn handle(
        &mut self,
        packet: &Packet<'_>,
        consumed: usize,
        ground: &Ground,
    ) -> Result<Step, End> {
        if self.member.is_over() {
            return Err(End::Begun);
        }
        if !self.is_again {
            Figures::get().count_received(packet.packet_type());
            let checked = packet.check_sender(Side::Client, self.member.version);
            checked.map_err(|e| {
                report::peer_fault(&self.member.connection, e.reason().name(), &e.to_string());
                End::Reason(e.reason())
            })?;
        }
        let progress = match packet {
            Packet::Publish(publish) => self.publish(publish, ground)?,
            Packet::Subscribe(subscribe) => self.subscribe(subscribe, ground)?,
            Packet::Unsubscribe(unsubscribe) => self.unsubscribe(unsubscribe, ground)?,
            Packet::PingReq => {
                self.member.send(&Packet::PingResp);
                Progress::Done
            }
            Packet::Disconnect(disconnect) => return Err(self.disconnect(disconnect)),
            _ => self.acknowledge(packet)?,
        };
        self.is_again = !matches!(progress, Progress::Done);
        Ok(match progress {
            Progress::Waits => Step::Halt { consumed: 0 },
            Progress::Part(filters) => Step::Done {
                consumed: 0,
                steps: STEPS.saturating_mul(u32::try_from(filters).unwrap_or(u32::MAX)),
            },
            Progress::Done if self.waits() => Step::Halt { consumed },
            Progress::Done => Step::Done {
                consumed,
                steps: STEPS,
            },
        })
    }

    /// Handles an acknowledgement. Other packets are a second CONNECT, or an AUTH that nothing has asked for.
    fn acknowledge(&self, packet: &Packet<'_>) -> Result<Progress, End> {
        let mut inner = self.member.lock();
        let inner = &mut *inner;
        let unknown = |id| Ack::with_reason(id, ReasonCode::PacketIdentifierNotFound);
        match packet {
            Packet::PubAck(ack) => {
                let tag = inner.session.land(ack.packet_id);
                settle(inner.guest.as_mut(), tag);
            }
            Packet::PubRel(ack) => {
                let ack = match inner.session.release(ack.packet_id) {
                    true => Ack::success(ack.packet_id),
                    false => unknown(ack.packet_id),
                };
                self.member.send(&Packet::PubComp(ack));
            }
            // No message is sent with QoS 2.
            Packet::PubRec(ack) => self.member.send(&Packet::PubRel(unknown(ack.packet_id))),
            Packet::PubComp(_) => {}
            _ => {
                let name = packet.packet_type().name();
                report::peer_fault(&self.member.connection, "protocol error", name);
                return Err(End::Reason(ReasonCode::ProtocolError));
            }
        }
        Ok(Progress::Done)
    }

    /// The client leaves; its will stays for that reason alone which asks for it.
    fn disconnect(&self, disconnect: &Disconnect<'_>) -> End {
        let mut inner = self.member.lock();
        let session = &mut inner.session;
        if let Some(expiry_s) = disconnect.properties.session_expiry() {
            if session.expiry_s == 0 && expiry_s > 0 {
                let text = "a session that ends with its connection is to be kept";
                report::peer_fault(&self.member.connection, "protocol error", text);
                return End::Reason(ReasonCode::ProtocolError);
            }
            if expiry_s == 0 {
                session.expiry_s = 0;
            }
        }
        if disconnect.reason == ReasonCode::Success {
            session.will = None;
        }
        End::ByClient
    }

    /// Takes the client out of its vhost. A stop publishes no wills: the clients are there, and come back.
    pub(crate) fn leave(self, ground: &Ground, why: EndReason, is_stop: bool) {
        self.member.note_over();
        let mut locked = self.member.lock();
        let inner = &mut *locked;
        // Another connection may have its place, and waits for this lock before it enters the vhost.
        let Some(mut guest) = inner.guest.take() else {
            return;
        };
        if !is_stop {
            let exchange = &ground.options().exchange;
            will::publish(&mut guest, &self.fleet, exchange, &mut inner.session);
        }
        if inner.session.expiry_s == 0 {
            // A queue that was declared for a session that was kept then.
            let queue = names::queue(&inner.session.client_id, QoS::AtLeastOnce);
            delete_queue(&mut guest, &queue);
        }
        self.fleet.remove(&inner.session.client_id, &self.member);
        drop(locked);
        guest.leave(why, is_stop);
    }
}

//! The judgement of one watched connection, once a second.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crosstie_transport::{Connection, Flow};

use super::{Asked, CLOSING_MAX, Heartbeat, Phase, Watched};
use crate::cause::Cause;
use crate::counters::Counter;
use crate::pings::whole_seconds;

/// The fault for which a connection is closed.
pub(super) type Fault = (Counter, Cause);

impl Watched {
    pub(super) fn age_s(&self, now_s: u32) -> u32 {
        now_s.saturating_sub(self.since_s)
    }

    /// Takes the challenge if its client has exceeded the time. If too many handshakes are pending, only their own time
    /// counts.
    pub(super) fn take_overdue(&mut self, now_s: u32, is_crowded: bool) -> Option<Box<Asked>> {
        let Phase::Asked(asked) = &mut self.phase else {
            return None;
        };
        let age_s = now_s.saturating_sub(self.since_s);
        let rest_s = asked.within_s.saturating_sub(asked.asked_s);
        let allowed_s = match is_crowded {
            true => rest_s.min(asked.left_s),
            false => rest_s,
        };
        if age_s <= allowed_s {
            return None;
        }
        asked.within_s = asked.asked_s.saturating_add(allowed_s);
        let closing = Phase::Closing {
            within_s: whole_seconds(CLOSING_MAX),
        };
        self.since_s = now_s;
        match std::mem::replace(&mut self.phase, closing) {
            Phase::Asked(asked) => Some(asked),
            _ => None,
        }
    }

    /// Judges the flow of the connection's bytes. A connection whose last bytes are queued begins to close.
    fn judge_transfer(&mut self, now_s: u32) -> Option<Fault> {
        // The closing timeout limits the last bytes.
        if matches!(self.phase, Phase::Closing { .. }) {
            return None;
        }
        let connection = &self.connection;
        match connection.flow() {
            Flow::Well => None,
            Flow::Finishing => {
                // The last message follows a full queue: the peer may take as long to read all that as it may read
                // nothing.
                let within_s = whole_seconds(connection.stall_max());
                self.phase = Phase::Closing { within_s };
                self.since_s = now_s;
                None
            }
            Flow::Stalled => Some((Counter::ConnectionsClosedForStall, stalled(connection))),
            Flow::InputOverdue => {
                Some((Counter::ConnectionsClosedForSlowInput, Cause::SlowMessage))
            }
        }
    }

    /// Judges the connection; pings it if that is due.
    pub(super) fn judge(&mut self, now_s: u32) -> Option<Fault> {
        if let Some(fault) = self.judge_transfer(now_s) {
            return Some(fault);
        }
        let connection = &self.connection;
        let age_s = now_s.saturating_sub(self.since_s);
        match &mut self.phase {
            // Browsers open spare connections, and load balancers probe the port.
            Phase::Opening { within_s, .. } if age_s > *within_s && connection.is_unused() => {
                Some((Counter::ConnectionsClosedUnused, Cause::NoSession))
            }
            Phase::Opening { within_s, .. } if age_s > *within_s => {
                Some((Counter::ConnectionsRefused, Cause::NoSession))
            }
            Phase::Closing { within_s } if age_s > *within_s => {
                connection.close();
                None
            }
            Phase::Open { pings, pinged_at_s } => {
                // `since_s` is the time of the opening, or of the last answered ping.
                let heard_s = match pings.any_traffic_counts {
                    true => connection.received_at_s().max(self.since_s),
                    false => self.since_s,
                };
                match *pinged_at_s {
                    Some(at_s) if heard_s >= at_s.get() => *pinged_at_s = None,
                    Some(at_s) if now_s.saturating_sub(at_s.get()) > pings.timeout_s => {
                        return Some((Counter::ConnectionsClosedForSilence, Cause::NoPong));
                    }
                    None if now_s.saturating_sub(heard_s) >= pings.interval_s => {
                        *pinged_at_s = NonZeroU32::new(now_s);
                        pings.send(connection);
                    }
                    Some(_) | None => {}
                }
                None
            }
            Phase::Requests { within_s } => {
                let heard_s = connection.received_at_s().max(self.since_s);
                let is_gone = now_s.saturating_sub(heard_s) > *within_s && !connection.has_taker();
                is_gone.then_some((Counter::ConnectionsClosedForSilence, Cause::NoRequest))
            }
            Phase::Keeping { within_s } => {
                let heard_s = connection.received_at_s().max(self.since_s);
                let is_silent = now_s.saturating_sub(heard_s) > *within_s;
                // A client is not heard while its reading is paused.
                let is_gone = is_silent && !connection.is_reading_paused();
                is_gone.then_some((Counter::ConnectionsClosedForSilence, Cause::NoPacket))
            }
            Phase::Beating {
                heartbeat_s,
                heartbeat,
            } if *heartbeat_s > 0 => {
                let interval_s = u32::from(*heartbeat_s);
                let quiet_s = |at_s: u32| now_s.saturating_sub(at_s.max(self.since_s));
                let is_silent = quiet_s(connection.received_at_s()) > 2 * interval_s;
                // A client is not heard while its reading is paused.
                if is_silent && !connection.is_reading_paused() {
                    return Some((Counter::ConnectionsClosedForSilence, Cause::NoHeartbeat));
                }
                if quiet_s(connection.sent_at_s()) >= (interval_s / 2).max(1) {
                    send_heartbeat(connection, heartbeat);
                }
                None
            }
            _ => None,
        }
    }
}

fn send_heartbeat(connection: &Arc<Connection>, heartbeat: &Heartbeat) {
    // As with a ping.
    let _ = connection.append(|out| {
        out.extend_from_slice(heartbeat);
        Ok::<(), ()>(())
    });
}

/// The limit of a peer that reads too little.
fn stalled(connection: &Connection) -> Cause {
    let deaf_for = Duration::from_secs(connection.deaf_for_s().into());
    match deaf_for > connection.stall_max() {
        true => Cause::NoRead,
        false => Cause::SlowRead,
    }
}

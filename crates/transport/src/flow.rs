//! The judgement of a connection's transfer: whether its peer sends and takes bytes as fast as it must.

use crate::out::Phase;
use crate::{Connection, clock};

/// The state of a connection's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Well,
    /// The last bytes are queued: these are sent, and nothing more can be appended.
    Finishing,
    /// The peer has taken none of the waiting bytes for too long, or too few to take all of them in time.
    Stalled,
    /// A message of the peer has been arriving too slowly for too long.
    InputOverdue,
}

impl Connection {
    /// Judges the transfer. Call it periodically: each call is a judgement. A sweep calls it for every connection, so
    /// all of it is under one lock.
    pub fn flow(&self) -> Flow {
        let mut out = self.out.lock();
        if out.phase == Phase::Finishing {
            return Flow::Finishing;
        }
        let now_s = clock::now_s();
        if out.is_stalled(now_s, &self.limits) {
            Flow::Stalled
        } else if !self.is_reading_paused() && out.is_input_overdue(now_s, &self.limits) {
            Flow::InputOverdue
        } else {
            Flow::Well
        }
    }

    /// The judgement of the waiting bytes alone.
    pub fn is_stalled(&self) -> bool {
        self.out.lock().is_stalled(clock::now_s(), &self.limits)
    }
}

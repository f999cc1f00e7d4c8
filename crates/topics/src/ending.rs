//! What is left of sessions that have ended.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_mqtt::QoS;

use crate::keys::{GroupKey, SessionKey};
use crate::{Message, SessionNumber};

/// A session that has ended, and still has parts.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) key: SessionKey,
    /// 0 if it was not recorded. Otherwise its entries count as holders of recorded messages.
    pub(crate) number: SessionNumber,
    pub(crate) returned: VecDeque<Returned>,
}

/// The parts of a recorded session on their way to others, with which its last records wait.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// Wills that are published, and what remains of a session that has ended.
    pub(crate) parts: u32,
    pub(crate) has_ended: bool,
}

/// A message that goes to another member of a group.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) message: Arc<Message>,
    pub(crate) qos: QoS,
    pub(crate) group: GroupKey,
    /// Its place in the session.
    pub(crate) place: u64,
    /// The record of the message is still to come, and may not.
    pub(crate) is_unrecorded: bool,
}

//! What is left of sessions that have ended.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_mqtt::QoS;

use crate::Message;
use crate::keys::{GroupKey, SessionKey};

/// A session that has ended, and still has parts.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) key: SessionKey,
    /// Its entries count as holders of recorded messages.
    pub(crate) is_recorded: bool,
    pub(crate) returned: VecDeque<Returned>,
}

/// A message that goes to another member of a group.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) message: Arc<Message>,
    pub(crate) qos: QoS,
    pub(crate) group: GroupKey,
    /// Its record is still to come, and may not.
    pub(crate) is_unrecorded: bool,
}

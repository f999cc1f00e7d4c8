//! A realm's result for a message.

use std::sync::Arc;

use crosstie_routing::{Question, Realm, Violation};
use crosstie_transport::Connection;

use crate::outbox::RealmOutbox;
use crate::peer::Peer;

/// The result of a message.
pub struct Handled {
    pub outcome: Result<(), Violation>,
    /// The share of a turn that it used.
    pub steps: u32,
    /// A question for an authorizer that must be asked before the message is routed.
    pub asked: Option<Box<Question>>,
    /// A slow receiver for which the sender must wait.
    pub slow: Option<Arc<Connection>>,
}

impl Handled {
    #[inline]
    pub(crate) fn of(
        outcome: Result<(), Violation>,
        realm: &mut Realm<Peer>,
        outbox: &mut RealmOutbox<'_, '_>,
    ) -> Self {
        Self {
            outcome,
            steps: realm.take_steps(),
            asked: outbox.asked.take(),
            slow: outbox.slow.take(),
        }
    }
}

//! What a realm says of a message that it was given.

use std::sync::Arc;

use crosstie_routing::{Question, Realm, Violation};
use crosstie_transport::Connection;

use crate::wamp::outbox::RealmOutbox;
use crate::wamp::peer::Peer;

/// What has become of a message.
pub(crate) struct Handled {
    pub(crate) outcome: Result<(), Violation>,
    /// How much of a turn it took.
    pub(crate) steps: u32,
    /// What an authorizer is to be asked first: nothing has been done.
    pub(crate) asked: Option<Box<Question>>,
    /// A receiver for whom its sender is to wait.
    pub(crate) slow: Option<Arc<Connection>>,
}

impl Handled {
    #[inline]
    pub(super) fn of(
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

//! A look ahead: the sessions that a message may reach, before it is routed.

use crosstie_wamp::{Message, MessageType};

use crate::identity::SessionIndex;
use crate::{Realm, SessionKey};

impl<H> Realm<H> {
    /// Shows `visit` the handles of the sessions that the payload of `message` may be sent to, until it returns
    /// `false`. Nothing is changed, and the result is a hint: a session may be shown twice, or not be sent the message
    /// after all.
    ///
    /// For owners that prepare messages (a transcoded payload) while other sessions use the realm.
    pub fn receivers(
        &self,
        from: SessionKey,
        message: &Message<'_>,
        visit: &mut dyn FnMut(&H) -> bool,
    ) {
        let Some(from) = self.sessions.find(from) else {
            return;
        };
        let mut show = |index: SessionIndex| visit(&self.sessions[index].handle);
        match message {
            Message::Publish { topic, .. } => self.broker.receivers(topic, &mut show),
            Message::Call { procedure, .. } => self.dealer.callees(procedure, &mut show),
            Message::Yield { request, .. }
            | Message::Error {
                request_type: MessageType::Invocation,
                request,
                ..
            } => {
                if let Some(caller) = self.dealer.caller(&self.sessions, from, *request) {
                    show(caller);
                }
            }
            _ => {}
        }
    }
}

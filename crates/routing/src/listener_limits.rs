//! Bounds of a session by the listener that accepted it.

use crate::{Realm, RoleLimits, SessionKey};

impl<H> Realm<H> {
    /// Sets the bounds that the session's listener gives; returns its effective bounds. To be called before its first
    /// message.
    pub fn limit(&mut self, session: SessionKey, own: RoleLimits) -> RoleLimits {
        let Some(index) = self.sessions.find(session) else {
            return own;
        };
        let session = &mut self.sessions[index];
        if own != RoleLimits::default() {
            let calls_max = own.calls_max.and_then(|max| u32::try_from(max).ok());
            session.calls_max = session.calls_max.min(calls_max.unwrap_or(u32::MAX));
            session.rare.get_or_insert_default().limits = Some(Box::new(own));
        }
        self.roles.limits(session.role).least(own)
    }
}

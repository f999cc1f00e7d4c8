//! Figures of roles: their sessions, and the times from calls to their answers.

use crosstie_collections::Histogram;

use super::{RoleIndex, Roles};

impl Roles {
    /// Notes a call of a session with the role that a callee has answered.
    #[inline]
    pub(crate) fn note_answered(&mut self, role: RoleIndex, after_us: u64) {
        if let Some(rules) = self.rules.get_mut(role.0 as usize) {
            rules.answered.note(after_us);
        }
    }

    /// Microseconds from CALL to answer, by role. A removed role, and one that was added again, are among them.
    pub(crate) fn answered(&self) -> impl Iterator<Item = (&str, &Histogram)> {
        let rules = self.rules.iter();
        rules.map(|(_, rules)| (&*rules.name, &rules.answered))
    }

    /// Number of sessions with the role.
    pub(crate) fn sessions(&self, role: RoleIndex) -> usize {
        self.rules[role.0 as usize].sessions
    }

    /// Number of sessions with a role of one of those names.
    pub(crate) fn sessions_of(&self, names: &[&str]) -> usize {
        let meant = self.rules.iter().filter(|(_, r)| names.contains(&&*r.name));
        meant.map(|(_, rules)| rules.sessions).sum()
    }
}

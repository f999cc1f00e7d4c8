//! An owner that releases the vhost with its last entry.

use crosstie_queues::Time;

use crate::entry::Kind;
use crate::ledger::{Ledger, Role};
use crate::record::Release;

impl Ledger {
    /// Writes the owner's last entry, if everything submitted is in the log; [`crate::Effect::Released`] follows when
    /// the entry is, too. Returns false if something waits, or the node does not own the vhost.
    pub fn release(&mut self, now: Time, release: &Release) -> bool {
        if self.role != Role::Owning || !self.is_settled() {
            return false;
        }
        self.role = Role::Releasing;
        self.append(Kind::Released, &release.encode(), None);
        self.proceed(now);
        true
    }
}

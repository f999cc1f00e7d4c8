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
        self.history.released = Some(release.clone());
        self.append(Kind::Released, &release.encode(), None);
        self.proceed(now);
        true
    }

    /// A ledger that follows the same log, after [`crate::Effect::Released`]: the former owner stands by without reading
    /// again what it has written. `None` if the node has not released the vhost.
    pub fn into_follower(self) -> Option<Self> {
        let is_last_written = self.acknowledged == self.history.end.sequence;
        let has_released = self.role == Role::Deposed && self.history.released.is_some();
        (has_released && is_last_written).then(|| Self {
            history: self.history,
            ..Self::new(self.config)
        })
    }
}

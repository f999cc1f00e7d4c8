//! An owner that hands the vhost over: its last entry says so, and to whom.

use crosstie_queues::Time;

use crate::entry::Kind;
use crate::handed::Handed;
use crate::ledger::{Ledger, Role};

impl Ledger {
    /// Writes the owner's last entry, when all that was submitted is in the log; [`crate::Effect::Handed`] follows when
    /// this is. False where something waits, or the node does not own the vhost.
    pub fn hand_over(&mut self, now: Time, handed: &Handed) -> bool {
        if self.role != Role::Owning || !self.is_settled() {
            return false;
        }
        self.role = Role::Handing;
        self.append(Kind::Handed, &handed.encode(), None);
        self.proceed(now);
        true
    }
}

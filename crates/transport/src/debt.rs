//! What a connection owes, as its owner and the account see it.

use std::sync::Arc;

use crate::out::Out;
use crate::{Connection, Debt};

impl Connection {
    /// Whether there is little room in the account of all connections for so many bytes: who can
    /// keep them does so until [`Connection::room`], so that nobody has to be closed for them.
    pub fn is_room_short(&self, bytes: usize) -> bool {
        self.limits.account.is_short_for(bytes)
    }

    /// Waits until there is room for so many bytes in the account of all connections.
    pub async fn room(&self, bytes: usize) {
        self.limits.account.room(bytes).await;
    }

    /// Notes that some layer holds so many bytes more for the peer, or less: anything that stays
    /// because the peer asked for it, and that is neither queued for it nor input of it. A constant
    /// per item is exact enough, as long as what is added is taken off again; what is left when the
    /// connection is dropped is taken off then.
    pub fn hold(self: &Arc<Self>, delta: isize) {
        let mut out = self.out.lock();
        out.hold(delta, &self.limits);
        self.note_debt(&mut out);
    }

    /// What the peer owes: what is held for it at the moment, by kind.
    pub fn debt(&self) -> Debt {
        self.out.lock().debt()
    }

    /// Has the account know the connection for as long as it owes much.
    pub(crate) fn note_debt(self: &Arc<Self>, out: &mut Out) {
        if !out.is_debtor() && out.debt().bytes() >= self.limits.account.share_bytes() {
            out.set_debtor(true);
            self.limits.account.register(self);
        } else {
            self.note_debt_paid(out);
        }
    }

    /// The same where it can only owe less.
    pub(crate) fn note_debt_paid(&self, out: &mut Out) {
        if out.is_debtor() && out.debt().bytes() < self.limits.account.share_bytes() / 2 {
            out.set_debtor(false);
            self.limits.account.forget(self);
        }
    }
}

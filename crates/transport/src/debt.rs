//! A connection's debt, as its owner and the account see it.

use std::sync::Arc;

use crate::out::Out;
use crate::{Account, Connection, Debt};

impl Connection {
    /// Whether the account of all connections has little room for so many bytes. Senders that can keep them do so until
    /// [`Connection::room`], so that no debtor has to be closed for them.
    pub fn is_room_short(&self, bytes: usize) -> bool {
        self.limits.account.is_short_for(bytes)
    }

    /// Waits until there is room for so many bytes in the account of all connections.
    pub async fn room(&self, bytes: usize) {
        self.limits.account.room(bytes).await;
    }

    /// Records that some layer holds so many bytes more, or less, for the peer: state that stays because of the peer's
    /// requests, and is neither queued nor input. A constant per item is exact enough if it is subtracted again. The
    /// rest is subtracted when the connection is dropped.
    pub fn hold(self: &Arc<Self>, delta: isize) {
        let mut out = self.out.lock();
        out.hold(delta, &self.limits);
        self.note_debt(&mut out);
    }

    /// The account of this and other connections.
    pub fn account(&self) -> &Arc<Account> {
        &self.limits.account
    }

    /// The peer's debt: the bytes currently held for it, by kind.
    pub fn debt(&self) -> Debt {
        self.out.lock().debt()
    }

    /// Registers the connection with the account for as long as its debt is large.
    pub(crate) fn note_debt(self: &Arc<Self>, out: &mut Out) {
        if !out.is_debtor() && out.debt().bytes() >= self.limits.account.share_bytes() {
            out.set_debtor(true);
            self.limits.account.register(self);
        } else {
            self.note_debt_paid(out);
        }
    }

    /// The same, after the debt can only have become smaller.
    pub(crate) fn note_debt_paid(&self, out: &mut Out) {
        if out.is_debtor() && out.debt().bytes() < self.limits.account.share_bytes() / 2 {
            out.set_debtor(false);
            self.limits.account.forget(self);
        }
    }
}

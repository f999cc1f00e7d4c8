//! Bytes on the account that no connection owes: results of work for one peer that serve others too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::account::{Account, Kind};

/// A number of bytes on an account, for as long as this lives. The holder bounds them, because no connection can be
/// closed for them.
pub struct Kept {
    account: Arc<Account>,
    bytes: AtomicUsize,
}

impl Kept {
    /// With 0 bytes.
    pub fn new(account: &Arc<Account>) -> Self {
        Self {
            account: Arc::clone(account),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Whether the account has exceeded its bound.
    pub fn is_account_full(&self) -> bool {
        self.account.total_bytes() > self.account.bytes_max()
    }

    /// Whether it is on that account.
    pub fn is_on(&self, account: &Arc<Account>) -> bool {
        Arc::ptr_eq(&self.account, account)
    }

    /// Sets the number of bytes.
    pub fn set(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        self.account.change(Kind::Kept, before, bytes);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.set(0);
    }
}

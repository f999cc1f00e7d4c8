//! Bytes on the account that no connection owes: what was found out for one peer and serves others too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::account::{Account, Kind};

/// So many bytes on an account, for as long as this lives. Whoever keeps them bounds them: nobody can be closed for
/// them.
pub struct Kept {
    account: Arc<Account>,
    bytes: AtomicUsize,
}

impl Kept {
    /// None yet.
    pub fn new(account: &Arc<Account>) -> Self {
        Self {
            account: Arc::clone(account),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Whether the account has passed its bound.
    pub fn is_account_full(&self) -> bool {
        self.account.total_bytes() > self.account.bytes_max()
    }

    /// From now on it is so many.
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

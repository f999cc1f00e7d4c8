//! The users of a broker and their permissions, which a reload or an operator replaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crosstie_auth::Users;
use parking_lot::RwLock;

/// The present users.
pub(crate) struct LiveUsers {
    now: RwLock<Arc<Users>>,
    /// They are not those of the start any more.
    were_put: AtomicBool,
}

impl LiveUsers {
    pub(crate) fn new(users: Users) -> Self {
        Self {
            now: RwLock::new(Arc::new(users)),
            were_put: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Arc<Users> {
        Arc::clone(&self.now.read())
    }

    /// Replaces them. Returns the former ones.
    pub(crate) fn put(&self, users: Arc<Users>) -> Arc<Users> {
        let mut now = self.now.write();
        self.were_put.store(true, Ordering::Release);
        std::mem::replace(&mut now, users)
    }

    pub(crate) fn were_put(&self) -> bool {
        self.were_put.load(Ordering::Acquire)
    }
}

//! The tap of a connection, set and removed while it is open.

use std::sync::Arc;

use crate::flags::Flag;
use crate::out::Out;
use crate::{Connection, Tap};

impl Out {
    pub(crate) fn tap(&self) -> Option<&Arc<dyn Tap>> {
        self.rare.as_ref()?.tap.as_ref()
    }
}

impl Connection {
    /// Sets or removes the tap; bytes that are being sent at this moment may be missed. A connection has one tap: returns
    /// `false` if another one is there. A mailbox can have none.
    pub fn set_tap(&self, tap: Option<Arc<dyn Tap>>) -> bool {
        if self.as_mailbox().is_some() {
            return false;
        }
        let mut out = self.out.lock();
        let is_set = tap.is_some();
        let rare = out.rare_mut();
        if is_set && rare.tap.is_some() {
            return false;
        }
        rare.tap = tap;
        out.tidy();
        match is_set {
            true => self.flags.set(Flag::Tapped),
            false => self.flags.clear(Flag::Tapped),
        }
        true
    }

    /// Whether there is a tap. A protocol asks before it [passes](Self::tap_received) what it has received.
    #[inline]
    pub fn is_tapped(&self) -> bool {
        self.flags.has(Flag::Tapped)
    }

    /// Passes received bytes to the tap.
    #[cold]
    pub fn tap_received(&self, bytes: &[u8]) {
        // Not under the lock: the tap may take long.
        let tap = self.out.lock().rare.as_ref().and_then(|r| r.tap.clone());
        if let Some(tap) = tap {
            tap.received(bytes);
        }
    }
}

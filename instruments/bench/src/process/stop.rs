//! A user's request to end a run early: results so far are printed and written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared between the receiver of the request and the run.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn wish(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_wished(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

//! A user's wish that a run end early: what was measured until then is printed and written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared between who hears the wish and the run.
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

//! Counters and notes of a port.

use std::sync::atomic::Ordering;

use super::FabricPort;

impl FabricPort {
    pub(crate) fn note_leased(&self) {
        let mut inner = self.inner.lock();
        inner.is_leased = true;
        inner.ungranted = None;
    }

    pub(crate) fn note_ungranted(&self, why: &str) {
        self.inner.lock().ungranted = Some(why.to_owned());
    }

    pub(crate) fn note_overdelivered(&self, events: u64) {
        self.overdelivered.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn note_offer_refused(&self) {
        self.offers_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_answer_partial(&self) {
        self.answers_partial.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_testament_refused(&self) {
        self.testaments_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_end_unknown(&self) {
        self.ends_unknown.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_retained_refused(&self) {
        self.retained_refused.fetch_add(1, Ordering::Relaxed);
    }
}

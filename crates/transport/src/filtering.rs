//! The filter of a connection's bytes.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::flags::Flag;
use crate::{Connection, Filter};

impl Connection {
    /// Sends all bytes appended from now on through `filter`; earlier ones pass unchanged. A second filter is ignored.
    pub fn set_filter(&self, filter: Arc<Mutex<dyn Filter>>) {
        let mut out = self.out.lock();
        if out.filter().is_some() {
            return;
        }
        let queue = mem::take(&mut out.queue);
        let rare = out.rare_mut();
        rare.filter = Some(filter);
        if !queue.is_empty() {
            rare.unfiltered = Some(Box::new(queue));
        }
        self.flags.set(Flag::Filtered);
    }

    /// Whether the bytes pass through a filter.
    pub(crate) fn has_filter(&self) -> bool {
        self.flags.has(Flag::Filtered)
    }

    /// Makes the filter drop what it holds only to do better. A filter that is at work keeps it.
    pub(crate) fn give_up(self: &Arc<Self>) {
        self.give_up_by(|filter| filter.give_up());
    }

    /// The same, if the filter was not used for long. A sweep calls it from time to time.
    pub fn give_up_unused(self: &Arc<Self>, now_s: u32) {
        self.give_up_by(|filter| filter.give_up_unused(now_s));
    }

    fn give_up_by(self: &Arc<Self>, how: impl FnOnce(&mut dyn Filter)) {
        if !self.has_filter() {
            return;
        }
        let filter = self.out.lock().filter().cloned();
        let Some(filter) = filter else {
            return;
        };
        let Some(mut filter) = filter.try_lock() else {
            return;
        };
        how(&mut *filter);
        let growth = filter.take_growth();
        if growth != 0 {
            self.hold(growth);
        }
    }
}

//! The work of an input, in steps.
//!
//! A step is some 50 to 100 ns: a message that is moved, a queue that a publication goes to, a consumer that is
//! removed. The holder of a vhost's lock reads them, and releases the lock when they are many. They also bound the work
//! of one input.

/// The steps of the present input, and those not yet taken by the owner.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    spent: u64,
    /// The total when the owner took them last.
    told: u64,
    /// From this total on, the rest is postponed.
    limit: u64,
}

impl Steps {
    /// Begins an input with that many steps.
    #[inline]
    pub(crate) fn begin(&mut self, steps_max: u32) {
        self.limit = self.spent + u64::from(steps_max);
    }

    /// Begins a part of an input with that many steps, but not beyond `end`.
    pub(crate) fn begin_part(&mut self, steps_max: u64, end: u64) {
        self.limit = end.min(self.spent + steps_max);
    }

    /// Lifts the bound, because the next steps belong together, whatever they cost; returns it for `until`.
    pub(crate) fn lift(&mut self) -> u64 {
        std::mem::replace(&mut self.limit, u64::MAX)
    }

    pub(crate) fn until(&mut self, end: u64) {
        self.limit = end;
    }

    /// The total at which the present input ends.
    pub(crate) fn end(&self) -> u64 {
        self.limit
    }

    /// Whether that total is reached.
    pub(crate) fn is_at(&self, end: u64) -> bool {
        self.spent >= end
    }

    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) {
        self.spent += steps as u64;
    }

    /// Counts the steps of moving a message with that body length.
    #[inline]
    pub(crate) fn spend_on_body(&mut self, body_bytes: usize) {
        self.spend(1 + body_bytes / BODY_BYTES_PER_STEP);
    }

    /// Whether the remaining work is for another turn.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.spent >= self.limit
    }

    /// Takes the steps since the last call.
    pub(crate) fn take(&mut self) -> u32 {
        let steps = self.spent - self.told;
        self.told = self.spent;
        u32::try_from(steps).unwrap_or(u32::MAX)
    }
}

/// Bytes copied per step.
const BODY_BYTES_PER_STEP: usize = 1024;

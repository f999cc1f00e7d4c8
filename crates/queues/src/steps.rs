//! How much work an input is.
//!
//! A step is some 50 to 100 ns: a message that is moved, a queue that a publication goes to, a
//! consumer that is removed. The holder of a vhost's lock asks for them, and gives it up when they
//! are many; what one input may cost at once is bounded by them too.

/// Steps of the input that is handled, and those that the owner has not asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    spent: u64,
    /// As many had been spent when the owner asked last.
    told: u64,
    /// From so many on the rest is left for later.
    limit: u64,
}

impl Steps {
    /// An input begins that may spend so many.
    #[inline]
    pub(crate) fn begin(&mut self, steps_max: u32) {
        self.limit = self.spent + u64::from(steps_max);
    }

    /// A part of an input begins that may spend so many, and leaves none behind `end`.
    pub(crate) fn begin_part(&mut self, steps_max: u64, end: u64) {
        self.limit = end.min(self.spent + steps_max);
    }

    /// The steps from now on belong together, whatever they cost; `until` goes on with the bound that was.
    pub(crate) fn lift(&mut self) -> u64 {
        std::mem::replace(&mut self.limit, u64::MAX)
    }

    pub(crate) fn until(&mut self, end: u64) {
        self.limit = end;
    }

    /// Where the input that has begun is to end.
    pub(crate) fn end(&self) -> u64 {
        self.limit
    }

    /// Whether it has come so far.
    pub(crate) fn is_at(&self, end: u64) -> bool {
        self.spent >= end
    }

    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) {
        self.spent += steps as u64;
    }

    /// The steps of moving a message with a body so long.
    #[inline]
    pub(crate) fn spend_on_body(&mut self, body_bytes: usize) {
        self.spend(1 + body_bytes / BODY_BYTES_PER_STEP);
    }

    /// Whether what is left to do is for another turn.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.spent >= self.limit
    }

    /// Those since it was asked last.
    pub(crate) fn take(&mut self) -> u32 {
        let steps = self.spent - self.told;
        self.told = self.spent;
        u32::try_from(steps).unwrap_or(u32::MAX)
    }
}

/// So much is copied in a step.
const BODY_BYTES_PER_STEP: usize = 1024;

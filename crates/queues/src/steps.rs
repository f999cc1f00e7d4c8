//! How much work an input is.
//!
//! A step is some 50 to 100 ns: a message that is moved, a queue that a publication goes to, a
//! consumer that is removed. Whoever holds a vhost's lock asks for them, and gives it up when they
//! are many; work that can wait is done in parts of so many.

/// Steps of the input that is handled, and those that nobody has asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    spent: u64,
    /// As many had been spent when the owner asked last.
    told: u64,
}

impl Steps {
    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) {
        self.spent += steps as u64;
    }

    /// What moving a message takes that has a body so long.
    #[inline]
    pub(crate) fn spend_on_body(&mut self, body_bytes: usize) {
        self.spend(1 + body_bytes / BODY_BYTES_PER_STEP);
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

//! Tracks which of a producer's messages the broker has confirmed: one by one, several at once, or out of order.

use std::collections::BTreeSet;

use super::wire::Event;

/// The confirms so far. Messages are numbered from 1, as in the protocol.
#[derive(Debug, Default)]
pub(crate) struct Confirms {
    /// All of these.
    up_to: u64,
    /// And these of the later ones.
    ahead: BTreeSet<u64>,
    refused: u64,
}

impl Confirms {
    /// Records a confirm; a refusal counts as one, and is counted separately.
    pub(crate) fn take(&mut self, event: &Event<'_>) {
        let (tag, multiple, is_refusal) = match *event {
            Event::Ack { tag, multiple } => (tag, multiple, false),
            Event::Nack { tag, multiple } => (tag, multiple, true),
            Event::Return | Event::Delivery { .. } => return,
        };
        let before = self.count();
        if multiple {
            self.up_to = self.up_to.max(tag);
            self.ahead = self.ahead.split_off(&(self.up_to + 1));
        } else if tag > self.up_to {
            self.ahead.insert(tag);
        }
        while self.ahead.remove(&(self.up_to + 1)) {
            self.up_to += 1;
        }
        if is_refusal {
            self.refused += self.count() - before;
        }
    }

    pub(crate) fn all_up_to(&self) -> u64 {
        self.up_to
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    fn count(&self) -> u64 {
        self.up_to + self.ahead.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirms_come_in_any_form() {
        /// `3` one, `3+` all up to it, `!3` refused.
        #[track_caller]
        fn check(script: &str, up_to: u64, refused: u64) {
            let mut confirms = Confirms::default();
            for word in script.split_whitespace() {
                let multiple = word.ends_with('+');
                let tag = word.trim_matches(['!', '+']).parse().unwrap();
                confirms.take(&match word.starts_with('!') {
                    true => Event::Nack { tag, multiple },
                    false => Event::Ack { tag, multiple },
                });
            }
            assert_eq!((confirms.all_up_to(), confirms.refused()), (up_to, refused));
        }
        check("", 0, 0);
        check("1 2 3", 3, 0);
        check("3+ 4", 4, 0);
        check("3 1 2", 3, 0);
        check("2 4 3+ 6", 4, 0);
        check("1 !2 3", 3, 1);
        check("1 3 !4+", 4, 2);
        check("1 1 2", 2, 0);
    }
}

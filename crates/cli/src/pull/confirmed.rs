//! Confirms that arrive in any order, and the acknowledgement that they allow.

use std::collections::VecDeque;

/// Messages are numbered from 1 on, alike by both brokers: the delivery tag of a message is the number of its confirm.
#[derive(Debug, Default)]
pub(crate) struct Confirmed {
    /// All messages up to this one are confirmed.
    all_up_to: u64,
    /// For those behind it, in order.
    behind: VecDeque<bool>,
}

impl Confirmed {
    /// Notes a message that was published.
    pub(crate) fn publish(&mut self) -> u64 {
        self.behind.push_back(false);
        self.published()
    }

    pub(crate) fn published(&self) -> u64 {
        self.all_up_to + self.behind.len() as u64
    }

    /// Messages that may be unconfirmed.
    pub(crate) fn outstanding(&self) -> u64 {
        self.behind.len() as u64
    }

    /// Notes a confirm. Returns the number up to which all messages are confirmed now, if that has changed.
    pub(crate) fn confirm(&mut self, number: u64, multiple: bool) -> Option<u64> {
        let behind = number.checked_sub(self.all_up_to + 1)?;
        let last = usize::try_from(behind).ok()?;
        let first = if multiple { 0 } else { last };
        let last = last.min(self.behind.len().checked_sub(1)?);
        self.behind
            .range_mut(first.min(last)..=last)
            .for_each(|is_confirmed| *is_confirmed = true);
        let before = self.all_up_to;
        while self.behind.front() == Some(&true) {
            self.behind.pop_front();
            self.all_up_to += 1;
        }
        (self.all_up_to > before).then_some(self.all_up_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_acknowledged_when_all_before_it_are_confirmed() {
        let mut confirmed = Confirmed::default();
        for number in 1..=6 {
            assert_eq!(confirmed.publish(), number);
        }
        assert_eq!(confirmed.confirm(2, false), None);
        assert_eq!(confirmed.confirm(1, false), Some(2));
        assert_eq!(confirmed.confirm(1, false), None);
        assert_eq!(confirmed.confirm(4, true), Some(4));
        assert_eq!(confirmed.outstanding(), 2);
        assert_eq!(confirmed.confirm(6, false), None);
        assert_eq!(confirmed.confirm(5, false), Some(6));
        assert_eq!((confirmed.outstanding(), confirmed.published()), (0, 6));
    }

    #[test]
    fn a_confirm_of_what_was_never_published_confirms_no_more_than_there_is() {
        let mut confirmed = Confirmed::default();
        assert_eq!(confirmed.confirm(0, true), None);
        assert_eq!(confirmed.confirm(9, true), None);
        confirmed.publish();
        assert_eq!(confirmed.confirm(u64::MAX, true), Some(1));
    }
}

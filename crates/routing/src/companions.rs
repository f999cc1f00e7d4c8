//! The callees that sticky registrations assigned to a session: it keeps them while they exist.

use std::collections::VecDeque;

use crosstie_wamp::RegistrationId;

/// Maximum number of registrations whose callee is remembered for a session, the latest ones. For others a hash finds
/// the callee, which changes only if callees register or leave.
const COMPANIONS_MAX: usize = 64;

/// Approximate memory of one of them.
const COMPANION_BYTES: usize = 32;

/// Callee numbers by registration. Neither registration ids nor callee numbers are reused, so that stale entries match
/// nothing and need no removal. Without any, it holds one word.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "few sessions have one")]
pub(crate) struct Companions(Option<Box<VecDeque<(RegistrationId, u64)>>>);

impl Companions {
    /// The number of the callee that served the session last.
    pub(crate) fn of(&self, registration: RegistrationId) -> Option<u64> {
        let mut all = self.0.as_ref()?.iter();
        let known = all.find(|(known, _)| *known == registration);
        known.map(|(_, number)| *number)
    }

    /// Remembers a callee; returns the change of held bytes. If there is no room, `is_there` tells which entries are
    /// still of use.
    pub(crate) fn put(
        &mut self,
        registration: RegistrationId,
        number: u64,
        is_there: impl Fn(RegistrationId, u64) -> bool,
    ) -> isize {
        let before = self.bytes() as isize;
        let all = self.0.get_or_insert_default();
        match all.iter_mut().find(|(known, _)| *known == registration) {
            Some((_, known)) => *known = number,
            None => {
                if all.len() == COMPANIONS_MAX {
                    all.retain(|(known, number)| is_there(*known, *number));
                }
                if all.len() == COMPANIONS_MAX {
                    all.pop_front();
                }
                all.push_back((registration, number));
            }
        }
        self.bytes() as isize - before
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.len() * COMPANION_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_companions_make_room_before_the_oldest() {
        let mut companions = Companions::default();
        let id = |number: usize| RegistrationId(number as u64);
        for number in 0..COMPANIONS_MAX {
            let bytes = companions.put(id(number), 7, |_, _| true);
            assert_eq!(bytes, COMPANION_BYTES as isize);
        }
        assert_eq!(companions.put(id(3), 8, |_, _| false), 0);
        assert_eq!(companions.of(id(3)), Some(8));
        // All callees still exist: the oldest entry is forgotten.
        assert_eq!(companions.put(id(100), 9, |_, _| true), 0);
        assert_eq!(
            (companions.of(id(0)), companions.of(id(1))),
            (None, Some(7))
        );
        // All but two callees have gone.
        let is_there = |known: RegistrationId, _| known == id(3) || known == id(100);
        companions.put(id(101), 9, is_there);
        assert_eq!(companions.bytes(), 3 * COMPANION_BYTES);
        assert_eq!(companions.of(id(100)), Some(9));
    }
}

//! The callees that a session was given by sticky registrations: it is given them again while they are there.

use std::collections::VecDeque;

use crosstie_wamp::RegistrationId;

/// Registrations of which a session's callee is remembered, the latest ones. Of others it is found by a hash, and is another
/// one only when callees come or go.
const COMPANIONS_MAX: usize = 64;

/// What one of them takes in memory, roughly.
const COMPANION_BYTES: usize = 32;

/// By their registrations, whose ids are not used twice, and their numbers, which are not either: what has gone is found
/// nowhere, and needs nobody to take it out.
#[derive(Debug, Default)]
pub(crate) struct Companions(VecDeque<(RegistrationId, u64)>);

impl Companions {
    /// The number of the callee that the session was given last.
    pub(crate) fn of(&self, registration: RegistrationId) -> Option<u64> {
        let mut all = self.0.iter();
        let known = all.find(|(known, _)| *known == registration);
        known.map(|(_, number)| *number)
    }

    /// Remembers one; by how many bytes more or less is held. When there is no room, `is_there` says which are of use.
    pub(crate) fn put(
        &mut self,
        registration: RegistrationId,
        number: u64,
        is_there: impl Fn(RegistrationId, u64) -> bool,
    ) -> isize {
        let before = self.bytes() as isize;
        let mut all = self.0.iter_mut();
        match all.find(|(known, _)| *known == registration) {
            Some((_, known)) => *known = number,
            None => {
                if self.0.len() == COMPANIONS_MAX {
                    self.0.retain(|(known, number)| is_there(*known, *number));
                }
                if self.0.len() == COMPANIONS_MAX {
                    self.0.pop_front();
                }
                self.0.push_back((registration, number));
            }
        }
        self.bytes() as isize - before
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * COMPANION_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_remembered_and_what_has_gone_makes_room_first() {
        let mut companions = Companions::default();
        let id = |number: usize| RegistrationId(number as u64);
        for number in 0..COMPANIONS_MAX {
            let bytes = companions.put(id(number), 7, |_, _| true);
            assert_eq!(bytes, COMPANION_BYTES as isize);
        }
        assert_eq!(companions.put(id(3), 8, |_, _| false), 0);
        assert_eq!(companions.of(id(3)), Some(8));
        // Nobody has gone: the oldest one is forgotten.
        assert_eq!(companions.put(id(100), 9, |_, _| true), 0);
        assert_eq!(
            (companions.of(id(0)), companions.of(id(1))),
            (None, Some(7))
        );
        // All but two have.
        let is_there = |known: RegistrationId, _| known == id(3) || known == id(100);
        companions.put(id(101), 9, is_there);
        assert_eq!(companions.bytes(), 3 * COMPANION_BYTES);
        assert_eq!(companions.of(id(100)), Some(9));
    }
}

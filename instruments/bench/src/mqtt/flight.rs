//! A publisher's packet identifiers: which of them the broker has acknowledged.

use crosstie_mqtt::{Delivery, PacketId, QoS};

use crate::load::Faults;

/// The state of each identifier of a QoS with acknowledgements.
pub(super) struct Flight {
    qos: QoS,
    next: PacketId,
    states: Vec<State>,
    unacknowledged: usize,
    max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Waits for PUBACK or PUBREC.
    Published,
    /// Waits for PUBCOMP.
    Released,
}

impl Flight {
    /// `max` is the broker's receive maximum.
    pub(super) fn new(qos: QoS, max: u16) -> Self {
        let ids = match qos {
            QoS::AtMostOnce => 0,
            _ => usize::from(u16::MAX) + 1,
        };
        Self {
            qos,
            next: PacketId::FIRST,
            states: vec![State::Free; ids],
            unacknowledged: 0,
            max: max.into(),
        }
    }

    /// For one more publication; `None` if the broker takes no more now.
    pub(super) fn begin(&mut self) -> Option<Delivery> {
        if self.qos == QoS::AtMostOnce {
            return Some(Delivery::AtMostOnce);
        }
        let id = self.next;
        let state = self.states.get_mut(usize::from(id.get()))?;
        if self.unacknowledged >= self.max || *state != State::Free {
            return None;
        }
        *state = State::Published;
        self.unacknowledged += 1;
        self.next = id.next();
        Some(match self.qos {
            QoS::ExactlyOnce => Delivery::ExactlyOnce(id),
            _ => Delivery::AtLeastOnce(id),
        })
    }

    /// Whether PUBACK or PUBCOMP ended the publication; any other acknowledgement is a fault.
    pub(super) fn end(&mut self, id: PacketId, faults: &mut Faults) -> bool {
        let expected = match self.qos {
            QoS::ExactlyOnce => State::Released,
            _ => State::Published,
        };
        let is_expected = self.pass(id, expected, State::Free, faults);
        self.unacknowledged -= usize::from(is_expected);
        is_expected
    }

    /// PUBREC of QoS 2.
    pub(super) fn release(&mut self, id: PacketId, faults: &mut Faults) {
        self.pass(id, State::Published, State::Released, faults);
    }

    fn pass(&mut self, id: PacketId, from: State, to: State, faults: &mut Faults) -> bool {
        match self.states.get_mut(usize::from(id.get())) {
            Some(state) if *state == from => {
                *state = to;
                true
            }
            _ => {
                faults.doubled += 1;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `p` publish, `r1` PUBREC of 1, `e1` PUBACK or PUBCOMP of 1.
    #[track_caller]
    fn check(qos: QoS, max: u16, script: &str, unacknowledged: usize, doubled: u64) {
        let mut flight = Flight::new(qos, max);
        let mut faults = Faults::default();
        for word in script.split_whitespace() {
            let id = word[1..].parse().ok().and_then(PacketId::new);
            match (&word[..1], id) {
                ("p", _) => assert!(flight.begin().is_some(), "{word}"),
                ("n", _) => assert!(flight.begin().is_none(), "{word}"),
                ("r", Some(id)) => flight.release(id, &mut faults),
                (_, Some(id)) => assert_eq!(flight.end(id, &mut faults), doubled == 0),
                _ => unreachable!(),
            }
        }
        assert_eq!(flight.unacknowledged, unacknowledged);
        assert_eq!(faults.doubled, doubled);
    }

    #[test]
    fn acknowledgements_are_those_of_the_qos() {
        check(QoS::AtMostOnce, 1, "p p p", 0, 0);
        check(QoS::AtLeastOnce, 2, "p p n e2 p n", 2, 0);
        check(QoS::AtLeastOnce, 9, "p e2", 1, 1);
        check(QoS::ExactlyOnce, 2, "p p n r1 e1 p", 2, 0);
        check(QoS::ExactlyOnce, 9, "p e1", 1, 1);
        check(QoS::ExactlyOnce, 9, "p r1 r1", 1, 1);
    }

    #[test]
    fn an_identifier_that_is_in_use_waits() {
        let mut flight = Flight::new(QoS::AtLeastOnce, u16::MAX);
        let mut faults = Faults::default();
        flight.begin();
        for id in 2..=u16::MAX {
            flight.begin();
            assert!(flight.end(PacketId::new(id).unwrap(), &mut faults));
        }
        assert_eq!(flight.begin(), None);
    }
}

//! Checks that every message arrived once, in order and unchanged. A message begins with its producer and its number;
//! the rest is the same in all.

use crate::load::{Body, Faults, Sequence};

/// The state of all consumers together.
#[derive(Debug)]
pub(super) struct Ledger {
    /// By producer, and for each its levels.
    sequences: Vec<Sequence>,
    levels: u64,
    faults: Faults,
}

/// The state of one consumer: for each producer and level the lowest number that may still arrive.
#[derive(Debug)]
pub(super) struct Order {
    least: Vec<u64>,
    levels: u64,
}

impl Order {
    /// Messages have so many levels in turn, without an order between levels.
    pub(super) fn of(producers: usize, levels: u8) -> Self {
        Self {
            least: vec![0; producers * usize::from(levels)],
            levels: levels.into(),
        }
    }

    fn least(&mut self, producer: usize, number: u64) -> Option<&mut u64> {
        let level = number % self.levels;
        self.least
            .get_mut(producer * self.levels as usize + level as usize)
    }
}

impl Ledger {
    pub(super) fn new(producers: usize, levels: u8) -> Self {
        Self {
            sequences: (0..producers * usize::from(levels))
                .map(|_| Sequence::new(0))
                .collect(),
            levels: levels.into(),
            faults: Faults::default(),
        }
    }

    /// Records one delivery; `model` is any producer's body.
    pub(super) fn arrived(&mut self, body: &[u8], model: &Body, order: &mut Order) {
        let Some((producer, number)) = model.read(body) else {
            self.faults.wrong += 1;
            return;
        };
        let (Some(sequence), Some(least)) = (
            self.sequences
                .get_mut(producer * self.levels as usize + (number % self.levels) as usize),
            order.least(producer, number),
        ) else {
            self.faults.wrong += 1;
            return;
        };
        // Order is defined within each consumer, not between them.
        let mut between = Faults::default();
        // A level that waits long must not look lost beside another.
        let is_first = sequence.arrived(number / self.levels, &mut between);
        self.faults.doubled += between.doubled;
        if is_first && number < *least {
            self.faults.reordered += 1;
        }
        *least = (*least).max(number + 1);
    }

    /// Includes those of the published messages that have not arrived.
    pub(super) fn faults(&self, published: &[u64]) -> Faults {
        let levels = self.levels;
        let ends = published
            .iter()
            .flat_map(|end| (0..levels).map(move |level| (end + levels - 1 - level) / levels));
        let lost = self.sequences.iter().zip(ends);
        let mut faults = self.faults;
        faults.lost += lost.map(|(sequence, end)| sequence.lost(end)).sum::<u64>();
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_checked() {
        /// Each consumer's deliveries, `producer.number`, in the order of arrival.
        #[track_caller]
        fn check(deliveries: &str, expected: Option<&str>) {
            let mut ledger = Ledger::new(2, 1);
            let mut orders = [Order::of(2, 1), Order::of(2, 1)];
            let model = Body::new(0, 20);
            for (consumer, ids) in deliveries.split('|').enumerate() {
                for id in ids.split_whitespace() {
                    let (producer, number) = id.split_once('.').unwrap();
                    let mut body = Body::new(producer.parse().unwrap(), 20);
                    let body = body.numbered(number.parse().unwrap());
                    ledger.arrived(body, &model, &mut orders[consumer]);
                }
            }
            assert_eq!(ledger.faults(&[3, 1]).describe().as_deref(), expected);
        }
        check("0.0 0.1 0.2 1.0", None);
        check("0.1 1.0 | 0.0 0.2", None);
        check("0.0 0.2 1.0", Some("1 lost"));
        check("0.0 0.1 0.1 0.2 1.0", Some("1 doubled"));
        check("0.0 0.2 0.1 1.0", Some("1 out of order"));
        check("0.0 0.1 0.2 1.0 2.0", Some("1 wrong"));
    }

    #[test]
    fn the_order_is_that_of_a_level() {
        let faults_of = |numbers: &[u64]| {
            let mut ledger = Ledger::new(1, 2);
            let mut order = Order::of(1, 2);
            for number in numbers {
                let body = Body::new(0, 20).numbered(*number).to_vec();
                ledger.arrived(&body, &Body::new(0, 20), &mut order);
            }
            ledger.faults(&[4]).describe()
        };
        assert_eq!(faults_of(&[1, 3, 0, 2]), None);
        assert_eq!(faults_of(&[3, 1, 0, 2]).as_deref(), Some("1 out of order"));
    }

    #[test]
    fn other_content_is_wrong() {
        #[track_caller]
        fn check(body: &[u8]) {
            let mut ledger = Ledger::new(1, 1);
            ledger.arrived(body, &Body::new(0, 13), &mut Order::of(1, 1));
            assert_eq!(ledger.faults(&[0]).describe().as_deref(), Some("1 wrong"));
        }
        check(b"");
        check(&[0; 13]);
        check(&[0; 12]);
    }
}

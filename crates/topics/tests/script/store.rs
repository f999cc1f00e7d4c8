//! A store in memory: of all records about one subject it keeps the last.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_topics::{Position, Record, SessionNumber, Subject};

#[derive(Default)]
pub(crate) struct Store {
    committed: BTreeMap<Subject, Vec<u8>>,
    uncommitted: Vec<(Position, Vec<Record>)>,
}

impl Store {
    /// Takes the records of one input.
    pub(crate) fn take(&mut self, position: Position, records: Vec<Record>) {
        self.uncommitted.push((position, records));
    }

    /// Commits the records of up to so many inputs; the position of the last one.
    pub(crate) fn commit(&mut self, inputs_max: usize) -> Option<Position> {
        let inputs = self.uncommitted.len().min(inputs_max);
        let mut last = None;
        for (position, records) in self.uncommitted.drain(..inputs) {
            records
                .into_iter()
                .for_each(|record| write(&mut self.committed, &record));
            last = Some(position);
        }
        last
    }

    /// The position of the last of so many inputs that are not committed.
    #[allow(dead_code, reason = "not every test fails commits in this way")]
    pub(crate) fn uncommitted(&self, inputs_max: usize) -> Option<Position> {
        let last = self.uncommitted.iter().take(inputs_max).next_back();
        last.map(|(position, _)| *position)
    }

    pub(crate) fn lose_uncommitted(&mut self) {
        self.uncommitted.clear();
    }

    /// The records that a restart finds, in an order that is not that of their making.
    pub(crate) fn records(&self) -> Vec<Record> {
        let octets = self.committed.values().rev();
        let decoded = octets.map(|octets| Record::decode(octets).expect("was written"));
        decoded.collect()
    }

    pub(crate) fn subjects(&self) -> BTreeSet<&Subject> {
        self.committed.keys().collect()
    }
}

fn write(committed: &mut BTreeMap<Subject, Vec<u8>>, record: &Record) {
    if let Record::SessionEnded { session } = record {
        committed.retain(|subject, _| subject.session() != Some(*session));
        return;
    }
    let subject = record.subject();
    if record.is_removal() {
        committed.remove(&subject);
        return;
    }
    let is_known = |session: SessionNumber| committed.contains_key(&Subject::Session(session));
    let is_session = matches!(subject, Subject::Session(_));
    let session = subject.session().filter(|_| !is_session);
    assert!(
        session.is_none_or(is_known),
        "{record:?} belongs to no session"
    );
    let mut octets = Vec::new();
    record.encode(&mut octets);
    committed.insert(subject, octets);
}

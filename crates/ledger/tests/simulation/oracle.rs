//! Knows everything, and holds the nodes and the log against what is promised.

use std::collections::BTreeMap;
use std::fmt;

use crosstie_ledger::{Ledger, News, Sequence};
use crosstie_queues::Record;

use crate::node::{DEEP, message};
use crate::server::{Entry, Server};
use crate::support::CONFIG;

pub(crate) struct Oracle {
    /// Reads every entry that was ever decided, purged or not.
    reference: Ledger,
    /// The number of new messages in the log, by epoch.
    written: BTreeMap<u64, u64>,
    /// The number of confirmed messages, by epoch.
    confirmed: BTreeMap<u64, u64>,
    /// Entries of former owners that readers pass over.
    pub(crate) late: u64,
    pub(crate) claims: u64,
    pub(crate) owners: u64,
    pub(crate) deposed: u64,
    pub(crate) handed: u64,
    pub(crate) refused: u64,
    pub(crate) reads: u64,
    pub(crate) purged: u64,
    /// Extents whose messages were read again, to be written again.
    pub(crate) fetched: u64,
    /// Queues whose messages only the log had, when a node began to own the vhost.
    pub(crate) deep: u64,
}

impl Default for Oracle {
    fn default() -> Self {
        Self {
            reference: Ledger::new(CONFIG),
            written: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            late: 0,
            claims: 0,
            owners: 0,
            deposed: 0,
            handed: 0,
            refused: 0,
            reads: 0,
            purged: 0,
            fetched: 0,
            deep: 0,
        }
    }
}

impl Oracle {
    pub(crate) fn confirm(&mut self, epoch: u64, number: u64) {
        let confirmed = self.confirmed.entry(epoch).or_default();
        assert!(*confirmed < number, "confirmed twice");
        *confirmed = number;
    }

    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        for (epoch, confirmed) in &other.confirmed {
            *self.confirmed.entry(*epoch).or_default() += confirmed;
        }
        self.late += other.late;
        self.claims += other.claims;
        self.owners += other.owners;
        self.deposed += other.deposed;
        self.handed += other.handed;
        self.refused += other.refused;
        self.reads += other.reads;
        self.purged += other.purged;
        self.fetched += other.fetched;
        self.deep += other.deep;
    }

    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed.values().sum()
    }

    /// A node owns the vhost from the end of its ledger on: it has what the log has.
    pub(crate) fn own(&mut self, servers: &[Server], ledger: &Ledger) {
        self.owners += 1;
        let claim = ledger.status().sequence.0;
        if self.reference.status().sequence.0 < claim {
            self.read(longest(servers).0, claim);
            let records = expanded(ledger, longest(servers).0, 1);
            same_records(
                &records,
                &self.reference,
                "an owner begins with other records",
            );
        }
    }

    /// What a ledger has, with the messages that it leaves to the log. The next owner may have purged some of them.
    pub(crate) fn records(&mut self, servers: &[Server], ledger: &Ledger) -> Vec<Record> {
        self.deep += u64::from(ledger.is_deep());
        expanded(ledger, longest(servers).0, 1)
    }

    /// Holds the log, as soon as it is purged, against the whole of it: should all nodes fail now, the next owner reads
    /// nothing else.
    pub(crate) fn watch(&mut self, servers: &[Server]) {
        let firsts = servers.iter().map(|server| server.decided().1);
        let purged = firsts.max().unwrap_or(1) - 1;
        if purged > self.purged {
            self.purged = purged;
            let (log, first) = longest(servers);
            let length = log.len() as u64;
            if first - 1 == purged && self.reference.status().sequence.0 <= length {
                self.read(log, length);
                self.compare_purged(log, first);
            }
        }
    }

    /// Holds the whole log against what was confirmed, and what is left of it after purges against the whole.
    pub(crate) fn finish(&mut self, servers: &[Server]) {
        let (log, first) = longest(servers);
        self.read(log, log.len() as u64);
        for (epoch, confirmed) in &self.confirmed {
            let written = self.written.get(epoch).copied().unwrap_or_default();
            assert!(
                written >= *confirmed,
                "epoch {epoch}: {confirmed} confirmed, {written} in the log"
            );
        }
        self.compare_purged(log, first);
    }

    fn compare_purged(&self, log: &[Entry], first: u64) {
        let mut fresh = Ledger::new(DEEP);
        for (sequence, entry) in (1..).zip(log).skip(first as usize - 1) {
            if let Err(broken) = fresh.handle_entry(Sequence(sequence), entry) {
                panic!("the purged log is broken at entry {sequence}: {broken}");
            }
        }
        let records = expanded(&fresh, log, first);
        same_records(&records, &self.reference, "a purge has lost records");
    }

    /// Each message once, in the order of its owner, without a gap, and written by the owner of its epoch.
    fn read(&mut self, log: &[Entry], until: u64) {
        let from = self.reference.status().sequence.0;
        for (sequence, entry) in (1..=until).zip(log).skip(from as usize) {
            let news = match self.reference.handle_entry(Sequence(sequence), entry) {
                Ok(news) => news,
                Err(broken) => panic!("the log is broken at entry {sequence}: {broken}"),
            };
            let epoch = self.reference.status().epoch;
            if epoch_of(entry) < epoch {
                self.late += 1;
                assert_eq!(
                    news,
                    News::Nothing,
                    "entry {sequence} of a former owner counts"
                );
            }
            let News::Records(records) = news else {
                continue;
            };
            let written = self.written.entry(epoch).or_default();
            for record in records {
                if let Record::Enqueued { place, .. } = record {
                    *written += 1;
                    assert_eq!(place, message(epoch, *written), "entry {sequence}");
                }
            }
        }
    }
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            late,
            claims,
            owners,
            deposed,
            handed,
            refused,
            reads,
            purged,
            fetched,
            deep,
            ..
        } = self;
        write!(
            f,
            "{} confirmed, {owners} owners of {claims} claims, {deposed} deposed, {handed} handed over, \
             {late} late entries, {refused} refused, {reads} reads of the end, {purged} purged, \
             {fetched} extents read again, {deep} deep queues",
            self.confirmed()
        )
    }
}

/// The log of the server that has decided most of it; the others have the same as far as they have.
fn longest(servers: &[Server]) -> (&[Entry], u64) {
    let logs = servers.iter().map(Server::decided);
    let longest = logs.max_by_key(|(log, _)| log.len()).unwrap_or_default();
    for (log, _) in servers.iter().map(Server::decided) {
        assert!(
            longest.0.starts_with(log),
            "two servers have decided differently"
        );
    }
    longest
}

/// The epoch in an entry's head.
fn epoch_of(entry: &[u8]) -> u64 {
    let mut epoch = [0; 8];
    epoch.copy_from_slice(&entry[12..20]);
    u64::from_be_bytes(epoch)
}

/// The records of a ledger, with the messages that only the log has.
fn expanded(ledger: &Ledger, log: &[Entry], first: u64) -> Vec<Record> {
    let mut records = Vec::new();
    for record in ledger.records() {
        let Record::Kept(kept) = record else {
            records.push(record);
            continue;
        };
        let (mut from, mut count) = (kept.from, 0);
        while from <= kept.to {
            let mut excerpt = ledger.excerpt(kept.queue, (from, kept.to), 200);
            while let Some((Sequence(next), Sequence(last))) = excerpt.next_read() {
                assert!(
                    last >= first,
                    "entry {last} is purged and has a live message"
                );
                // The nodes see different extents, and an owner purges its own.
                let next = next.max(first);
                let entry = &log[next as usize - 1];
                if let Err(broken) = excerpt.take(Sequence(next), entry) {
                    panic!("entry {next}: {broken}");
                }
            }
            let (messages, upto) = match excerpt.finish().remove(0) {
                Ok(read) => read,
                Err(broken) => panic!("messages from {from} on: {broken}"),
            };
            count += messages.len();
            from = upto + 1;
            records.extend(
                messages
                    .into_iter()
                    .map(|(place, message)| Record::Enqueued {
                        queue: kept.queue,
                        place,
                        message,
                    }),
            );
        }
        assert_eq!(count, kept.messages);
    }
    records
}

fn same_records(records: &[Record], reference: &Ledger, what: &str) {
    let expected: Vec<_> = reference.records().collect();
    if *records != expected {
        let lost = expected.iter().filter(|record| !records.contains(record));
        let more = records.iter().filter(|record| !expected.contains(record));
        panic!("{what}: {} lost, {} more", lost.count(), more.count());
    }
}

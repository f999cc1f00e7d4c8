//! Event history: recorded publications to configured topics, for later queries (WAMP advanced profile, "Event
//! History"; Crossbar.io's `event-history`).
//!
//! A log has the last events of a topic or pattern, with or without subscribers. Each log has its own bound. All logs
//! together have one in bytes, at which the oldest event of all is evicted. This module does not know of sessions: its
//! caller checks who may see which event.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use crate::recorded::Recorded;

/// A topic's or pattern's place among the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogIndex(u32);

impl LogIndex {
    /// Its index among the realm's recordings.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

/// All logs of a realm.
#[derive(Debug, Default)]
pub(crate) struct History {
    logs: Vec<Log>,
    /// The logs of all events by number, the oldest first.
    by_age: BTreeMap<u64, LogIndex>,
    number_last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Log {
    events_max: usize,
    /// Maximum age; older events count as absent. 0 means no bound.
    age_us_max: u64,
    /// The oldest first.
    events: VecDeque<(u64, Recorded)>,
}

impl History {
    /// Begins a log.
    pub(crate) fn add(&mut self, events_max: usize, age_ms_max: u64) -> LogIndex {
        self.logs.push(Log {
            events_max,
            age_us_max: age_ms_max.saturating_mul(1_000),
            events: VecDeque::new(),
        });
        LogIndex(self.logs.len() as u32 - 1)
    }

    /// Records an event; returns how many others were evicted for it.
    pub(crate) fn push(&mut self, log: LogIndex, event: Recorded, bytes_max: usize) -> usize {
        self.forget_old(log, event.unix_us);
        self.number_last += 1;
        self.bytes += event.bytes();
        self.by_age.insert(self.number_last, log);
        let Log {
            events, events_max, ..
        } = &mut self.logs[log.0 as usize];
        events.push_back((self.number_last, event));
        if events.len() > *events_max {
            self.forget_first(log);
        }
        let mut evicted = 0;
        while self.bytes > bytes_max {
            let Some(oldest) = self.by_age.first_key_value().map(|(_, log)| *log) else {
                break;
            };
            self.forget_first(oldest);
            evicted += 1;
        }
        evicted
    }

    /// The events of a log within the maximum age, the oldest first.
    pub(crate) fn events(
        &mut self,
        log: LogIndex,
        unix_us: u64,
    ) -> impl DoubleEndedIterator<Item = &Recorded> + ExactSizeIterator {
        self.forget_old(log, unix_us);
        let events = self.logs[log.0 as usize].events.iter();
        events.map(|(_, event)| event)
    }

    /// The events of a log at these places.
    pub(crate) fn part(
        &self,
        log: LogIndex,
        places: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = &Recorded> + ExactSizeIterator {
        let events = self.logs[log.0 as usize].events.range(places);
        events.map(|(_, event)| event)
    }

    /// Maximum age of its events, in microseconds; 0 means any age.
    pub(crate) fn age_us_max(&self, log: LogIndex) -> u64 {
        self.logs[log.0 as usize].age_us_max
    }

    /// Number of logs.
    pub(crate) fn logs(&self) -> usize {
        self.logs.len()
    }

    /// Number of events in all logs.
    pub(crate) fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Their weight against the bound.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn forget_old(&mut self, log: LogIndex, unix_us: u64) {
        let Log {
            events, age_us_max, ..
        } = &self.logs[log.0 as usize];
        if *age_us_max == 0 {
            return;
        }
        let is_old =
            |(_, event): &(u64, Recorded)| unix_us.saturating_sub(event.unix_us) > *age_us_max;
        let old = events.partition_point(is_old);
        for _ in 0..old {
            self.forget_first(log);
        }
    }

    fn forget_first(&mut self, log: LogIndex) {
        if let Some((number, event)) = self.logs[log.0 as usize].events.pop_front() {
            self.by_age.remove(&number);
            self.bytes -= event.bytes();
        }
    }

    /// Asserts that the tables agree. Walks everything.
    pub(crate) fn check_invariants(&self) {
        let events = || self.logs.iter().flat_map(|log| &log.events);
        assert_eq!(events().count(), self.by_age.len());
        assert_eq!(
            events().map(|(_, event)| event.bytes()).sum::<usize>(),
            self.bytes
        );
        for (index, log) in self.logs.iter().enumerate() {
            assert!(log.events.len() <= log.events_max);
            for (number, _) in &log.events {
                assert_eq!(self.by_age.get(number), Some(&LogIndex(index as u32)));
            }
        }
    }
}

//! A node's subscriptions: subjects, each for any number of the realm's patterns.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use crosstie_routing::{Position, Time};

use crate::engine::Engine;

/// Time for which an unused subject stays subscribed, so that a renewed subscription finds it.
const LINGERING_MS: u64 = 2_000;

/// Maximum number of subjects sent to a new connection under one lock.
const SAID_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Interests {
    by_subject: BTreeMap<String, Interest>,
    /// Subjects without patterns, and when they end. They may get patterns again.
    lingering: VecDeque<(Time, String)>,
    sid_last: u64,
    /// The subject up to which a new connection knows all; `None` once it knows all.
    said: Option<String>,
}

#[derive(Debug)]
struct Interest {
    sid: u64,
    patterns: u32,
    position: Position,
    is_said: bool,
    /// The engine denies the subscription.
    is_denied: bool,
}

impl Interests {
    /// Its subscriptions have numbers above `sid_last`.
    pub(crate) fn new(sid_last: u64) -> Self {
        Self {
            by_subject: BTreeMap::new(),
            lingering: VecDeque::new(),
            sid_last,
            said: None,
        }
    }

    /// Adds a pattern to a subject. Returns whether the subject is new; it is in force from `position` on.
    pub(crate) fn begin(
        &mut self,
        subject: String,
        position: Position,
        engine: Option<&mut dyn Engine>,
    ) -> Position {
        let mut patterns = 1;
        if let Some(known) = self.by_subject.get_mut(&subject) {
            known.patterns += 1;
            patterns = known.patterns;
            if !known.is_denied {
                return known.position;
            }
        }
        self.sid_last += 1;
        let is_said = engine.is_some();
        if let Some(engine) = engine {
            engine.subscribe(self.sid_last, &subject);
        }
        let interest = Interest {
            sid: self.sid_last,
            patterns,
            position,
            is_said,
            is_denied: false,
        };
        self.by_subject.insert(subject, interest);
        position
    }

    /// Removes a pattern from a subject.
    pub(crate) fn end(&mut self, now: Time, subject: &str) {
        let Some(interest) = self.by_subject.get_mut(subject) else {
            return;
        };
        interest.patterns = interest.patterns.saturating_sub(1);
        if interest.patterns == 0 {
            let end = now.after_ms(LINGERING_MS);
            self.lingering.push_back((end, subject.to_owned()));
        }
    }

    /// Whether the subject is subscribed. A denied one is requested again.
    pub(crate) fn has(&self, subject: &str) -> bool {
        let known = self.by_subject.get(subject);
        known.is_some_and(|known| !known.is_denied)
    }

    /// Notes a denial. Returns whether the subject was subscribed.
    pub(crate) fn deny(&mut self, subject: &str) -> bool {
        let known = self.by_subject.get_mut(subject);
        known.is_some_and(|known| {
            known.is_denied = true;
            true
        })
    }

    pub(crate) fn is_denied(&self, subject: &str) -> bool {
        let known = self.by_subject.get(subject);
        known.is_some_and(|known| known.is_denied)
    }

    /// Number of used subjects that are denied.
    pub(crate) fn denied(&self) -> usize {
        let all = self.by_subject.values();
        all.filter(|known| known.is_denied && known.patterns > 0)
            .count()
    }

    /// Starts over for a new connection.
    pub(crate) fn forget_said(&mut self) {
        for interest in self.by_subject.values_mut() {
            interest.is_said = false;
            // The next server may permit it.
            interest.is_denied = false;
        }
        self.said = Some(String::new());
    }

    /// Sends some subscriptions to a new connection. Returns whether these were the last.
    pub(crate) fn say_some(&mut self, engine: &mut dyn Engine) -> bool {
        let Some(said) = self.said.take() else {
            return true;
        };
        let from = (Bound::Excluded(said.as_str()), Bound::Unbounded);
        let (mut last, mut count) = (None, 0);
        for (subject, interest) in self.by_subject.range_mut::<str, _>(from).take(SAID_MAX) {
            if !interest.is_said {
                interest.is_said = true;
                engine.subscribe(interest.sid, subject);
            }
            last = Some(subject);
            count += 1;
        }
        self.said = last.filter(|_| count == SAID_MAX).cloned();
        self.said.is_none()
    }

    /// Ends unused subscriptions after their time.
    pub(crate) fn handle_tick(&mut self, now: Time, mut engine: Option<&mut dyn Engine>) {
        while self.lingering.front().is_some_and(|(end, _)| *end <= now) {
            let Some((_, subject)) = self.lingering.pop_front() else {
                return;
            };
            let is_over = |interest: &Interest| interest.patterns == 0;
            if !self.by_subject.get(&subject).is_some_and(is_over) {
                continue;
            }
            if let Some(interest) = self.by_subject.remove(&subject)
                && interest.is_said
                && let Some(engine) = &mut engine
            {
                engine.unsubscribe(interest.sid);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_subject.len()
    }
}

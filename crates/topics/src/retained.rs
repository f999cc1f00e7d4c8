//! Retained messages in the order of their topics, level by level.
//!
//! A scan for a filter seeks from one topic that may match to the next. It remembers a topic, so that it can pause
//! whatever is added or removed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::subscribers::PackedOptions;
use crate::{Message, Time};

#[derive(Debug)]
pub(crate) struct Retained {
    /// By topic. U+0000 separates the levels, as no topic contains it and it precedes all other characters.
    topics: BTreeMap<Arc<str>, Kept>,
    bytes: usize,
    /// Those that expire. A replaced or removed message leaves none behind.
    timers: BTreeSet<(Time, Arc<str>)>,
}

#[derive(Debug)]
struct Kept {
    message: Arc<Message>,
    /// Its number among the publications to subscriptions; 0 if it was not published to them.
    published: u64,
}

/// The retained messages of one subscription that are still to be sent.
#[derive(Debug)]
pub(crate) struct Scan {
    /// With U+0000 between levels.
    filter: Box<str>,
    pub(crate) identifier: u32,
    pub(crate) options: PackedOptions,
    /// Publications with greater numbers were sent to the subscription itself.
    published_max: u64,
    /// The place at which it continues.
    place: String,
    is_behind: bool,
}

/// One step of a scan.
#[derive(Debug)]
pub(crate) enum Step {
    Found(Arc<Message>),
    /// There was none at this place.
    Skipped,
    Done,
}

/// How a topic relates to a filter.
#[derive(Debug, PartialEq, Eq)]
enum Fit {
    Match,
    /// The next topic that may match is not before this one.
    Seek(String),
    /// No later topic matches.
    Over,
}

impl Retained {
    pub(crate) fn new() -> Self {
        Self {
            topics: BTreeMap::new(),
            bytes: 0,
            timers: BTreeSet::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, topic: &str) -> Option<&Arc<Message>> {
        Some(&self.topics.get(&*key(topic))?.message)
    }

    /// Sets a topic's message; returns the earlier one. `published` is its number among the publications to
    /// subscriptions, 0 for a message of elsewhere.
    pub(crate) fn insert(&mut self, message: Arc<Message>, published: u64) -> Option<Arc<Message>> {
        let key: Arc<str> = key(message.topic()).into();
        self.bytes += message.bytes();
        let expires_at = message.expires_at;
        let kept = Kept { message, published };
        let earlier = self.topics.insert(Arc::clone(&key), kept);
        let earlier = earlier.map(|earlier| earlier.message);
        if let Some(earlier) = &earlier {
            self.release(&key, earlier);
        }
        self.timers.extend(expires_at.map(|at| (at, key)));
        earlier
    }

    pub(crate) fn remove(&mut self, topic: &str) -> Option<Arc<Message>> {
        let (key, removed) = self.topics.remove_entry(&*key(topic))?;
        self.release(&key, &removed.message);
        Some(removed.message)
    }

    fn release(&mut self, key: &Arc<str>, message: &Message) {
        self.bytes -= message.bytes();
        if let Some(at) = message.expires_at {
            self.timers.remove(&(at, Arc::clone(key)));
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Removes a message that has expired; None if none has.
    pub(crate) fn take_expired(&mut self, now: Time) -> Option<Arc<Message>> {
        if self.next_timeout()? > now {
            return None;
        }
        let (_, key) = self.timers.pop_first()?;
        let removed = self.topics.remove(&key)?.message;
        self.bytes -= removed.bytes();
        Some(removed)
    }

    /// Messages behind a topic, in order.
    pub(crate) fn behind(&self, topic: Option<&str>) -> impl Iterator<Item = &Arc<Message>> {
        let key = topic.map(key);
        let from = key.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.topics.range::<str, _>((from, Bound::Unbounded));
        found.map(|(_, kept)| &kept.message)
    }

    /// Looks at the next topic of a scan.
    pub(crate) fn step(&self, scan: &mut Scan) -> Step {
        let place = scan.place.as_str();
        let from = match scan.is_behind {
            true => Bound::Excluded(place),
            false => Bound::Included(place),
        };
        let mut behind = self.topics.range::<str, _>((from, Bound::Unbounded));
        let Some((topic, kept)) = behind.next() else {
            return Step::Done;
        };
        match fit(&scan.filter, topic) {
            Fit::Match => {
                scan.place.clear();
                scan.place.push_str(topic);
                scan.is_behind = true;
                match kept.published <= scan.published_max {
                    true => Step::Found(Arc::clone(&kept.message)),
                    false => Step::Skipped,
                }
            }
            Fit::Seek(place) => {
                scan.place = place;
                scan.is_behind = false;
                Step::Skipped
            }
            Fit::Over => Step::Done,
        }
    }
}

impl Scan {
    /// The filter of the subscription.
    pub(crate) fn filter(&self) -> String {
        self.filter.replace('\0', "/")
    }

    /// Bytes of memory, however far it is.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.filter.len()
    }

    /// The next step finds the last message again.
    pub(crate) fn repeat(&mut self) {
        self.is_behind = false;
    }

    pub(crate) fn new(
        filter: &str,
        identifier: u32,
        options: PackedOptions,
        published_max: u64,
    ) -> Self {
        let wildcard = filter.find(['+', '#']).unwrap_or(filter.len());
        // Without the separator before the wildcard: `a/#` matches `a`.
        let literal = filter.get(..wildcard).unwrap_or_default();
        let literal = literal.strip_suffix('/').unwrap_or(literal);
        let place = match wildcard == filter.len() {
            true => key(filter),
            false => key(literal),
        };
        Self {
            filter: key(filter),
            identifier,
            options,
            published_max,
            place: place.into(),
            is_behind: false,
        }
    }
}

fn key(topic: &str) -> Box<str> {
    topic.replace('/', "\0").into()
}

/// Compares a filter and a topic, both with U+0000 between levels.
fn fit(filter: &str, topic: &str) -> Fit {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        // `%` is the character behind `$`.
        return Fit::Seek("%".to_owned());
    }
    // The end of the last level that a `+` has matched: later topics may differ there.
    let mut free = None;
    let mut begin = 0;
    for wanted in filter.split('\0') {
        if wanted == "#" {
            return Fit::Match;
        }
        let Some(rest) = topic.get(begin..) else {
            let level = if wanted == "+" { "" } else { wanted };
            return Fit::Seek(format!("{topic}\0{level}"));
        };
        let level = rest.split('\0').next().unwrap_or_default();
        let end = begin + level.len();
        if wanted == "+" {
            free = Some(end);
        } else if wanted > level {
            let before = topic.get(..begin).unwrap_or_default();
            return Fit::Seek(format!("{before}{wanted}"));
        } else if wanted < level {
            return next_behind(topic, free);
        }
        begin = end + 1;
    }
    match begin > topic.len() {
        true => Fit::Match,
        false => next_behind(topic, free),
    }
}

/// The first topic behind all those that begin with these levels.
fn next_behind(topic: &str, levels_end: Option<usize>) -> Fit {
    match levels_end.and_then(|end| topic.get(..end)) {
        Some(levels) => Fit::Seek(format!("{levels}\u{1}")),
        None => Fit::Over,
    }
}

#[cfg(test)]
mod tests {
    use crosstie_collections::SplitMix;
    use crosstie_mqtt::{Properties, QoS, topic};

    use super::*;
    use crate::{Content, MessageNumber};

    fn message(topic: &str, expiry_s: Option<u32>) -> Arc<Message> {
        let content = Content {
            topic,
            qos: QoS::AtMostOnce,
            retain: true,
            expiry_s,
            properties: Properties::EMPTY,
            payload: b"x",
        };
        Arc::new(Message::new(&content, MessageNumber(1), Time(0)))
    }

    fn scan(retained: &Retained, filter: &str) -> (Vec<String>, usize) {
        let options = PackedOptions::from_octet(0).expect("is valid");
        let mut scan = Scan::new(filter, 0, options, 1);
        let (mut found, mut steps) = (Vec::new(), 0);
        loop {
            steps += 1;
            match retained.step(&mut scan) {
                Step::Found(message) => found.push(message.topic().to_owned()),
                Step::Skipped => {}
                Step::Done => return (found, steps),
            }
        }
    }

    fn text(random: &mut SplitMix, levels: &[&str]) -> String {
        let count = 1 + random.number() % 4;
        let one = |_| levels[random.number() as usize % levels.len()];
        (0..count).map(one).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn a_scan_finds_what_the_specification_matches() {
        let mut random = SplitMix(5);
        let levels = ["a", "b", "ab", "!", "", "$s", "a-"];
        for _ in 0..200 {
            let mut retained = Retained::new();
            let mut topics: Vec<String> = Vec::new();
            for _ in 0..30 {
                let topic = text(&mut random, &levels);
                if topic::check_name(&topic).is_ok()
                    && retained.insert(message(&topic, None), 0).is_none()
                {
                    topics.push(topic);
                }
            }
            for _ in 0..30 {
                let filter = text(&mut random, &["a", "b", "ab", "+", "+", "#", "", "$s"]);
                if topic::check_filter(&filter).is_err() {
                    continue;
                }
                let matching = topics.iter().filter(|topic| topic::matches(&filter, topic));
                let mut expected: Vec<_> = matching.cloned().collect();
                expected.sort();
                let (mut found, _) = scan(&retained, &filter);
                found.sort();
                assert_eq!(found, expected, "{filter} in {topics:?}");
            }
            let bytes = retained.bytes();
            assert!(bytes > 0);
            for topic in &topics {
                assert!(retained.get(topic).is_some());
                retained.remove(topic);
            }
            assert_eq!((retained.len(), retained.bytes()), (0, 0));
        }
    }

    #[test]
    fn a_scan_passes_over_what_cannot_match() {
        let mut retained = Retained::new();
        for outer in 0..10 {
            for inner in 0..100 {
                retained.insert(message(&format!("{outer}/{inner}/x"), None), 0);
            }
        }
        assert_eq!(scan(&retained, "5/50/x"), (vec!["5/50/x".to_owned()], 2));
        // A seek to each outer level, one to each found topic, and one behind it.
        let (found, steps) = scan(&retained, "+/50/x");
        assert_eq!(found.len(), 10);
        assert!(steps <= 41, "{steps}");
        assert_eq!(scan(&retained, "5/#").0.len(), 100);
        // The scans here began at the first publication.
        retained.insert(message("5/1/x", None), 2);
        retained.insert(message("5/2/x", None), 1);
        assert_eq!(scan(&retained, "5/#").0.len(), 99);
    }

    #[test]
    fn expired_messages_are_found_once() {
        let mut retained = Retained::new();
        retained.insert(message("a", Some(1)), 0);
        retained.insert(message("b", Some(1)), 0);
        retained.insert(message("b", Some(3)), 0);
        assert_eq!(retained.next_timeout(), Some(Time(1000)));
        let mut expired = |now| {
            let taken = std::iter::from_fn(|| retained.take_expired(now));
            taken
                .map(|message| message.topic().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(expired(Time(999)), [""; 0]);
        assert_eq!(expired(Time(2000)), ["a"]);
        assert_eq!(expired(Time(3000)), ["b"]);
        assert_eq!((retained.len(), retained.bytes()), (0, 0));
    }

    #[test]
    fn each_of_many_messages_expires() {
        let mut retained = Retained::new();
        for number in 0..5_000 {
            retained.insert(message(&number.to_string(), Some(60)), 0);
            retained.insert(message("a", Some(number)), 0);
        }
        assert_eq!(retained.timers.len(), retained.len());
        while retained.take_expired(Time(60_000_000)).is_some() {}
        assert_eq!((retained.len(), retained.next_timeout()), (0, None));
    }
}

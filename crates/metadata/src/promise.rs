//! Changes of a log that the store promises. A change of several stores and logs counts once the store of the node has it;
//! the logs follow, also if the node is killed in between.
//!
//! ```text
//! change: the store has [what it changes, Promise…] ─▶ each log has its part ─▶ the store forgets that log's promises
//!                                                          │
//!                          the node is killed before that ─┴─▶ its next term of the vhost: Promise::judge
//! ```
//!
//! A promise is about one entry. Meanwhile other nodes may have owned the vhost, and their operators relied on what its log
//! has. So the place of the log is known at which the promise was made, and the log knows which epoch has set an entry.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::key::{Key, Stored};
use crate::metadata::Metadata;

/// A place in a log: the entry at which a node begins to own a vhost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// The log's name.
    pub log: u64,
    pub epoch: u64,
    pub sequence: u64,
}

/// The next value of an entry of a log, unless another node has changed the entry meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    key: Key,
    from: Option<Json>,
    to: Option<Json>,
    /// The beginning of the term in which this was promised.
    place: LogPlace,
    /// The entry goes with its user.
    ends_user: bool,
}

/// The outcome for a promise when a term begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The log is to have this record.
    Due(Stored),
    /// The log has it, or another node has changed the entry meanwhile.
    Over,
    /// The entry is the one that was to go with its user. The user was created again, and another node has owned the vhost
    /// since: its operators may rely on the entry.
    OfNewUser,
}

impl Promise {
    /// The promises of a change of a log, whose term began at that place: of all its records, or of those alone that change
    /// an `earlier` promise. `before` and `next` are the states before the change and after it.
    pub fn of<'r>(
        (before, next): (&Metadata, &Metadata),
        place: LogPlace,
        earlier: &BTreeMap<Key, Self>,
        records: impl Iterator<Item = &'r Stored>,
        is_whole: bool,
    ) -> Vec<Self> {
        let present = || before.stored().into_iter();
        let mut present: BTreeMap<Key, Json> = match is_whole {
            true => present().collect(),
            false => BTreeMap::new(),
        };
        let promised = records.filter_map(|record| {
            let key = Key::parse(&record.key)?;
            let to = record.value.as_deref().and_then(parse);
            let from = match earlier.get(&key) {
                // The log may have neither of the two changes.
                Some(earlier) => earlier.from.clone(),
                None if is_whole => present.remove(&key),
                None => return None,
            };
            let is_gone = |user: &str| before.user(user).is_some() && next.user(user).is_none();
            Some(Self {
                ends_user: key.user().is_some_and(|user| is_gone(user)),
                key,
                from,
                to,
                place,
            })
        });
        promised.collect()
    }

    /// The key under which the store keeps this.
    pub fn owed_key(&self) -> Key {
        Key::Promise(Box::new(self.key.clone()))
    }

    /// The entry of the log.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The record for the store.
    pub fn stored(&self) -> Stored {
        let Self { from, to, .. } = self;
        let LogPlace {
            log,
            epoch,
            sequence,
        } = self.place;
        // A value may be null, which says that a default is deleted.
        let values = json!({
            "from": Vec::from_iter(from),
            "to": Vec::from_iter(to),
            "log": log,
            "epoch": epoch,
            "sequence": sequence,
            "ends_user": self.ends_user,
        });
        self.owed_key().stored(Some(&values))
    }

    /// Reads a record of the store; `None` if it is another one.
    pub fn parse(key: &str, value: &str) -> Option<Self> {
        let Key::Promise(key) = Key::parse(key)? else {
            return None;
        };
        let mut values = parse(value)?;
        let mut value = |name: &str| {
            let values = values.get_mut(name)?.as_array_mut()?;
            Some(values.pop())
        };
        let (from, to) = (value("from")?, value("to")?);
        let number = |name: &str| values.get(name)?.as_u64();
        Some(Self {
            key: *key,
            from,
            to,
            place: LogPlace {
                log: number("log")?,
                epoch: number("epoch")?,
                sequence: number("sequence")?,
            },
            ends_user: values.get("ends_user")?.as_bool()?,
        })
    }

    /// Judges the promise as a term begins at that place. `present` is the value that the log has, and the epoch that has set
    /// it. `has_user`: the node has the user whose entry this is.
    pub fn judge(&self, term: LogPlace, present: Option<(&str, u64)>, has_user: bool) -> Verdict {
        let value = present.and_then(|(value, _)| parse(value));
        let is_of_log = term.log == self.place.log && term.sequence > self.place.sequence;
        let is_changed = present.is_some_and(|(_, epoch)| epoch > self.place.epoch);
        if !is_of_log || is_changed || value != self.from {
            return Verdict::Over;
        }
        let has_other_owner = term.epoch > self.place.epoch.saturating_add(1);
        if self.ends_user && has_user && has_other_owner {
            return Verdict::OfNewUser;
        }
        Verdict::Due(self.key.stored(self.to.as_ref()))
    }
}

fn parse(text: &str) -> Option<Json> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Entry, Layers};

    const PLACE: LogPlace = LogPlace {
        log: u64::MAX,
        epoch: 3,
        sequence: 70,
    };
    const NEXT: LogPlace = LogPlace {
        epoch: 4,
        sequence: 90,
        ..PLACE
    };

    fn record(value: Option<&Json>) -> Stored {
        Key::VhostLimits("far".into()).stored(value)
    }

    fn promised(earlier: &[Promise], value: Option<&Json>, is_whole: bool) -> Vec<Promise> {
        let mut before = Metadata::new(Layers::default());
        let key = r#"["vhost-limits","far"]"#;
        let restored = before.restore(key, r#"{"max-queues":1}"#);
        assert_eq!(restored, Ok(None));
        let records = [record(value)];
        let earlier = earlier.iter().map(|one| (one.key.clone(), one.clone()));
        let states = (&before, &before);
        Promise::of(states, PLACE, &earlier.collect(), records.iter(), is_whole)
    }

    #[test]
    fn a_promise_is_kept_unless_another_node_has_changed_the_entry() {
        let (one, two) = (json!({"max-queues": 1}), json!({"max-queues": 2}));
        let (same, changed) = (one.to_string(), json!({}).to_string());
        for to in [None, Some(&two), Some(&Json::Null)] {
            let [promise] = &promised(&[], to, true)[..] else {
                panic!("expected one");
            };
            let Stored { key, value } = promise.stored();
            let read = Promise::parse(&key, &value.expect("a value"));
            assert_eq!(read.as_ref(), Some(promise));
            let due = Verdict::Due(record(to));
            let later = LogPlace { epoch: 9, ..NEXT };
            let other = LogPlace { log: 5, ..NEXT };
            let shorter = LogPlace {
                sequence: 70,
                ..NEXT
            };
            // The term, the value and its epoch, and the verdict.
            let rows = [
                (NEXT, Some((&*same, 3)), &due),
                (NEXT, Some((&same, 1)), &due),
                (later, Some((&same, 3)), &due),
                // Set to the same value again.
                (later, Some((&same, 4)), &Verdict::Over),
                (NEXT, Some((&changed, 3)), &Verdict::Over),
                (NEXT, None, &Verdict::Over),
                (other, Some((&same, 3)), &Verdict::Over),
                (shorter, Some((&same, 3)), &Verdict::Over),
            ];
            for (term, present, verdict) in rows {
                for has_user in [false, true] {
                    let judged = promise.judge(term, present, has_user);
                    assert_eq!(judged, *verdict, "{term:?} {present:?}");
                }
            }
        }
        assert_eq!(Promise::parse(r#"["vhost-limits","far"]"#, "{}"), None);
        assert_eq!(Promise::parse(r#"["promise","[]"]"#, "{}"), None);
    }

    #[test]
    fn a_later_change_of_a_promised_entry_is_promised_too() {
        let (one, two) = (json!({"max-queues": 1}), json!({"max-queues": 2}));
        assert_eq!(promised(&[], Some(&two), false), []);
        let first = promised(&[], None, true);
        let [later] = &promised(&first, Some(&two), false)[..] else {
            panic!("expected one");
        };
        assert_eq!(later.owed_key(), first[0].owed_key());
        let judged = later.judge(NEXT, Some((&one.to_string(), 2)), false);
        assert_eq!(judged, Verdict::Due(record(Some(&two))));
    }

    #[test]
    fn a_user_that_is_created_again_keeps_what_another_owner_has() {
        let user = r#"{"password_hash":null,"tags":[],"loopback_only":false}"#;
        let key = Key::Permission("/".into(), "al".into());
        let value = json!({"configure": "", "write": "", "read": ".*"});
        let mut before = Metadata::new(Layers::default());
        assert_eq!(before.restore(r#"["user","al"]"#, user), Ok(None));
        let change = Change::Delete(Entry::User("al".into()));
        let applied = before.apply(change, &mut || [0; 4]);
        let (next, _) = applied.expect("the user is there");
        let earlier = BTreeMap::new();
        let records = [key.stored(None)];
        let promises = |states| Promise::of(states, PLACE, &earlier, records.iter(), true);
        // Its permission is withdrawn, or the user is deleted.
        for (next, ends_user) in [(&before, false), (&next, true)] {
            let mut promise = promises((&before, next)).remove(0);
            promise.from = Some(value.clone());
            let text = value.to_string();
            let judge = |epoch, has_user| {
                let term = LogPlace { epoch, ..NEXT };
                promise.judge(term, Some((&text, 3)), has_user)
            };
            let due = Verdict::Due(key.stored(None));
            assert_eq!(judge(4, false), due);
            assert_eq!(judge(5, false), due);
            // No other node has owned the vhost: nobody can have given the new user anything.
            assert_eq!(judge(4, true), due);
            let expected = if ends_user { Verdict::OfNewUser } else { due };
            assert_eq!(judge(5, true), expected);
        }
    }
}

//! The places of a space's records in its store.
//!
//! A session is a group, named by its client identifier; the bodies of messages and the retained messages are two more. Entries
//! of queues have places that follow from theirs. All other records have the next negative place, since a place never has a
//! second record, and are found by their subject.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crosstie_mqtt::PacketId;
use crosstie_store::Change;
use crosstie_topics::{MessageNumber, Record, SessionNumber};

/// A record, and the owner of its session if it is one of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    /// Empty for other records.
    pub(crate) owner: String,
    pub(crate) record: Record,
}

#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The last place that follows from no number: they are negative.
    made: i64,
    groups: BTreeSet<u64>,
    bodies: HashMap<MessageNumber, i64>,
    retained: HashMap<Arc<str>, i64>,
    sessions: HashMap<SessionNumber, OfSession>,
    bytes: usize,
}

/// The places of a session's records.
#[derive(Debug, Default)]
struct OfSession {
    session: Option<i64>,
    will: Option<i64>,
    subscriptions: HashMap<Arc<str>, i64>,
    received: BTreeMap<PacketId, i64>,
    /// Entries with a second record.
    forwarded: BTreeSet<u64>,
}

/// Groups that are no sessions.
const BODIES: u64 = u64::MAX;
const RETAINED: u64 = u64::MAX - 1;

/// Approximate bytes of a place beside its text, and of a session.
const PLACE_BYTES: usize = 56;
const SESSION_BYTES: usize = 200;

/// The first octet: a record alone, or with an owner and his length before it.
const ALONE: u8 = 0;
const WITH_OWNER: u8 = 1;

impl Owned {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.owner.len() {
            0 => out.push(ALONE),
            length => {
                out.push(WITH_OWNER);
                out.extend_from_slice(&(length as u32).to_le_bytes());
                out.extend_from_slice(self.owner.as_bytes());
            }
        }
        self.record.encode(&mut out);
        out
    }

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let (first, rest) = octets.split_first()?;
        let (owner, rest) = match *first {
            ALONE => ("", rest),
            WITH_OWNER => {
                let (length, rest) = rest.split_first_chunk()?;
                let length = u32::from_le_bytes(*length) as usize;
                let (owner, rest) = rest.split_at_checked(length)?;
                (std::str::from_utf8(owner).ok()?, rest)
            }
            _ => return None,
        };
        Some(Self {
            owner: owner.to_owned(),
            record: Record::decode(rest).ok()?,
        })
    }
}

impl Places {
    /// Those of a store with these groups. Places of earlier runs are not used again: a run has fewer than 65,536 of them in
    /// a millisecond.
    pub(crate) fn new(groups: BTreeSet<u64>, now_ms: u64) -> Self {
        Self {
            made: -((now_ms << 16) as i64),
            groups,
            ..Self::default()
        }
    }

    /// Approximate bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a record that the store has.
    pub(crate) fn note(&mut self, record: &Record, place: i64) {
        if place < 0 {
            self.made = self.made.min(place);
            self.set(record, Some(place));
        } else if let Record::Queued {
            session,
            place,
            is_forwarded: true,
            ..
        } = record
        {
            self.of(*session).forwarded.insert(*place);
        }
    }

    /// Appends the changes that a record makes.
    pub(crate) fn change(&mut self, owned: Owned, out: &mut Vec<Change>) {
        let record = &owned.record;
        match record {
            Record::SessionEnded { session } => {
                self.forget(*session);
                self.groups.remove(&session.0);
                out.push(Change::Closed { group: session.0 });
            }
            Record::Departed { session, place } => {
                let group = session.0;
                let known = self.sessions.get_mut(session);
                let is_forwarded = known.is_some_and(|known| known.forwarded.remove(place));
                let places = [Some(false), is_forwarded.then_some(true)];
                out.extend(places.into_iter().flatten().map(|is_forwarded| {
                    let place = entry(*place, is_forwarded);
                    Change::Removed { group, place }
                }));
            }
            _ => {
                let group = group(record);
                if !record.is_removal() {
                    self.open(group, record, out);
                    let place = self.place(record);
                    let octets = owned.encode();
                    out.push(Change::Put {
                        group,
                        place,
                        octets,
                    });
                    if place >= 0 {
                        return;
                    }
                    if let Some(place) = self.set(record, Some(place)) {
                        out.push(Change::Removed { group, place });
                    }
                } else if let Some(place) = self.set(record, None) {
                    out.push(Change::Removed { group, place });
                }
            }
        }
    }

    /// Declares a group before its first record.
    fn open(&mut self, group: u64, record: &Record, out: &mut Vec<Change>) {
        if !self.groups.insert(group) {
            return;
        }
        let name = match record {
            Record::Session { client_id, .. } => Arc::clone(client_id),
            Record::Message { .. } => "messages".into(),
            _ => "retained messages".into(),
        };
        out.push(Change::Opened { group, name });
    }

    /// The place of a record that is stored.
    fn place(&mut self, record: &Record) -> i64 {
        match record {
            Record::Queued {
                session,
                place,
                is_forwarded,
                ..
            } => {
                if *is_forwarded {
                    self.of(*session).forwarded.insert(*place);
                }
                entry(*place, *is_forwarded)
            }
            _ => {
                self.made -= 1;
                self.made
            }
        }
    }

    /// Sets the place of a record's subject; returns the former one.
    fn set(&mut self, record: &Record, place: Option<i64>) -> Option<i64> {
        let (former, text_bytes) = match record {
            Record::Session { session, .. } => {
                let of = self.of(*session);
                (std::mem::replace(&mut of.session, place), 0)
            }
            Record::Will { session, .. } | Record::WillGone { session } => {
                let of = self.of(*session);
                (std::mem::replace(&mut of.will, place), 0)
            }
            Record::Subscribed {
                session, filter, ..
            }
            | Record::Unsubscribed { session, filter } => {
                let known = &mut self.of(*session).subscriptions;
                let former = match place {
                    Some(place) => known.insert(Arc::clone(filter), place),
                    None => known.remove(filter),
                };
                (former, filter.len())
            }
            Record::Received { session, packet_id } | Record::Released { session, packet_id } => {
                let known = &mut self.of(*session).received;
                let former = match place {
                    Some(place) => known.insert(*packet_id, place),
                    None => known.remove(packet_id),
                };
                (former, 0)
            }
            Record::Message { message, .. } | Record::MessageGone { message } => {
                let former = match place {
                    Some(place) => self.bodies.insert(*message, place),
                    None => self.bodies.remove(message),
                };
                (former, 0)
            }
            Record::Retained { content } => {
                let topic = content.topic();
                let place = place.unwrap_or_default();
                (self.retained.insert(topic.into(), place), topic.len())
            }
            Record::RetainedGone { topic } => (self.retained.remove(topic), topic.len()),
            _ => return None,
        };
        let bytes = PLACE_BYTES + text_bytes;
        match (former, place) {
            (None, Some(_)) => self.bytes += bytes,
            (Some(_), None) => self.bytes = self.bytes.saturating_sub(bytes),
            _ => {}
        }
        former
    }

    fn of(&mut self, session: SessionNumber) -> &mut OfSession {
        let bytes = &mut self.bytes;
        self.sessions.entry(session).or_insert_with(|| {
            *bytes += SESSION_BYTES;
            OfSession::default()
        })
    }

    fn forget(&mut self, session: SessionNumber) {
        let Some(of) = self.sessions.remove(&session) else {
            return;
        };
        let filters = of.subscriptions.keys().map(|filter| filter.len());
        let places = [of.session, of.will].into_iter().flatten().count();
        let places = places + of.subscriptions.len() + of.received.len();
        let bytes = SESSION_BYTES + filters.sum::<usize>() + places * PLACE_BYTES;
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The place of an entry's record: that of its message, or that of its PUBREC.
fn entry(place: u64, is_forwarded: bool) -> i64 {
    (place as i64) << 1 | i64::from(is_forwarded)
}

fn group(record: &Record) -> u64 {
    match record {
        Record::Message { .. } | Record::MessageGone { .. } => BODIES,
        Record::Retained { .. } | Record::RetainedGone { .. } => RETAINED,
        record => record.subject().session().map_or(0, |session| session.0),
    }
}

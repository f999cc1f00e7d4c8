//! The messages of QoS 1 and 2 that a session is sent, or waits for.
//!
//! An entry's packet identifier follows from its place: a repeated message has it again, after a restart too. Among the
//! entries of a session no two have the same.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use crosstie_mqtt::{PacketId, QoS};

use crate::{Message, Record, SessionNumber, Time};

/// The entries of a session in the order of their places: sent ones, then those that wait.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    entries: VecDeque<Entry>,
    /// Number of entries that were sent on the present connection, and are not acknowledged.
    sent: usize,
    /// Of the messages, whether others hold them or not, and of identifiers.
    bytes: usize,
    next_place: u64,
    /// A timer is set to drop expired messages.
    pub(crate) sweeps_at: Option<Time>,
}

/// One message of one session.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) message: Arc<Message>,
    pub(crate) place: u64,
    /// Position of its last record, 0 without one; [`UNRECORDED`] if that of the message, which comes later, counts.
    pub(crate) position: u64,
    pub(crate) identifiers: Identifiers,
    pub(crate) qos: QoS,
    pub(crate) stage: Stage,
    pub(crate) is_retained: bool,
    /// The group that has dealt it to the session.
    pub(crate) group: DealtBy,
    /// It may have been sent on an earlier connection.
    pub(crate) is_repeated: bool,
}

/// The index of the group of a shared subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DealtBy(pub(crate) u32);

impl DealtBy {
    pub(crate) const NONE: Self = Self(u32::MAX);
    /// A group, but it is not known which: after a restart.
    pub(crate) const SOME: Self = Self(u32::MAX - 1);
}

/// The position of an entry whose message is recorded when its publication is delivered to all.
pub(crate) const UNRECORDED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// To be sent, or waiting for PUBACK or PUBREC.
    Message,
    /// PUBREC has come: PUBREL is to be sent, or waits for PUBCOMP.
    Forwarded,
}

/// Subscription identifiers of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Identifiers {
    #[default]
    None,
    One([u32; 1]),
    Many(Arc<Vec<u32>>),
}

impl Identifiers {
    pub(crate) fn of(identifiers: &[u32]) -> Self {
        match identifiers {
            [] => Self::None,
            [one] => Self::One([*one]),
            many => Self::Many(Arc::new(many.to_vec())),
        }
    }

    pub(crate) fn as_slice(&self) -> &[u32] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }

    /// Bytes of memory beside the entry.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Many(many) => size_of_val(&many[..]) + MANY_BYTES,
            Self::None | Self::One(_) => 0,
        }
    }
}

/// Of a list of identifiers without them.
const MANY_BYTES: usize = 40;

/// None for the identifier 0.
pub(crate) fn identifiers(one: &[u32; 1]) -> &[u32] {
    match one {
        [0] => &[],
        one => one,
    }
}

impl Entry {
    /// 1 to 65,535, in the order of places.
    pub(crate) fn packet_id(&self) -> PacketId {
        PacketId::new(number(self.place)).unwrap_or(PacketId::FIRST)
    }

    /// Bytes that count towards the bound of a queue.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.message.bytes() + self.identifiers.bytes()
    }

    pub(crate) fn record(&self, session: SessionNumber) -> Record {
        Record::Queued {
            session,
            place: self.place,
            message: self.message.number,
            qos: self.qos,
            is_retained: self.is_retained,
            is_shared: self.group != DealtBy::NONE,
            is_forwarded: self.stage == Stage::Forwarded,
            identifiers: self.identifiers.as_slice().to_vec(),
        }
    }

    /// Position of the record that a commit has to reach.
    pub(crate) fn recorded(&self) -> u64 {
        match self.position {
            UNRECORDED => self.message.holders.recorded(),
            position => position,
        }
    }
}

/// Distance of two places with the same packet identifier.
const LAP: u64 = u16::MAX as u64;

fn number(place: u64) -> u16 {
    (place % LAP) as u16 + 1
}

impl Outgoing {
    /// An empty queue whose first place is that one or a later one.
    pub(crate) fn new(first_place: u64) -> Self {
        Self {
            next_place: first_place,
            ..Self::default()
        }
    }

    /// A place for an entry at the end.
    pub(crate) fn take_place(&mut self) -> u64 {
        loop {
            let place = self.next_place;
            self.next_place += 1;
            if !self.is_taken(place) {
                return place;
            }
        }
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes();
        self.next_place = self.next_place.max(entry.place + 1);
        self.entries.push_back(entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The oldest entry that is not sent.
    #[inline]
    pub(crate) fn next(&self) -> Option<&Entry> {
        self.entries.get(self.sent)
    }

    /// The index of the oldest entry that the client cannot know.
    pub(crate) fn first_unsent(&self) -> Option<usize> {
        let unsent = self.entries.iter().enumerate().skip(self.sent);
        let mut unsent = unsent.filter(|(_, entry)| !entry.is_repeated);
        unsent.next().map(|(at, _)| at)
    }

    /// The place behind the entries that the client may know; 0 without any.
    pub(crate) fn known_before(&self) -> u64 {
        let entries = self.entries.iter();
        let known = entries.take_while(|entry| entry.is_repeated);
        known.last().map_or(0, |last| last.place + 1)
    }

    /// Number of entries in front of a place.
    pub(crate) fn count_before(&self, place: u64) -> usize {
        self.entries.partition_point(|entry| entry.place < place)
    }

    /// The client may know the first entries.
    pub(crate) fn set_known(&mut self, count: usize) {
        let known = self.entries.iter_mut().take(count);
        known.for_each(|entry| entry.is_repeated = true);
    }

    /// Bytes of the messages in front of it.
    pub(crate) fn staying_bytes(&self) -> usize {
        let unsent = self.first_unsent().unwrap_or(self.entries.len());
        let staying = self.entries.iter().take(unsent);
        staying.map(|entry| entry.bytes()).sum()
    }

    /// The next entry has been sent.
    #[inline]
    pub(crate) fn note_sent(&mut self) {
        if let Some(entry) = self.entries.get_mut(self.sent) {
            entry.is_repeated = true;
            self.sent += 1;
        }
    }

    /// All entries are to be sent again, on a new connection.
    pub(crate) fn restart(&mut self) {
        self.sent = 0;
    }

    pub(crate) fn remove(&mut self, at: usize) -> Option<Entry> {
        let entry = self.entries.remove(at)?;
        self.sent -= usize::from(at < self.sent);
        self.bytes = self.bytes.saturating_sub(entry.bytes());
        if self.entries.is_empty() && self.entries.capacity() > ENTRIES_KEPT {
            self.entries = VecDeque::new();
        }
        Some(entry)
    }

    /// Removes the entries that have expired and that the client cannot know. Returns them, and when the next ones expire.
    pub(crate) fn take_expired(&mut self, now: Time) -> (VecDeque<Entry>, Option<Time>) {
        let expiry = |entry: &Entry| entry.message.expires_at.filter(|_| !entry.is_repeated);
        let is_expired = |entry: &Entry| expiry(entry).is_some_and(|at| at <= now);
        let mut expired = VecDeque::new();
        if self.entries.iter().any(is_expired) {
            let (gone, left) = mem::take(&mut self.entries)
                .into_iter()
                .partition(is_expired);
            (expired, self.entries) = (gone, left);
        }
        let bytes: usize = expired.iter().map(|entry| entry.bytes()).sum();
        self.bytes = self.bytes.saturating_sub(bytes);
        (expired, self.entries.iter().filter_map(expiry).min())
    }

    /// When the next entry expires that the client cannot know.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        let unknown = self.entries.iter().filter(|entry| !entry.is_repeated);
        unknown.filter_map(|entry| entry.message.expires_at).min()
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// The index of an entry that the client may know: it was sent on this connection, or may have been on an earlier one.
    pub(crate) fn find_sent(&self, id: PacketId) -> Option<usize> {
        let first = self.entries.front()?.place;
        let at = match self.is_within_lap(self.next_place) {
            true => {
                self.find(first + (u64::from(id.get()) + LAP - u64::from(number(first))) % LAP)?
            }
            false => self
                .entries
                .iter()
                .position(|entry| entry.packet_id() == id)?,
        };
        let is_known = self.entries.get(at)?.is_repeated;
        is_known.then_some(at)
    }

    pub(crate) fn find(&self, place: u64) -> Option<usize> {
        if self.entries.front()?.place == place {
            return Some(0);
        }
        self.entries
            .binary_search_by_key(&place, |entry| entry.place)
            .ok()
    }

    /// Whether another entry has the packet identifier of a place behind all of them.
    fn is_taken(&self, place: u64) -> bool {
        let mut ids = self.entries.iter().map(|entry| number(entry.place));
        !self.is_within_lap(place + 1) && ids.any(|id| id == number(place))
    }

    /// Whether all places from the first one up to here have different packet identifiers.
    fn is_within_lap(&self, end: u64) -> bool {
        let first = self.entries.front();
        first.is_none_or(|first| end - first.place <= LAP)
    }
}

/// An empty queue with more places frees them.
const ENTRIES_KEPT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, MessageNumber};

    fn entry(place: u64) -> Entry {
        let content = Content {
            topic: "a",
            qos: QoS::AtLeastOnce,
            retain: false,
            expiry_s: None,
            properties: crosstie_mqtt::Properties::EMPTY,
            payload: &[],
        };
        let message = Message::new(&content, MessageNumber(1), Time(0));
        Entry {
            message: Arc::new(message),
            place,
            position: 0,
            identifiers: Identifiers::None,
            qos: QoS::AtLeastOnce,
            stage: Stage::Message,
            is_retained: false,
            group: DealtBy::NONE,
            is_repeated: false,
        }
    }

    #[test]
    fn packet_identifiers_are_unique_while_one_is_never_acknowledged() {
        let mut outgoing = Outgoing::default();
        for _ in 0..2 * LAP + 10 {
            let place = outgoing.take_place();
            let new = entry(place);
            let id = new.packet_id();
            outgoing.push(new);
            outgoing.note_sent();
            // The first one stays. All others are acknowledged.
            if place > 0 {
                assert_ne!(id, PacketId::FIRST);
                let at = outgoing.find_sent(id).expect("is sent");
                assert_eq!(outgoing.remove(at).map(|entry| entry.place), Some(place));
            }
        }
        assert_eq!(outgoing.find_sent(PacketId::FIRST), Some(0));
        assert_eq!((outgoing.len(), outgoing.sent()), (1, 1));
    }

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Entry>() <= 48);
        assert!(size_of::<Outgoing>() <= 80);
    }
}

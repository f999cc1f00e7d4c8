//! A commit before it is written: its records as bytes, and the changes that they make.

use std::collections::{BTreeMap, HashSet};

use super::index::Left;
use super::places::PlaceSet;
use super::record::{ALIGNMENT, HEADER_BYTES, Header, Kind, QueueKey, Salt};
use super::state::{Size, State};

/// Records of one commit, for one place in a segment.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    segment: u32,
    /// The offset of the first record.
    base: u64,
    first_sequence: u64,
    salt: Salt,
    bytes: Vec<u8>,
    changes: Vec<Change>,
    records: u32,
    /// The last record's header.
    last: Option<(Header, usize)>,
    /// Acknowledgements that are not records yet, by queue and segment. A commit may have those of many pairs.
    gone: BTreeMap<(QueueKey, u32), PlaceSet>,
    /// The messages stored by this commit, once a removal asks for them.
    stored: Option<HashSet<(QueueKey, i64)>>,
}

/// The effect of a record.
#[derive(Debug)]
enum Change {
    Stored {
        queue: QueueKey,
        place: i64,
        offset: u32,
        size: Size,
        moved_from: u32,
    },
    Gone {
        queue: QueueKey,
        about: u32,
        places: PlaceSet,
    },
    Cleared {
        queue: QueueKey,
        places: (i64, i64),
    },
    Delivered {
        queue: QueueKey,
        about: u32,
        place: i64,
        deliveries: u32,
    },
    Remains {
        queue: QueueKey,
        about: u32,
        left: Left,
    },
}

impl Draft {
    /// Begins a commit at an offset of a segment, in a buffer that was used before.
    pub(crate) fn begin(
        (segment, base): (u32, u64),
        first_sequence: u64,
        salt: Salt,
        mut buffer: Vec<u8>,
    ) -> Self {
        buffer.clear();
        Self {
            segment,
            base,
            first_sequence,
            salt,
            bytes: buffer,
            ..Self::default()
        }
    }

    /// Adds something that stays, with the payload that `write` appends, which returns the bytes of a message's body;
    /// returns its offset in the segment.
    pub(crate) fn store(
        &mut self,
        queue: QueueKey,
        place: i64,
        moved_from: u32,
        write: impl FnOnce(&mut Vec<u8>) -> u64,
    ) -> u32 {
        // The same place in the same segment may be on its way out.
        let leaving = self.gone.get(&(queue, self.segment));
        if leaving
            .and_then(PlaceSet::last)
            .is_some_and(|last| place <= last)
        {
            self.flush();
        }
        let mut body = 0;
        let (offset, record) = self.record(Kind::Stored, queue, place, moved_from, |out| {
            body = write(out);
        });
        self.changes.push(Change::Stored {
            queue,
            place,
            offset,
            size: Size { record, body },
            moved_from,
        });
        if let Some(stored) = &mut self.stored {
            stored.insert((queue, place));
        }
        offset
    }

    /// Removes a message, wherever it is. Nothing happens if it is not there.
    pub(crate) fn remove(&mut self, state: &State, queue: QueueKey, place: i64) {
        let about = match state.locate(queue, place) {
            Some(about) => about,
            None if self.has_stored(queue, place) => self.segment,
            None => return,
        };
        self.gone.entry((queue, about)).or_default().insert(place);
    }

    /// Removes the messages of a queue so far, from the first place to the last.
    pub(crate) fn clear(&mut self, queue: QueueKey, places: (i64, i64)) {
        self.flush();
        let (from, to) = places;
        self.record(Kind::Cleared, queue, from, 0, |out| {
            out.extend_from_slice(&to.to_le_bytes());
        });
        self.changes.push(Change::Cleared { queue, places });
        if let Some(stored) = &mut self.stored {
            stored.retain(|(key, place)| *key != queue || !(from..=to).contains(place));
        }
    }

    /// Removes all messages of a queue so far.
    pub(crate) fn purge(&mut self, queue: QueueKey) {
        self.clear(queue, (i64::MIN, i64::MAX));
    }

    /// Notes a message's deliveries, if it is there.
    pub(crate) fn deliver(&mut self, state: &State, queue: QueueKey, place: i64, deliveries: u32) {
        let about = match state.locate(queue, place) {
            Some(about) => about,
            None if self.has_stored(queue, place) => self.segment,
            None => return,
        };
        let payload = deliveries.to_le_bytes();
        self.record(Kind::Delivered, queue, place, about, |out| {
            out.extend_from_slice(&payload);
        });
        self.changes.push(Change::Delivered {
            queue,
            about,
            place,
            deliveries,
        });
    }

    /// Notes what is left of a queue in another segment.
    pub(crate) fn remain(&mut self, queue: QueueKey, about: u32, left: Left) {
        self.record(Kind::Remains, queue, 0, about, |out| left.encode(out));
        self.changes.push(Change::Remains { queue, about, left });
    }

    /// Ends the commit; returns its bytes. Empty if there are no records.
    pub(crate) fn finish(&mut self) -> &[u8] {
        self.flush();
        if let Some((header, at)) = &mut self.last {
            header.is_last = true;
            self.bytes[*at..*at + HEADER_BYTES].copy_from_slice(&header.encode(self.salt));
        }
        &self.bytes
    }

    /// The sequence after the last record.
    pub(crate) fn end_sequence(&self) -> u64 {
        self.first_sequence + u64::from(self.records)
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Ends it without a commit; returns the buffer.
    pub(crate) fn abandon(self) -> Vec<u8> {
        self.bytes
    }

    /// Applies the changes, after the bytes were written; returns the buffer.
    pub(crate) fn apply(self, state: &mut State) -> Vec<u8> {
        let segment = self.segment;
        for change in self.changes {
            match change {
                Change::Stored {
                    queue,
                    place,
                    offset,
                    size,
                    moved_from,
                } => state.store(segment, (queue, place), (offset, size), moved_from),
                Change::Gone {
                    queue,
                    about,
                    places,
                } => {
                    for place in places.iter() {
                        state.lose(segment, queue, about, place);
                    }
                }
                Change::Cleared { queue, places } => state.clear(segment, queue, places),
                Change::Delivered {
                    queue,
                    about,
                    place,
                    deliveries,
                } => state.deliver(segment, queue, about, (place, deliveries)),
                Change::Remains { queue, about, left } => {
                    state.remain(segment, queue, about, left);
                }
            }
        }
        if let Some(found) = state.segments.get_mut(&segment) {
            found.data_bytes = self.base + self.bytes.len() as u64;
            found.end_sequence = self.first_sequence + u64::from(self.records);
        }
        self.bytes
    }

    /// The queues of a vhost that this commit stores something in.
    pub(crate) fn queues_of(&self, vhost: u16) -> impl Iterator<Item = QueueKey> {
        self.changes.iter().filter_map(move |change| match change {
            Change::Stored { queue, .. } if queue.vhost == vhost => Some(*queue),
            _ => None,
        })
    }

    fn has_stored(&mut self, queue: QueueKey, place: i64) -> bool {
        let changes = &self.changes;
        let stored = self.stored.get_or_insert_with(|| {
            let mut stored = HashSet::new();
            for change in changes {
                match change {
                    Change::Stored { queue, place, .. } => drop(stored.insert((*queue, *place))),
                    Change::Cleared {
                        queue,
                        places: (from, to),
                    } => {
                        stored.retain(|(key, place)| key != queue || !(*from..=*to).contains(place))
                    }
                    _ => {}
                }
            }
            stored
        });
        stored.contains(&(queue, place))
    }

    /// Writes the acknowledgements that wait: one record for each queue and segment.
    fn flush(&mut self) {
        for ((queue, about), places) in std::mem::take(&mut self.gone) {
            self.record(Kind::Gone, queue, 0, about, |out| places.encode(out));
            self.changes.push(Change::Gone {
                queue,
                about,
                places,
            });
        }
    }

    fn record(
        &mut self,
        kind: Kind,
        queue: QueueKey,
        place: i64,
        about: u32,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> (u32, u64) {
        let at = self.bytes.len();
        self.bytes.resize(at + HEADER_BYTES, 0);
        write(&mut self.bytes);
        let payload = &self.bytes[at + HEADER_BYTES..];
        let header = Header {
            payload_checksum: crc32fast::hash(payload),
            payload_bytes: payload.len() as u32,
            kind,
            is_last: false,
            queue,
            sequence: self.first_sequence + u64::from(self.records),
            nth: self.records,
            about,
            place,
        };
        self.bytes[at..at + HEADER_BYTES].copy_from_slice(&header.encode(self.salt));
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        self.records += 1;
        self.last = Some((header, at));
        // A segment is shorter than 4 GiB: `Log::begin` sees to that.
        ((self.base + at as u64) as u32, header.record_bytes())
    }
}

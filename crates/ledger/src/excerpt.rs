//! Messages that are read again from the log.
//!
//! ```text
//! Ledger::excerpt ─▶ join ─▶ next_read ─▶ (the caller reads these entries) ─▶ take ─▶ … ─▶ finish
//! ```
//!
//! A place may have had several messages in turn. The last one in the extent that the ledger names is the live one. Pages
//! of queues whose messages came interleaved are in the same entries, which are read and decoded once for all of them.

use std::collections::{BTreeMap, HashMap};

use crosstie_queues::{QueueId, Record, StoredMessage};

use crate::body;
use crate::broken::Broken;
use crate::entry::{Head, Kind};
use crate::ledger::{Ledger, Sequence};

/// Pages of queues, some of whose messages are still to be read from the log.
#[derive(Clone, Debug)]
pub struct Excerpt {
    pages: Vec<Page>,
    /// The pages of each queue.
    of_queues: HashMap<QueueId, Vec<usize>>,
    /// The extents to read: the first entry, the last, and their bytes.
    extents: BTreeMap<u64, (u64, u64)>,
    /// Approximate bytes of the messages of all pages.
    page_bytes: u64,
    /// The first entry and the last of each part that is to be read, in their order.
    parts: Vec<(u64, u64)>,
    /// The part that is being read, and the last entry of it that was taken.
    part: usize,
    taken: u64,
    batches: Batches,
}

/// The first messages of a queue between two places.
#[derive(Clone, Debug)]
struct Page {
    upto: i64,
    messages: BTreeMap<i64, Awaited>,
}

/// The messages of a page by their places, and the place up to which the queue has no others.
pub type Found = (Vec<(i64, StoredMessage)>, i64);

#[derive(Clone, Debug)]
struct Awaited {
    /// The entries that have it.
    entries: (u64, u64),
    /// Its deliveries, if they were counted later.
    deliveries: Option<u32>,
    message: Option<StoredMessage>,
}

/// Puts parts together to batches.
#[derive(Clone, Debug, Default)]
struct Batches {
    last: u64,
    epoch: u64,
    partial: Option<(Head, Vec<u8>)>,
}

/// Approximate octets of entries that are read for one page.
const READ_BYTES_MAX: u64 = 8 << 20;

/// Approximate octets of entries that are read for several pages together.
const JOINED_BYTES_MAX: u64 = 16 << 20;

impl Ledger {
    /// The first live messages of a queue between two places, about `bytes_max` octets of them.
    pub fn excerpt(&self, queue: QueueId, (from, to): (i64, i64), bytes_max: usize) -> Excerpt {
        let live = &self.history.live;
        let mean_bytes = live.mean_bytes(queue);
        let mut page = Page {
            upto: to,
            messages: BTreeMap::new(),
        };
        let mut extents = BTreeMap::new();
        let (mut bytes, mut read_bytes, mut last_extent) = (0, 0, None);
        for (place, number) in live.between(queue, (from, to)) {
            let message = live.content(queue, place).cloned();
            let extent = live.extents.get(number);
            let entries = extent.map_or((0, 0), |extent| (extent.first, extent.last));
            let is_next = message.is_none() && last_extent != Some(number);
            if bytes >= bytes_max as u64 || is_next && read_bytes >= READ_BYTES_MAX {
                break;
            }
            bytes += mean_bytes;
            if is_next {
                last_extent = Some(number);
                let extent_bytes = extent.map_or(0, |extent| extent.bytes);
                read_bytes += extent_bytes;
                // One that was not acknowledged yet cannot be read.
                if entries.0 > 0 {
                    extents.insert(entries.0, (entries.1, extent_bytes));
                }
            }
            let awaited = Awaited {
                // What is in memory is not read.
                entries: if message.is_some() { (0, 0) } else { entries },
                deliveries: live.deliveries(queue, place),
                message,
            };
            page.messages.insert(place, awaited);
        }
        let last = page.messages.last_key_value().map(|(place, _)| *place);
        if let Some(last) = last
            && live
                .between(queue, (last.saturating_add(1), to))
                .next()
                .is_some()
        {
            page.upto = last;
        }
        Excerpt::new(queue, (page, bytes), extents)
    }

    /// The live messages of an extent, of all of its entries.
    pub(crate) fn live_messages<'e>(
        &self,
        extent: u64,
        entries: impl IntoIterator<Item = (Sequence, &'e [u8])>,
    ) -> Result<Vec<Record>, Broken> {
        let live = &self.history.live;
        let mut batches = Batches::default();
        let mut found = BTreeMap::new();
        for (Sequence(sequence), entry) in entries {
            for record in batches.take(sequence, entry)? {
                if let Record::Enqueued {
                    queue,
                    place,
                    message,
                } = record
                    && live.extent_of(queue, place) == Some(extent)
                {
                    found.insert((queue, place), message);
                }
            }
        }
        let count = live.extents.get(extent).map_or(0, |extent| extent.messages);
        if found.len() != count {
            return Err(Broken::Missing);
        }
        let records = found.into_iter().map(|((queue, place), message)| {
            let message = match live.content(queue, place) {
                Some(known) => known.clone(),
                None => StoredMessage {
                    deliveries: live.deliveries(queue, place).unwrap_or(message.deliveries),
                    ..message
                },
            };
            Record::enqueued(queue, place, message)
        });
        Ok(records.collect())
    }
}

impl Excerpt {
    fn new(
        queue: QueueId,
        (page, page_bytes): (Page, u64),
        extents: BTreeMap<u64, (u64, u64)>,
    ) -> Self {
        let mut excerpt = Self {
            pages: vec![page],
            of_queues: HashMap::from([(queue, vec![0])]),
            extents,
            page_bytes,
            parts: Vec::new(),
            part: 0,
            taken: 0,
            batches: Batches::default(),
        };
        excerpt.divide();
        excerpt
    }

    /// Adds the pages of another excerpt of the same moment, unless much more would have to be read. Returns whether they
    /// were added. To be called before anything is read.
    pub fn join(&mut self, other: Self) -> bool {
        let more = other.extents.iter();
        let more = more.filter(|(first, _)| !self.extents.contains_key(first));
        let more_bytes: u64 = more.map(|(_, (_, bytes))| bytes).sum();
        if more_bytes > 0 && self.bytes() + more_bytes > JOINED_BYTES_MAX {
            return false;
        }
        let before = self.pages.len();
        for (queue, pages) in other.of_queues {
            let pages = pages.into_iter().map(|page| page + before);
            self.of_queues.entry(queue).or_default().extend(pages);
        }
        self.pages.extend(other.pages);
        self.extents.extend(other.extents);
        self.page_bytes += other.page_bytes;
        self.divide();
        true
    }

    /// Approximate bytes of the messages of all pages.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The extents to read, each by its first entry.
    pub fn extents(&self) -> impl Iterator<Item = u64> {
        self.extents.keys().copied()
    }

    /// Octets of the entries to read.
    pub fn bytes(&self) -> u64 {
        self.extents.values().map(|(_, bytes)| bytes).sum()
    }

    /// Finds the parts: extents without a gap are one.
    fn divide(&mut self) {
        self.parts.clear();
        for (first, (last, _)) in &self.extents {
            match self.parts.last_mut() {
                Some(before) if *first <= before.1 + 1 => before.1 = before.1.max(*last),
                _ => self.parts.push((*first, *last)),
            }
        }
    }

    /// The next entries to read, the first and the last included; `None` if nothing is left to be read.
    pub fn next_read(&self) -> Option<(Sequence, Sequence)> {
        let (first, last) = *self.parts.get(self.part)?;
        let first = first.max(self.taken + 1);
        Some((Sequence(first), Sequence(last)))
    }

    /// Takes the first of these entries that the log has: its front may be purged.
    pub fn take(&mut self, Sequence(sequence): Sequence, entry: &[u8]) -> Result<(), Broken> {
        let Some((Sequence(first), Sequence(last))) = self.next_read() else {
            return Ok(());
        };
        let is_begun = self.parts.get(self.part).is_some_and(|part| part.0 < first);
        if !(first..=last).contains(&sequence) || is_begun && sequence != first {
            return Err(Broken::Missing);
        }
        self.taken = sequence;
        for record in self.batches.take(sequence, entry)? {
            let Record::Enqueued {
                queue,
                place,
                message,
            } = record
            else {
                continue;
            };
            for page in self.of_queues.get(&queue).into_iter().flatten() {
                if let Some(awaited) = self.pages[*page].messages.get_mut(&place)
                    && (awaited.entries.0..=awaited.entries.1).contains(&sequence)
                {
                    awaited.message = Some(message.clone());
                }
            }
        }
        if sequence == last {
            self.part += 1;
            self.batches = Batches::default();
        }
        Ok(())
    }

    /// The pages in the order in which they were joined. An error means that the log does not have all messages of a page
    /// where they were: entries were written again meanwhile, or are lost.
    pub fn finish(self) -> Vec<Result<Found, Broken>> {
        self.pages.into_iter().map(Page::finish).collect()
    }
}

impl Page {
    fn finish(self) -> Result<Found, Broken> {
        let mut messages = Vec::new();
        for (place, awaited) in self.messages {
            let mut message = awaited.message.ok_or(Broken::Missing)?;
            message.deliveries = awaited.deliveries.unwrap_or(message.deliveries);
            messages.push((place, message));
        }
        Ok((messages, self.upto))
    }
}

impl Batches {
    /// Takes the next entry; returns the records of the batch that it completes.
    fn take(&mut self, sequence: u64, entry: &[u8]) -> Result<Vec<Record>, Broken> {
        if self.last > 0 && sequence != self.last + 1 {
            return Err(Broken::Missing);
        }
        self.last = sequence;
        let (head, part) = Head::open(entry)?;
        // A former owner's, behind another one's claim: `History::is_late`.
        if head.epoch < self.epoch {
            return Ok(Vec::new());
        }
        self.epoch = head.epoch;
        let body = match (self.partial.take(), head.part) {
            (_, 0) => part.to_vec(),
            (Some((of, body)), number) if of.batch == head.batch && of.part + 1 == number => {
                [&body, part].concat()
            }
            _ => return Err(Broken::Chain),
        };
        if !head.is_last {
            self.partial = Some((head, body));
            return Ok(Vec::new());
        }
        match head.kind {
            Kind::Fresh | Kind::Kept => {
                let records = body::decode(&body)?.into_iter();
                Ok(records.map(|(record, _)| record).collect())
            }
            Kind::Owned | Kind::Released | Kind::Recovered => Ok(Vec::new()),
        }
    }
}

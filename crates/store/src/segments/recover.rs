//! Finds out what a store has, without changing anything: which segments there are, what lives in them, and what was
//! confirmed and is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use crosstie_disk::Disk;

use super::bytes::Cursor;
use super::head::{self, Confirmed};
use super::index::{self, Left, MESSAGES_MAX, read_summary};
use super::manifest::{self, Listed, Manifest};
use super::message;
use super::places::PlaceSet;
use super::record::{Kind, QueueKey, RESTED, Salt};
use super::scan::{Bounds, Found, Scanned, scan};
use super::segment::{SegmentHead, index_name, number_in, segment_name};
use super::state::{Segment, Size, State};

/// A store as it was found.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) manifest: Manifest,
    pub(crate) state: State,
    pub(crate) confirmed: Confirmed,
    /// The sequence of the next record.
    pub(crate) next_sequence: u64,
    /// The segment that can take more records, and where.
    pub(crate) open: Option<(u32, u64)>,
    /// Complete segments without a valid index.
    pub(crate) unindexed: Vec<u32>,
    /// The same, with acknowledgements or declarations that cannot be read. They get no index, which would hide that.
    pub(crate) unsure: Vec<u32>,
    /// Files that are not needed any more.
    pub(crate) leftover: Vec<String>,
    pub(crate) loss: Loss,
    /// The manifest has losses that were accepted just now.
    pub(crate) is_accepting: bool,
    /// Segments and queues about which only a segment that is given up had records. They are to be written again.
    pub(crate) remains: Vec<(u32, QueueKey)>,
    /// The missing segments that had those records. They stay listed, and so a loss, until that is done.
    pub(crate) given_up: Vec<Listed>,
}

/// Confirmed data that is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Sequences that are not there, from and to, with the segment.
    pub(crate) gaps: Vec<(u32, u64, u64)>,
    /// Segments whose file is missing.
    pub(crate) segments: Vec<u32>,
    /// Acknowledgements that cannot be read, by queue: messages may come a second time.
    pub(crate) acknowledgements: Vec<QueueKey>,
    /// Declarations and settings that cannot be read, by segment.
    pub(crate) entities: Vec<u32>,
    /// The manifest cannot be read: a missing segment would not be noticed.
    pub(crate) is_manifest_unknown: bool,
}

impl Loss {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Looks at the files of a store.
pub(crate) fn recover(disk: &dyn Disk) -> io::Result<Recovered> {
    let names = disk.names("")?;
    let mut found: BTreeSet<u32> = names
        .iter()
        .filter_map(|name| number_in(name, ".segment"))
        .collect();
    let mut recovered = Recovered {
        confirmed: head::read(disk)?,
        next_sequence: 1,
        ..Recovered::default()
    };
    match Manifest::read(disk) {
        Ok(Some(manifest)) => recovered.manifest = manifest,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // A store is created with its manifest.
        Ok(None) | Err(_) => {
            recovered.loss.is_manifest_unknown = true;
            recovered.manifest = guess(disk, &found)?;
        }
    }
    let manifest = recovered.manifest.clone();
    recovered.leftover = leftover(names, &manifest, &mut found);
    for listed in &manifest.segments {
        recovered.next_sequence = listed.end_sequence;
        match found.remove(&listed.number) {
            true => recovered.read(disk, listed.number, listed.first_sequence, Some(*listed))?,
            false => recovered.miss(disk, listed)?,
        }
    }
    recovered.next_sequence = recovered.next_sequence.max(manifest.end_sequence);
    let later: Vec<u32> = found.into_iter().collect();
    recovered.read_later(disk, manifest.store, &later)?;
    if later.is_empty() {
        let confirmed = recovered.confirmed.sequence;
        recovered.note_gap(manifest.last + 1, recovered.next_sequence, confirmed);
        recovered.next_sequence = recovered.next_sequence.max(confirmed + 1);
    }
    Ok(recovered)
}

/// Takes those segments out that were about to be removed; returns their names, and those of other files that are not
/// needed any more.
fn leftover(names: Vec<String>, manifest: &Manifest, found: &mut BTreeSet<u32>) -> Vec<String> {
    let is_listed = |number: &u32| manifest.segments.iter().any(|l| l.number == *number);
    let mut removed: Vec<_> = found.iter().copied().collect();
    removed.retain(|number| *number <= manifest.last && !is_listed(number));
    let mut leftover = Vec::new();
    for number in &removed {
        found.remove(number);
        leftover.push(segment_name(*number));
    }
    for name in names {
        let index = number_in(&name, ".index");
        let is_needed = |number: &u32| found.contains(number) || is_listed(number);
        let is_old = index.is_some_and(|number| !is_needed(&number));
        if is_old || name.ends_with(".new") {
            leftover.push(name);
        }
    }
    leftover
}

/// Without a manifest: the store's number, as most of its segments and indexes have it.
fn guess(disk: &dyn Disk, found: &BTreeSet<u32>) -> io::Result<Manifest> {
    let mut stores: BTreeMap<u64, usize> = BTreeMap::new();
    for number in found {
        let head = segment_head(disk, *number)?.map(|head| head.store);
        for store in head.into_iter().chain(index::store(disk, *number)?) {
            *stores.entry(store).or_default() += 1;
        }
    }
    // One that was copied here from another store does not decide.
    let most = stores.into_iter().max_by_key(|(_, files)| *files);
    Ok(Manifest {
        store: most.map_or(0, |(store, _)| store),
        ..Manifest::default()
    })
}

fn segment_head(disk: &dyn Disk, number: u32) -> io::Result<Option<SegmentHead>> {
    let file = disk.open_to_read(&segment_name(number))?;
    let mut bytes = [0; 64];
    let count = file.read_at(&mut bytes, 0)?;
    Ok(SegmentHead::decode(&bytes[..count]))
}

/// The first sequence of a segment, by itself or by its index.
pub(crate) fn first_sequence(disk: &dyn Disk, store: u64, number: u32) -> io::Result<Option<u64>> {
    let head = segment_head(disk, number)?;
    if let Some(head) = head.filter(|head| (head.store, head.number) == (store, number)) {
        return Ok(Some(head.first_sequence));
    }
    let summary = read_summary(disk, store, number)?;
    Ok(summary.map(|summary| summary.first_sequence))
}

impl Recovered {
    /// Reads the segments that the manifest does not list, in their order.
    fn read_later(&mut self, disk: &dyn Disk, store: u64, later: &[u32]) -> io::Result<()> {
        for (at, number) in later.iter().enumerate() {
            let next = match later.get(at + 1) {
                Some(next) => first_sequence(disk, store, *next)?,
                None => None,
            };
            let expected = self.next_sequence;
            let first = first_sequence(disk, store, *number)?.unwrap_or(expected);
            if !self.loss.is_manifest_unknown {
                self.note_gap(*number, expected, first.saturating_sub(1));
            }
            let is_last = at + 1 == later.len();
            // Without a manifest, segments between the two may have been removed.
            let next = next.filter(|_| !self.loss.is_manifest_unknown);
            let listed = next.map(|end_sequence| Listed {
                number: *number,
                first_sequence: first,
                end_sequence,
            });
            self.next_sequence = first;
            if is_last {
                self.read_last(disk, *number, first)?;
            } else {
                self.read(disk, *number, first, listed)?;
            }
        }
        Ok(())
    }

    /// Continues without what is missing: it is not a loss any more at the next start.
    pub(crate) fn accept(&mut self) {
        self.is_accepting = !self.loss.is_empty();
        for (_, from, to) in &self.loss.gaps {
            self.manifest.accepted.push((*from, *to));
        }
        for number in &self.loss.segments {
            let segment = self.state.segments.get(number);
            let remains_before = self.remains.len();
            for (about, queues) in segment.iter().flat_map(|segment| &segment.about) {
                let of_segment = queues.iter().map(|queue| (*about, *queue));
                self.remains.extend(of_segment);
            }
            let listed = self.manifest.segments.iter();
            let listed = listed.filter(|listed| listed.number == *number);
            if self.remains.len() > remains_before {
                self.given_up.extend(listed);
            } else {
                let accepted =
                    listed.map(|listed| (listed.first_sequence, listed.end_sequence - 1));
                self.manifest.accepted.extend(accepted);
            }
            self.state.forget(*number);
        }
        // The readable records of damaged segments are in their indexes from now on.
        self.unindexed.append(&mut self.unsure);
        self.loss = Loss::default();
    }

    /// Reads a complete segment: its summary, or all of it.
    fn read(
        &mut self,
        disk: &dyn Disk,
        number: u32,
        first_sequence: u64,
        listed: Option<Listed>,
    ) -> io::Result<()> {
        let file = disk.open_to_read(&segment_name(number))?;
        let end_sequence = listed.map(|listed| listed.end_sequence);
        if let Some(summary) = read_summary(disk, self.manifest.store, number)?
            && end_sequence.is_none_or(|end| summary.end_sequence <= end)
        {
            self.next_sequence = summary.end_sequence;
            if let Some(end) = end_sequence {
                self.note_gap(number + 1, summary.end_sequence, end - 1);
                self.next_sequence = end;
            }
            self.state.add_summary(summary, file.bytes()?);
            return Ok(());
        }
        let bounds = Bounds {
            first_sequence,
            end_sequence,
            confirmed: 0,
            salt: Salt::of(self.manifest.store),
        };
        let (scanned, is_sure) = self.scan(disk, number, bounds)?;
        self.next_sequence = scanned.next_sequence;
        self.end(number, is_sure);
        Ok(())
    }

    /// Nothing follows in a segment that has no index.
    fn end(&mut self, number: u32, is_sure: bool) {
        self.state.complete(number);
        match is_sure {
            true => self.unindexed.push(number),
            false => self.unsure.push(number),
        }
    }

    /// Reads the last segment, to which more can be written unless it is damaged.
    fn read_last(&mut self, disk: &dyn Disk, number: u32, first_sequence: u64) -> io::Result<()> {
        let store = self.manifest.store;
        let confirmed = self.confirmed.sequence;
        // A segment gets an index when the next one exists, or at an orderly end.
        let summary = read_summary(disk, store, number)?;
        if let Some(summary) = summary
            && summary.end_sequence > confirmed
        {
            let file = disk.open_to_read(&segment_name(number))?;
            self.next_sequence = summary.end_sequence;
            self.state.add_summary(summary, file.bytes()?);
            return Ok(());
        }
        let bounds = Bounds {
            first_sequence,
            end_sequence: None,
            confirmed,
            salt: Salt::of(store),
        };
        let (scanned, is_sure) = self.scan(disk, number, bounds)?;
        self.next_sequence = scanned.next_sequence;
        let head = segment_head(disk, number)?;
        let is_whole = scanned.gaps.is_empty()
            && is_sure
            && head
                .is_some_and(|head| head.store == store && head.first_sequence == first_sequence);
        if is_whole {
            self.open = Some((number, scanned.end));
        } else {
            self.end(number, is_sure);
        }
        Ok(())
    }

    /// Also returns whether all acknowledgements and declarations could be read.
    fn scan(
        &mut self,
        disk: &dyn Disk,
        number: u32,
        bounds: Bounds,
    ) -> io::Result<(Scanned, bool)> {
        let file: Arc<_> = disk.open_to_read(&segment_name(number))?;
        let segment = Segment::new(bounds.first_sequence, file.bytes()?);
        self.state.segments.insert(number, segment);
        let (state, loss) = (&mut self.state, &mut self.loss);
        let unread = |loss: &Loss| (loss.acknowledgements.len() + loss.entities.len()) as u64;
        let unread_before = unread(loss);
        let scanned = scan(&*file, bounds, &mut |found| {
            fold(state, loss, number, found)
        })?;
        let is_sure = unread(loss) == unread_before;
        for (from, to) in &scanned.gaps {
            self.note_gap(number, *from, *to);
        }
        if let Some(segment) = self.state.segments.get_mut(&number) {
            segment.end_sequence = scanned.next_sequence;
            segment.data_bytes = scanned.end;
        }
        Ok((scanned, is_sure))
    }

    /// A listed segment is not there. Its index may say which messages it had.
    fn miss(&mut self, disk: &dyn Disk, listed: &Listed) -> io::Result<()> {
        if self.is_accepted(listed.first_sequence, listed.end_sequence - 1) {
            return Ok(());
        }
        self.loss.segments.push(listed.number);
        match read_summary(disk, self.manifest.store, listed.number)? {
            Some(summary) => self.state.add_summary(summary, 0),
            None => {
                let (from, to) = (listed.first_sequence, listed.end_sequence - 1);
                self.note_gap(listed.number, from, to);
            }
        }
        Ok(())
    }

    fn note_gap(&mut self, number: u32, from: u64, to: u64) {
        if from <= to && !self.is_accepted(from, to) {
            self.loss.gaps.push((number, from, to));
        }
    }

    /// Whether an operator has accepted that these are missing.
    pub(crate) fn is_accepted(&self, from: u64, to: u64) -> bool {
        let accepted = self.manifest.accepted.iter();
        accepted
            .into_iter()
            .any(|(first, last)| *first <= from && to <= *last)
    }
}

/// Applies a record.
fn fold(state: &mut State, loss: &mut Loss, segment: u32, found: &Found<'_>) {
    let header = &found.header;
    let queue = header.queue;
    let about = match header.about {
        0 => segment,
        about => about,
    };
    match header.kind {
        Kind::Stored => {
            let is_entity = queue.vhost == 0;
            if is_entity && found.payload.is_none() {
                // Without a place of rest, messages count as delivered.
                if queue != RESTED {
                    loss.entities.push(segment);
                }
                return;
            }
            let size = Size {
                record: header.record_bytes(),
                body: match is_entity {
                    true => 0,
                    false => found.payload.map_or(0, message::body_bytes),
                },
            };
            let at = (found.offset as u32, size);
            state.store(segment, (queue, header.place), at, header.about);
        }
        Kind::Cleared => match found.payload.and_then(decode_place) {
            Some(to) => state.clear(segment, queue, (header.place, to)),
            None => loss.acknowledgements.push(queue),
        },
        Kind::Gone => match found.payload.and_then(decode_gone) {
            Some(places) => {
                for place in places.iter() {
                    state.lose(segment, queue, about, place);
                }
            }
            None => loss.acknowledgements.push(queue),
        },
        Kind::Remains => match found.payload.and_then(decode_left) {
            Some(left) => state.remain(segment, queue, about, left),
            None => loss.acknowledgements.push(queue),
        },
        Kind::Delivered => {
            // Without the payload a message counts as delivered less often.
            let deliveries = found.payload.and_then(|payload| Cursor::new(payload).u32());
            if let Some(deliveries) = deliveries {
                state.deliver(segment, queue, about, (header.place, deliveries));
            }
        }
    }
}

/// The places in a record of kind [`Kind::Gone`].
pub(crate) fn decode_gone(payload: &[u8]) -> Option<PlaceSet> {
    let mut cursor = Cursor::new(payload);
    let places = PlaceSet::decode(&mut cursor, MESSAGES_MAX)?;
    cursor.is_empty().then_some(places)
}

/// The last place in a record of kind [`Kind::Cleared`].
fn decode_place(payload: &[u8]) -> Option<i64> {
    let mut cursor = Cursor::new(payload);
    let place = cursor.u64()? as i64;
    cursor.is_empty().then_some(place)
}

/// The payload of a record of kind [`Kind::Remains`].
pub(crate) fn decode_left(payload: &[u8]) -> Option<Left> {
    let mut cursor = Cursor::new(payload);
    let left = Left::decode(&mut cursor, MESSAGES_MAX)?;
    cursor.is_empty().then_some(left)
}

/// Whether a file of that name belongs to a store.
pub(crate) fn is_file_of_store(name: &str) -> bool {
    name == manifest::NAME
        || name == head::NAME
        || [".segment", ".index", ".spare"]
            .iter()
            .any(|ending| number_in(name, ending).is_some())
}

/// The files of a segment.
pub(crate) fn files_of(number: u32) -> [String; 2] {
    [segment_name(number), index_name(number)]
}

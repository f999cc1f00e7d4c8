//! Reads the files of a store one by one, and counts what is damaged in each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use crosstie_amqp::Properties;
use crosstie_disk::{Disk, DiskFile, read_part, read_whole};

use crate::check::{Checked, FileFault, Rows, Transient};
use crate::segments::entity;
use crate::segments::head;
use crate::segments::index::{self, Index};
use crate::segments::manifest;
use crate::segments::message::{self, Content};
use crate::segments::places::PlaceSet;
use crate::segments::record::{ENTITIES, Header, Kind, QueueKey, RESTED, Salt};
use crate::segments::recover::Recovered;
use crate::segments::scan::{Bounds, Found, Scanned, scan};
use crate::segments::segment::{SEGMENT_HEAD_BYTES, SegmentHead, index_name, segment_name};
use crate::segments::state::{IndexPlace, Segment};
use crate::tolerant::Unread;

/// The reading of a store.
pub(crate) struct Tally<'t> {
    disk: &'t dyn Disk,
    recovered: &'t Recovered,
    checked: Checked,
    rows: Rows,
    /// Damaged and missing messages by segment and queue, and damaged acknowledgements that count.
    losses: BTreeMap<(u32, QueueKey), Loss>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    damaged: u64,
    missing: u64,
    acknowledgements: u64,
}

impl<'t> Tally<'t> {
    pub(crate) fn begin(disk: &'t dyn Disk, recovered: &'t Recovered) -> Self {
        Self {
            disk,
            recovered,
            checked: Checked::default(),
            rows: Rows::default(),
            losses: BTreeMap::new(),
        }
    }

    pub(crate) fn read(&mut self) -> io::Result<()> {
        self.manifest()?;
        self.head()?;
        let recovered = self.recovered;
        let names = self.disk.names("")?;
        for (number, segment) in &recovered.state.segments {
            self.checked.segments += 1;
            self.segment(*number, segment)?;
        }
        for (number, from, to) in &recovered.loss.gaps {
            let records = to - from + 1;
            self.checked.unknown_records += records;
            let file = segment_name(*number);
            let is_gone = !names.contains(&file);
            let what = if is_gone { "the file is missing: " } else { "" };
            let records = counted(records, "record is missing", "records are missing");
            let what = format!("{what}{records}, of queues that are not known");
            self.fault(file, what, true);
        }
        for queue in &recovered.loss.acknowledgements {
            self.rows.of(*queue).acknowledgements += 1;
        }
        Ok(())
    }

    /// The report. Sectors that the system does not read have been counted as zeros.
    pub(crate) fn conclude(mut self, unread: &[Unread]) -> (Checked, Transient) {
        for Unread { file, at, bytes } in unread {
            let what = format!("{bytes} bytes at {at} cannot be read: input/output error");
            self.fault(file.clone(), what, false);
        }
        let lost = &self.recovered.loss;
        let may_be_lost = !lost.entities.is_empty() || self.checked.unknown_records > 0;
        let transient = self.rows.transient(may_be_lost || lost.is_manifest_unknown);
        for ((number, queue), loss) in std::mem::take(&mut self.losses) {
            let of = self.rows.queue_text(queue);
            let mut parts = Vec::new();
            if loss.damaged > 0 {
                parts.push(counted(
                    loss.damaged,
                    "message is damaged",
                    "messages are damaged",
                ));
            }
            if loss.missing > 0 {
                parts.push(counted(
                    loss.missing,
                    "message is missing",
                    "messages are missing",
                ));
            }
            if loss.acknowledgements > 0 {
                parts.push(format!(
                    "{}, so that messages may come twice",
                    counted(
                        loss.acknowledgements,
                        "record of acknowledgements cannot be read",
                        "records of acknowledgements cannot be read"
                    )
                ));
            }
            let is_gone = lost.segments.contains(&number);
            let what = if is_gone { "the file is missing: " } else { "" };
            let is_transient = transient.contains(&queue);
            let of = match is_transient {
                true => "transient messages, which a start forgets".to_owned(),
                false => of,
            };
            let what = format!("{what}{of}: {}", parts.join(", "));
            self.fault(segment_name(number), what, !is_transient);
        }
        // A growing segment has no index that would name them.
        let of_segment = lost.entities.chunk_by(|a, b| a == b);
        for (number, count) in of_segment.map(|of| (of[0], of.len() as u64)) {
            self.lose_entities(number, ENTITIES, count);
        }
        let Self {
            mut checked, rows, ..
        } = self;
        checked.lost_declarations = rows.lost_declarations;
        checked.settings = rows.settings;
        checked.vhosts = rows.into_vhosts(&transient);
        checked.faults.sort_by(|a, b| a.file.cmp(&b.file));
        (checked, transient)
    }

    fn fault(&mut self, file: String, what: impl Into<String>, is_loss: bool) {
        let what = what.into();
        self.checked.faults.push(FileFault {
            file,
            what,
            is_loss,
        });
    }

    fn manifest(&mut self) -> io::Result<()> {
        if self.recovered.loss.is_manifest_unknown {
            let what = match read_if_there(self.disk, manifest::NAME)? {
                None => "the file is missing: a missing segment would not be noticed",
                Some(_) => "both copies are damaged: a missing segment would not be noticed",
            };
            self.fault(manifest::NAME.to_owned(), what, true);
            return Ok(());
        }
        let bytes = read_whole(self.disk, manifest::NAME)?;
        if bytes != self.recovered.manifest.encode() {
            let what = "one of its two copies is damaged";
            self.fault(manifest::NAME.to_owned(), what, false);
        }
        Ok(())
    }

    fn head(&mut self) -> io::Result<()> {
        let bytes = read_if_there(self.disk, head::NAME)?;
        let what = match bytes {
            // It is created before the first segment.
            None if self.recovered.state.segments.is_empty() => return Ok(()),
            None => {
                "the file is missing: records missing at the end would not be noticed".to_owned()
            }
            Some(bytes) => match head::damaged_slots(&bytes) {
                0 => return Ok(()),
                1 => "one of its two slots is damaged".to_owned(),
                _ => "both slots are damaged: records missing at the end would not be noticed"
                    .to_owned(),
            },
        };
        self.fault(head::NAME.to_owned(), what, false);
        Ok(())
    }

    fn segment(&mut self, number: u32, segment: &Segment) -> io::Result<()> {
        let live = self.live(number, segment);
        let file = match self.disk.open_to_read(&segment_name(number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                for (queue, places) in live {
                    self.miss(number, queue, places.len() as u64);
                }
                return Ok(());
            }
            file => file?,
        };
        let own_index = self.own_index(number, segment)?;
        let index = match &segment.index {
            IndexPlace::Growing(index) => Some(index),
            IndexPlace::Memory(index) => Some(&**index),
            IndexPlace::File => own_index.as_ref(),
        };
        self.segment_head(number, segment, &*file)?;
        let mut reading = Reading::begin(&live, index);
        let bounds = Bounds {
            first_sequence: segment.first_sequence,
            end_sequence: segment.is_complete.then_some(segment.end_sequence),
            confirmed: self.recovered.confirmed.sequence,
            salt: Salt::of(self.recovered.manifest.store),
        };
        let scanned = scan(&*file, bounds, &mut |found| reading.take(found))?;
        self.checked.records += reading.records;
        self.checked.idle_records += reading.idle;
        for (entity, place) in &reading.entities {
            self.rows.declare(entity, *place);
        }
        let Reading {
            counted,
            acknowledgements,
            ..
        } = reading;
        self.count(number, &live, &counted);
        // Without an index, a start has said so; with one, only what lives is needed.
        let is_indexed = matches!(segment.index, IndexPlace::File);
        self.note_scan(number, &scanned, is_indexed);
        self.note_acknowledgements(number, &acknowledgements, is_indexed);
        Ok(())
    }

    /// The places of each queue that live in a segment.
    fn live(&self, number: u32, segment: &Segment) -> Live<'t> {
        let queues = &self.recovered.state.queues;
        let run = |queue: &QueueKey| queues.get(queue)?.runs.get(&number);
        let runs = segment.queues.iter().filter_map(|queue| {
            let run = run(queue)?;
            Some((*queue, &run.left.live))
        });
        runs.collect()
    }

    /// Counts whole, damaged and missing messages.
    fn count(&mut self, number: u32, live: &Live<'_>, counted: &HashMap<QueueKey, (u64, u64)>) {
        for (queue, places) in live {
            let (whole, damaged) = counted.get(queue).copied().unwrap_or_default();
            let missing = (places.len() as u64).saturating_sub(whole + damaged);
            if queue.vhost == 0 {
                self.lose_entities(number, *queue, damaged + missing);
                continue;
            }
            self.rows.of(*queue).whole += whole;
            self.rows.of(*queue).damaged += damaged;
            if damaged > 0 {
                self.losses.entry((number, *queue)).or_default().damaged += damaged;
            }
            self.miss(number, *queue, missing);
        }
    }

    fn note_scan(&mut self, number: u32, scanned: &Scanned, is_indexed: bool) {
        let name = segment_name(number);
        if scanned.repaired > 0 {
            let what = counted(
                scanned.repaired,
                "header has a wrong bit, which is corrected",
                "headers have a wrong bit, which is corrected",
            );
            self.fault(name.clone(), what, false);
        }
        let gaps = scanned.gaps.iter();
        let gaps = gaps.filter(|(from, to)| is_indexed && !self.recovered.is_accepted(*from, *to));
        let missing: u64 = gaps.map(|(from, to)| to - from + 1).sum();
        if missing > 0 {
            let records = counted(missing, "record is missing", "records are missing");
            let what = format!("{records}: the index names what they were");
            self.fault(name, what, false);
        }
    }

    fn note_acknowledgements(&mut self, number: u32, unread: &[QueueKey], is_indexed: bool) {
        if is_indexed && !unread.is_empty() {
            let records = counted(
                unread.len() as u64,
                "record of acknowledgements is damaged",
                "records of acknowledgements are damaged",
            );
            let what = format!("{records}: the index has the same");
            self.fault(segment_name(number), what, false);
            return;
        }
        for queue in unread {
            let loss = self.losses.entry((number, *queue)).or_default();
            loss.acknowledgements += 1;
        }
    }

    fn miss(&mut self, number: u32, queue: QueueKey, missing: u64) {
        if missing == 0 {
            return;
        }
        if queue.vhost == 0 {
            self.lose_entities(number, queue, missing);
            return;
        }
        self.rows.of(queue).missing += missing;
        self.losses.entry((number, queue)).or_default().missing += missing;
    }

    fn lose_entities(&mut self, number: u32, queue: QueueKey, count: u64) {
        if count == 0 {
            return;
        }
        let is_loss = queue != RESTED;
        let what = match is_loss {
            true => {
                self.rows.lost_declarations += count;
                counted(
                    count,
                    "declaration of a vhost, an exchange, a queue or a binding, or setting, cannot be read",
                    "declarations of vhosts, exchanges, queues or bindings, or settings, cannot be read",
                )
            }
            false => counted(
                count,
                "note of an orderly stop cannot be read: messages count as delivered",
                "notes of an orderly stop cannot be read: messages count as delivered",
            ),
        };
        self.fault(segment_name(number), what, is_loss);
    }

    /// The index in a segment's file. One that cannot be read is a fault; a segment may be without one.
    fn own_index(&mut self, number: u32, segment: &Segment) -> io::Result<Option<Index>> {
        let name = index_name(number);
        let Some(bytes) = read_if_there(self.disk, &name)? else {
            return Ok(None);
        };
        let store = self.recovered.manifest.store;
        let decoded = index::decode(&bytes);
        let decoded =
            decoded.filter(|(summary, _)| (summary.store, summary.number) == (store, number));
        // A segment that was reopened has an index of before.
        let is_used = segment.is_complete;
        match decoded {
            Some((_, index)) => Ok(Some(index)),
            None => {
                if is_used {
                    let what =
                        "it cannot be read: the records of its segment are read in its place";
                    self.fault(name, what, false);
                }
                Ok(None)
            }
        }
    }

    fn segment_head(
        &mut self,
        number: u32,
        segment: &Segment,
        file: &dyn DiskFile,
    ) -> io::Result<()> {
        let bytes = read_part(file, 0, SEGMENT_HEAD_BYTES)?;
        let store = self.recovered.manifest.store;
        let expected = SegmentHead {
            store,
            number,
            first_sequence: segment.first_sequence,
        };
        let what = match SegmentHead::decode(&bytes) {
            Some(head) if head == expected => return Ok(()),
            Some(head) if head.store != store => "it belongs to another store",
            _ => "its head is damaged",
        };
        self.fault(segment_name(number), what, false);
        Ok(())
    }
}

/// Places by queue.
type Live<'l> = HashMap<QueueKey, &'l PlaceSet>;

/// The reading of one segment.
struct Reading<'r> {
    live: &'r Live<'r>,
    index: Option<&'r Index>,
    /// Offsets of records with a whole content, which later messages may share.
    holders: HashSet<u32>,
    records: u64,
    /// Whole and damaged ones that live.
    counted: HashMap<QueueKey, (u64, u64)>,
    entities: Vec<(entity::Entity, i64)>,
    /// Records of acknowledgements that cannot be read, by queue.
    acknowledgements: Vec<QueueKey>,
    /// Damaged ones that do not live.
    idle: u64,
}

impl<'r> Reading<'r> {
    fn begin(live: &'r Live<'r>, index: Option<&'r Index>) -> Self {
        Self {
            live,
            index,
            holders: HashSet::new(),
            records: 0,
            counted: HashMap::new(),
            entities: Vec::new(),
            acknowledgements: Vec::new(),
            idle: 0,
        }
    }

    fn take(&mut self, found: &Found<'_>) {
        self.records += 1;
        let Found {
            header,
            offset,
            payload,
        } = found;
        match header.kind {
            Kind::Stored => self.take_stored(header, *offset, *payload),
            Kind::Gone | Kind::Remains | Kind::Cleared if payload.is_none() => {
                self.acknowledgements.push(header.queue);
            }
            _ if payload.is_none() => self.idle += 1,
            _ => {}
        }
    }

    fn take_stored(&mut self, header: &Header, offset: u64, payload: Option<&[u8]>) {
        let (queue, place) = (header.queue, header.place);
        let is_whole = match payload {
            None => false,
            Some(payload) if queue.vhost == 0 => self.take_entity(header, offset, payload),
            Some(payload) => self.is_message(offset as u32, payload),
        };
        match (self.lives(queue, place, offset), is_whole) {
            (true, true) => self.counted.entry(queue).or_default().0 += 1,
            (true, false) => self.counted.entry(queue).or_default().1 += 1,
            (false, false) => self.idle += 1,
            (false, true) => {}
        }
    }

    fn take_entity(&mut self, header: &Header, offset: u64, payload: &[u8]) -> bool {
        match entity::decode(payload) {
            Some(entity) => {
                if self.lives(header.queue, header.place, offset) {
                    self.entities.push((entity, header.place));
                }
                true
            }
            None => false,
        }
    }

    fn is_message(&mut self, offset: u32, payload: &[u8]) -> bool {
        let Some(message) = message::decode(payload) else {
            return false;
        };
        match message.content {
            Content::At { offset, .. } => self.holders.contains(&offset),
            Content::Here {
                properties, body, ..
            } => {
                let is_whole = Properties::from_bytes(properties).is_ok();
                if is_whole && body.len() >= message::SHARED_BYTES_MIN {
                    self.holders.insert(offset);
                }
                is_whole
            }
        }
    }

    /// Whether it is the record of a place that lives.
    fn lives(&self, queue: QueueKey, place: i64, offset: u64) -> bool {
        let is_live = self
            .live
            .get(&queue)
            .is_some_and(|live| live.contains(place));
        let at = self.index.and_then(|index| index.find(queue, place));
        is_live && at.is_none_or(|at| u64::from(at) == offset)
    }
}

fn read_if_there(disk: &dyn Disk, name: &str) -> io::Result<Option<Vec<u8>>> {
    match read_whole(disk, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => bytes.map(Some),
    }
}

fn counted(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {several}"),
    }
}

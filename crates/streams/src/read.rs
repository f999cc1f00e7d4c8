//! Reads pages of streams. Damaged records are left out and reported.

use std::io;
use std::sync::Arc;

use crosstie_disk::{Disk, DiskFile, read_part};
use crosstie_queues::{StreamFilter, StreamFrom, StreamPage, StreamPlace, Time};

use crate::files;
use crate::index::{self, Entry};
use crate::log::{Damage, Log};
use crate::record::{self, Found, SEGMENT_HEAD_BYTES};
use crate::window::Window;

/// Maximum segments that stay open for reading.
const OPEN_MAX: usize = 64;

/// Bytes that are read at a time for a reader with a filter: about a millisecond, in which others wait.
const SCANNED_MAX: usize = 1 << 20;

pub(crate) struct Pages {
    disk: Arc<dyn Disk>,
    /// The last used ones last.
    open: Vec<(String, Arc<dyn DiskFile>)>,
}

/// A segment as a reader sees it.
struct Part {
    first: u64,
    bytes: u64,
    next: Option<u64>,
}

impl Pages {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            open: Vec::new(),
        }
    }

    /// Reads about that many bytes, up to the message before `end`. A page without messages ends where the next one is
    /// to begin.
    pub(crate) fn read(
        &mut self,
        log: &Log,
        from: StreamFrom,
        end: u64,
        bytes_max: usize,
        damages: &mut Vec<Damage>,
    ) -> io::Result<StreamPage> {
        let mut place = match from {
            StreamFrom::Place(place) if place.position >= SEGMENT_HEAD_BYTES => place,
            StreamFrom::Place(place) => self.find_offset(log, place.offset)?,
            StreamFrom::Offset(offset) => self.find_offset(log, offset)?,
            StreamFrom::Since(at) => self.find_time(log, at)?,
        };
        let begin = place;
        loop {
            let Some(part) = part(log, place.segment) else {
                // Its segment is gone: what is left begins later.
                let extent = log.table().extent();
                if extent.first <= place.segment || extent.first >= end {
                    return Ok(empty(begin, end));
                }
                place = start_of(extent.first);
                continue;
            };
            if place.position >= part.bytes {
                match part.next.filter(|next| *next < end) {
                    Some(next) => place = start_of(next),
                    None => return Ok(empty(begin, end)),
                }
                continue;
            }
            let file = match self.file(log, part.first) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Retired meanwhile, or lost.
                    if self::part(log, part.first).is_some() {
                        let next = part.next.unwrap_or(end).min(end);
                        damages.push(damage(log, place, next));
                        place.position = part.bytes;
                    }
                    continue;
                }
                file => file?,
            };
            let page = read_records(&*file, place, part.bytes, end, bytes_max)?;
            if !page.is_empty() {
                return Ok(page);
            }
            if page.after.offset >= end {
                return Ok(page);
            }
            let entries = self.entries(log, &part)?;
            let within = (place.position, part.bytes);
            let found = Window::default().next_record(&*file, &entries, within, place.offset)?;
            let next = found.map_or_else(|| part.next.unwrap_or(end), |(_, head)| head.offset);
            damages.push(damage(log, place, next.min(end)));
            place.position = found.map_or(part.bytes, |(position, _)| position);
            place.offset = next;
        }
    }

    /// Reads the messages that a filter accepts, up to about that many bytes of them, among the next [`SCANNED_MAX`]. A page
    /// without messages ends where the next one is to begin.
    pub(crate) fn read_accepted(
        &mut self,
        log: &Log,
        (from, end): (StreamFrom, u64),
        filter: &StreamFilter,
        bytes_max: usize,
        damages: &mut Vec<Damage>,
    ) -> io::Result<StreamPage> {
        let mut part = self.read(log, from, end, bytes_max, damages)?;
        let from = part.from;
        let mut bytes = Vec::new();
        let mut found = Vec::new();
        let mut scanned = 0;
        loop {
            for message in (0..part.len()).filter_map(|at| part.message(at)) {
                if filter.accepts(message.properties) {
                    let start = bytes.len();
                    let (exchange, key) = (message.exchange, message.routing_key);
                    let properties = message.properties.bytes();
                    bytes.extend_from_slice(exchange.as_bytes());
                    bytes.extend_from_slice(key.as_bytes());
                    bytes.extend_from_slice(properties);
                    bytes.extend_from_slice(message.body);
                    // As a record has them.
                    let lengths = (
                        exchange.len() as u8,
                        key.len() as u8,
                        properties.len() as u32,
                    );
                    found.push((message.offset, (start, bytes.len()), lengths));
                }
            }
            scanned += part.bytes().len();
            let is_at_end = part.is_empty() || part.after.offset >= end;
            if is_at_end || bytes.len() >= bytes_max || scanned >= SCANNED_MAX {
                break;
            }
            part = self.read(log, StreamFrom::Place(part.after), end, bytes_max, damages)?;
        }
        let mut page = StreamPage::new(bytes, from);
        for (offset, place, lengths) in found {
            page.push(offset, place, lengths);
        }
        page.after = part.after;
        Ok(page)
    }

    /// The place of a record before an offset, or at it.
    fn find_offset(&self, log: &Log, offset: u64) -> io::Result<StreamPlace> {
        let first = {
            let table = log.table();
            let place = table.of_offset(offset);
            table.segments.get(place).map(|segment| segment.first)
        };
        let Some(part) = first.and_then(|first| part(log, first)) else {
            return Ok(start_of(offset));
        };
        let entries = self.entries(log, &part)?;
        let behind = entries.partition_point(|entry| entry.offset <= offset);
        Ok(place_before(&part, &entries, behind))
    }

    /// The place of the first record of that time or later.
    fn find_time(&mut self, log: &Log, Time(at_ms): Time) -> io::Result<StreamPlace> {
        let first = {
            let table = log.table();
            let segments = &table.segments;
            let behind = segments.partition_point(|segment| segment.first_at_ms < at_ms);
            segments.get(behind.saturating_sub(1)).map(|s| s.first)
        };
        let Some(part) = first.and_then(|first| part(log, first)) else {
            return Ok(start_of(log.table().end));
        };
        let entries = self.entries(log, &part)?;
        let behind = entries.partition_point(|entry| entry.at_ms < at_ms);
        let mut place = place_before(&part, &entries, behind);
        let file = self.file(log, part.first)?;
        let mut window = Window::default();
        loop {
            let within = (place.position, part.bytes);
            match window.next_record(&*file, &entries, within, place.offset)? {
                Some((position, head)) if head.at_ms < at_ms => {
                    place.position = position + head.bytes as u64;
                    place.offset = head.offset + 1;
                }
                Some((position, head)) => {
                    place.position = position;
                    place.offset = head.offset;
                    return Ok(place);
                }
                None => {
                    place.position = part.bytes;
                    return Ok(place);
                }
            }
        }
    }

    fn entries(&self, log: &Log, part: &Part) -> io::Result<Vec<Entry>> {
        let path = files::index(&log.directory, part.first);
        match self.disk.open_to_read(&path) {
            Ok(file) => Ok(index::read(&*file, part.bytes)?.0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn file(&mut self, log: &Log, first: u64) -> io::Result<Arc<dyn DiskFile>> {
        let path = files::segment(&log.directory, first);
        if let Some(at) = self.open.iter().position(|(open, _)| *open == path) {
            let found = self.open.remove(at);
            let file = Arc::clone(&found.1);
            self.open.push(found);
            return Ok(file);
        }
        if self.open.len() >= OPEN_MAX {
            self.open.remove(0);
        }
        let file = self.disk.open_to_read(&path)?;
        self.open.push((path, Arc::clone(&file)));
        Ok(file)
    }

    /// Closes files that are to be removed: those with this path, or in this directory.
    pub(crate) fn forget(&mut self, path: &str) {
        self.open.retain(|(open, _)| !open.starts_with(path));
    }
}

fn part(log: &Log, first: u64) -> Option<Part> {
    let table = log.table();
    let segments = &table.segments;
    let at = segments.binary_search_by_key(&first, |s| s.first).ok()?;
    Some(Part {
        first,
        bytes: segments.get(at)?.bytes,
        next: segments.get(at + 1).map(|next| next.first),
    })
}

fn damage(log: &Log, place: StreamPlace, to: u64) -> Damage {
    Damage {
        path: files::segment(&log.directory, place.segment),
        position: place.position,
        from: place.offset,
        to,
    }
}

fn start_of(segment: u64) -> StreamPlace {
    StreamPlace {
        offset: segment,
        segment,
        position: SEGMENT_HEAD_BYTES,
    }
}

fn place_before(part: &Part, entries: &[Entry], behind: usize) -> StreamPlace {
    let entry = behind.checked_sub(1).and_then(|at| entries.get(at));
    match entry {
        Some(entry) => StreamPlace {
            offset: entry.offset,
            segment: part.first,
            position: entry.position,
        },
        None => start_of(part.first),
    }
}

fn empty(from: StreamPlace, end: u64) -> StreamPage {
    let mut page = StreamPage::new(Vec::new(), from);
    // Looked for by its offset when there is more.
    page.after = StreamPlace {
        offset: end.max(from.offset),
        ..StreamPlace::default()
    };
    page
}

/// Reads records up to the first that is not whole, damaged, or at `end`.
fn read_records(
    file: &dyn DiskFile,
    from: StreamPlace,
    segment_bytes: u64,
    end: u64,
    bytes_max: usize,
) -> io::Result<StreamPage> {
    let left = usize::try_from(segment_bytes - from.position).unwrap_or(usize::MAX);
    let mut wanted = bytes_max.min(left);
    loop {
        let bytes = read_part(file, from.position, wanted as u64)?;
        let mut heads = Vec::new();
        let mut at = 0;
        let mut offset = from.offset;
        let mut is_at_end = false;
        let mut whole = 0;
        loop {
            match record::read(&bytes[at..]) {
                Found::Record(head) if head.offset >= end => is_at_end = true,
                Found::Record(head) if head.offset >= offset => {
                    heads.push((at, head));
                    at += head.bytes;
                    offset = head.offset + 1;
                    continue;
                }
                Found::Cut { bytes } if heads.is_empty() && bytes <= left => whole = bytes,
                _ => {}
            }
            break;
        }
        if whole > wanted {
            wanted = whole;
            continue;
        }
        let mut page = StreamPage::new(bytes, from);
        let mut position = 0;
        for (at, head) in heads {
            if !record::add_to(&mut page, at, &head) {
                break;
            }
            position = at + head.bytes;
            page.after.offset = head.offset + 1;
        }
        page.after.position = from.position + position as u64;
        if is_at_end && page.is_empty() {
            page.after.offset = end;
        }
        return Ok(page);
    }
}

//! How a stream is found at a start.

use std::io;

use crosstie_disk::{Disk, DiskFile, open_or_create, read_part, remove_if_there};

use crate::bytes::unsealed;
use crate::files;
use crate::head::Head;
use crate::index::{self, Entry};
use crate::log::{Damage, Segment, Table};
use crate::record::{MAGIC, SEGMENT_HEAD_BYTES};
use crate::window::Window;

/// A stream as it is found at a start.
pub(crate) struct Opened {
    pub(crate) table: Table,
    pub(crate) damages: Vec<Damage>,
}

/// Finds a stream's segments. Cuts a torn end that was not confirmed, and removes what retention had left.
pub(crate) fn open(disk: &dyn Disk, directory: &str) -> io::Result<Opened> {
    let names = disk.names(directory)?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|n| files::first_of(n)).collect();
    firsts.sort_unstable();
    let mut head = None;
    if names.iter().any(|name| name == files::HEAD) {
        head = Head::read(&*disk.open_to_read(&files::head(directory))?)?;
    }
    let mut opened = Opened {
        table: Table::default(),
        damages: Vec::new(),
    };
    if let Some(head) = head {
        opened.table.end = head.end;
        opened.table.last_at_ms = head.last_at_ms;
        if firsts.contains(&head.first) {
            for first in firsts.extract_if(.., |first| *first < head.first) {
                disk.remove(&files::segment(directory, first))?;
                remove_if_there(disk, &files::index(directory, first))?;
            }
        }
    }
    while let Some(last) = firsts.pop_if(|first| {
        let is_confirmed = head.is_some_and(|head| head.segment >= *first);
        !is_confirmed && is_bare(disk, directory, *first)
    }) {
        // Begun and never used: the next message may have an offset before its first.
        disk.remove(&files::segment(directory, last))?;
        remove_if_there(disk, &files::index(directory, last))?;
    }
    let mut before = None;
    for (place, first) in firsts.iter().enumerate() {
        let next = firsts.get(place + 1).copied();
        opened.add_segment(disk, directory, (*first, before, next), head)?;
        before = Some(*first);
    }
    opened.find_missing(directory, head);
    let confirmed = head.map(|head| head.segment);
    if firsts.last().copied() > confirmed {
        // Begun and not confirmed: its name may not be on the disk yet, and from now on messages in it are confirmed.
        disk.sync(directory)?;
        if let Some((vhost, _)) = directory.split_once('/') {
            disk.sync(vhost)?;
            disk.sync("")?;
        }
    }
    Ok(opened)
}

/// Whether a segment has no record.
fn is_bare(disk: &dyn Disk, directory: &str, first: u64) -> bool {
    let Ok(file) = disk.open_to_read(&files::segment(directory, first)) else {
        return false;
    };
    let bytes = file.bytes().unwrap_or(u64::MAX);
    let scanned = scan(&*file, &[], SEGMENT_HEAD_BYTES, (bytes, first), 0);
    scanned.is_ok_and(|scanned| scanned.records == 0)
}

impl Opened {
    fn add_segment(
        &mut self,
        disk: &dyn Disk,
        directory: &str,
        (first, before, next): (u64, Option<u64>, Option<u64>),
        head: Option<Head>,
    ) -> io::Result<()> {
        let path = files::segment(directory, first);
        let file = open_or_create(disk, &path)?;
        let bytes = file.bytes()?;
        let synced = match head {
            Some(head) if head.segment == first => head.bytes,
            _ => 0,
        };
        let is_valid = self.check_head(&*file, directory, (first, before))?;
        if !is_valid && bytes <= SEGMENT_HEAD_BYTES && synced == 0 {
            // Begun, and never confirmed.
            disk.remove(&path)?;
            return remove_if_there(disk, &files::index(directory, first));
        }
        let mut segment = Segment {
            first,
            bytes,
            first_at_ms: 0,
            last_at_ms: 0,
        };
        let index_file = open_or_create(disk, &files::index(directory, first))?;
        let (entries, _) = index::read(&*index_file, bytes)?;
        segment.first_at_ms = match entries.first() {
            Some(entry) if entry.position == SEGMENT_HEAD_BYTES => entry.at_ms,
            _ => first_at_ms(&*file, &entries, bytes)?,
        };
        if let Some(last) = self.table.segments.back_mut() {
            // At most: a message is kept rather too long than not long enough.
            last.last_at_ms = segment.first_at_ms.max(last.first_at_ms);
        }
        if let Some(next) = next {
            // Its records are read when they are wanted.
            if bytes < synced {
                self.damage(path, bytes, (first, next));
            }
            self.table.segments.push_back(segment);
            return Ok(());
        }
        self.find_end(&*file, path, &entries, (&mut segment, synced))?;
        segment.last_at_ms = self.table.last_at_ms;
        self.table.is_sealed |= !is_valid || bytes < SEGMENT_HEAD_BYTES;
        self.table.segments.push_back(segment);
        Ok(())
    }

    /// Whether a segment's head is its own. Damage of the segment before it is noted.
    fn check_head(
        &mut self,
        file: &dyn DiskFile,
        directory: &str,
        (first, before): (u64, Option<u64>),
    ) -> io::Result<bool> {
        let start = read_part(file, 0, SEGMENT_HEAD_BYTES)?;
        Ok(match unsealed(&start) {
            Some([MAGIC, own, previous, previous_bytes]) => {
                if let Some(before) = before
                    && previous != before
                {
                    self.damage(files::segment(directory, previous), 0, (before, first));
                } else if let Some(last) = self.table.segments.back_mut() {
                    let (bytes, from) = (last.bytes, last.first);
                    // What was refused and could not be cut is behind its end.
                    last.bytes = bytes.min(previous_bytes);
                    if bytes < previous_bytes {
                        self.damage(files::segment(directory, previous), bytes, (from, first));
                    }
                }
                own == first
            }
            _ => false,
        })
    }

    /// Finds the end of the newest segment, and cuts what is torn.
    fn find_end(
        &mut self,
        file: &dyn DiskFile,
        path: String,
        entries: &[Entry],
        (segment, synced): (&mut Segment, u64),
    ) -> io::Result<()> {
        let bytes = segment.bytes;
        let from = entries.last().map_or(SEGMENT_HEAD_BYTES, |e| e.position);
        let mut scanned = scan(file, entries, from, (bytes, segment.first), synced)?;
        if scanned.records == 0 && from > SEGMENT_HEAD_BYTES {
            scanned = scan(
                file,
                &[],
                SEGMENT_HEAD_BYTES,
                (bytes, segment.first),
                synced,
            )?;
        }
        for (position, from, to) in &scanned.gaps {
            self.damage(path.clone(), *position, (*from, *to));
        }
        if scanned.end < synced {
            // The confirmed end cannot be read: nothing is written over it.
            let to = self.table.end.max(scanned.offset);
            self.damage(path, scanned.end, (scanned.offset, to));
            self.table.is_sealed = true;
        } else {
            let end = scanned.end.max(SEGMENT_HEAD_BYTES);
            if end < bytes {
                file.set_bytes(end)?;
            }
            if synced < bytes {
                // Readers get what was not confirmed, too.
                file.sync()?;
            }
            segment.bytes = end;
        }
        if scanned.records > 0 {
            self.table.end = self.table.end.max(scanned.offset);
            self.table.last_at_ms = self.table.last_at_ms.max(scanned.last_at_ms);
        }
        Ok(())
    }

    fn damage(&mut self, path: String, position: u64, (from, to): (u64, u64)) {
        self.damages.push(Damage {
            path,
            position,
            from,
            to,
        });
    }

    /// Whether the newest segment that the head names is there.
    fn find_missing(&mut self, directory: &str, head: Option<Head>) {
        let Some(head) = head.filter(|head| head.bytes > SEGMENT_HEAD_BYTES) else {
            return;
        };
        // A later one says that the head is old, and its own link is checked.
        let newest = self.table.segments.back();
        if newest.is_some_and(|newest| newest.first >= head.segment) {
            return;
        }
        let path = files::segment(directory, head.segment);
        self.damage(path, 0, (head.segment, head.end));
        self.table.is_sealed = true;
    }
}

/// What records a part of a segment has.
struct Scanned {
    records: usize,
    /// The byte behind the last record.
    end: u64,
    /// The offset behind it, or the first one if there is none.
    offset: u64,
    last_at_ms: u64,
    /// Places between records that are none: the byte, and the offsets around it.
    gaps: Vec<(u64, u64, u64)>,
}

fn scan(
    file: &dyn DiskFile,
    entries: &[Entry],
    from: u64,
    (bytes, first): (u64, u64),
    synced: u64,
) -> io::Result<Scanned> {
    let mut scanned = Scanned {
        records: 0,
        end: from,
        offset: first,
        last_at_ms: 0,
        gaps: Vec::new(),
    };
    let mut window = Window::default();
    let mut position = from;
    while let Some((at, head)) =
        window.next_record(file, entries, (position, bytes), scanned.offset)?
    {
        if at > position && position >= synced {
            // Nothing says that this was confirmed: a power loss keeps some writes of a group and not others.
            break;
        }
        if at > position {
            scanned.gaps.push((position, scanned.offset, head.offset));
        }
        position = at + head.bytes as u64;
        scanned.records += 1;
        scanned.end = position;
        scanned.offset = head.offset + 1;
        scanned.last_at_ms = head.at_ms;
    }
    Ok(scanned)
}

fn first_at_ms(file: &dyn DiskFile, entries: &[Entry], bytes: u64) -> io::Result<u64> {
    let within = (SEGMENT_HEAD_BYTES, bytes);
    let found = Window::default().next_record(file, entries, within, 0)?;
    Ok(found.map_or(0, |(_, head)| head.at_ms))
}

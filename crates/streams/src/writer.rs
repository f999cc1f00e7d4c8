//! Writes what waits for many streams as one group: each file is written and synced once.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crosstie_disk::{Disk, DiskFile, open_or_create, remove_if_there};
use crosstie_queues::{StreamAppend, StreamPage, StreamPlace};

use crate::files;
use crate::head::Head;
use crate::index::{self, Entry};
use crate::log::{Log, Segment, Table, segment_head};
use crate::record::{self, Found, SEGMENT_HEAD_BYTES};

/// Bytes from which on a segment is full, unless the stream says otherwise. As in RabbitMQ.
const SEGMENT_BYTES: u64 = 500_000_000;

/// A stream with so many segments begins no shorter ones than these: each costs a file and memory.
const SEGMENTS_MANY: usize = 10_000;
const SEGMENT_BYTES_OF_MANY: u64 = 8 << 20;

/// Bytes between two entries of an index.
const INDEX_BYTES: u64 = 64 << 10;

/// Maximum streams whose files stay open for writing, three each.
const OPEN_MAX: usize = 64;

/// Longer groups are read back from the disk by readers that wait.
const PAGE_BYTES_MAX: usize = 1 << 20;

pub(crate) struct Writer {
    disk: Arc<dyn Disk>,
    open: HashMap<String, Open>,
    uses: u64,
}

/// The files of a stream's newest segment.
struct Open {
    head: Arc<dyn DiskFile>,
    segment: Arc<dyn DiskFile>,
    index: Arc<dyn DiskFile>,
    index_bytes: u64,
    /// The byte from which on the next record has an entry in the index.
    index_at: u64,
    used: u64,
}

/// Messages of one stream that are written and not synced.
pub(crate) struct Staged {
    log: Arc<Log>,
    /// As it will be.
    table: Table,
    /// The newest segment before, and its bytes.
    before: Option<Segment>,
    /// How many segments were begun.
    begun: usize,
    page: Option<StreamPage>,
}

impl Writer {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            open: HashMap::new(),
            uses: 0,
        }
    }

    /// Writes messages to the end of a stream. After an error nothing of them is left.
    pub(crate) fn stage(&mut self, log: &Arc<Log>, appends: &[StreamAppend]) -> io::Result<Staged> {
        let table = log.table().clone();
        let before = table.segments.back().copied().filter(|_| !table.is_sealed);
        let mut staged = Staged {
            log: Arc::clone(log),
            table,
            before,
            begun: 0,
            page: None,
        };
        match self.write(&mut staged, appends) {
            Ok(()) => Ok(staged),
            Err(error) => {
                self.take_back(&staged);
                Err(error)
            }
        }
    }

    fn write(&mut self, staged: &mut Staged, appends: &[StreamAppend]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut heads = Vec::with_capacity(appends.len());
        // The part of the bytes that is not in a file yet.
        let mut flushed = 0;
        for append in appends {
            if staged.is_full(append) {
                self.flush(staged, &bytes[flushed..])?;
                flushed = bytes.len();
                self.begin_segment(staged, append.offset)?;
            }
            let start = bytes.len();
            record::write(append.offset, append.at.0, &append.content, &mut bytes);
            let Some(segment) = staged.table.segments.back_mut() else {
                continue;
            };
            let position = segment.bytes;
            segment.bytes += (bytes.len() - start) as u64;
            if position == SEGMENT_HEAD_BYTES {
                segment.first_at_ms = append.at.0;
            }
            segment.last_at_ms = append.at.0;
            staged.table.end = append.offset + 1;
            staged.table.last_at_ms = append.at.0;
            heads.push(start);
            let open = self.open(&staged.log, &staged.table)?;
            if position >= open.index_at {
                let mut entry = Vec::new();
                Entry {
                    offset: append.offset,
                    at_ms: append.at.0,
                    position,
                }
                .write(&mut entry);
                // Before its record, which it is compared with.
                open.index.write_at(&entry, open.index_bytes)?;
                open.index_bytes += entry.len() as u64;
                open.index_at = position + INDEX_BYTES;
            }
        }
        self.flush(staged, &bytes[flushed..])?;
        if bytes.len() <= PAGE_BYTES_MAX {
            staged.page = staged.page_of(bytes, &heads);
        }
        Ok(())
    }

    /// Writes bytes at the end of the newest segment, which counts them already.
    fn flush(&mut self, staged: &Staged, bytes: &[u8]) -> io::Result<()> {
        let Some(segment) = staged.table.segments.back().filter(|_| !bytes.is_empty()) else {
            return Ok(());
        };
        let at = segment.bytes - bytes.len() as u64;
        let open = self.open(&staged.log, &staged.table)?;
        open.segment.write_at(bytes, at)
    }

    /// Syncs the newest segment, and begins another.
    fn begin_segment(&mut self, staged: &mut Staged, first: u64) -> io::Result<()> {
        let directory = &staged.log.directory;
        let before = staged.table.segments.back().copied();
        if before.is_some() && !staged.table.is_sealed {
            self.open(&staged.log, &staged.table)?.segment.sync()?;
        }
        self.open.remove(directory);
        if before.is_none() {
            self.disk.make_directory(directory)?;
        }
        remove_if_there(&*self.disk, &files::index(directory, first))?;
        let segment = open_or_create(&*self.disk, &files::segment(directory, first))?;
        staged.begun += 1;
        staged.table.is_sealed = false;
        staged.table.segments.push_back(Segment {
            first,
            bytes: SEGMENT_HEAD_BYTES,
            first_at_ms: 0,
            last_at_ms: 0,
        });
        segment.set_bytes(0)?;
        segment.write_at(&segment_head(first, before), 0)?;
        Ok(())
    }

    /// The files of a stream's newest segment.
    fn open(&mut self, log: &Log, table: &Table) -> io::Result<&mut Open> {
        self.uses += 1;
        let uses = self.uses;
        if !self.open.contains_key(&log.directory) {
            if self.open.len() >= OPEN_MAX
                && let Some(oldest) = self.open.iter().min_by_key(|(_, open)| open.used)
            {
                let oldest = oldest.0.clone();
                self.open.remove(&oldest);
            }
            let open = self.open_files(log, table)?;
            self.open.insert(log.directory.clone(), open);
        }
        let open = self.open.get_mut(&log.directory);
        let open = open.ok_or_else(|| io::Error::other("a stream has no files"))?;
        open.used = uses;
        Ok(open)
    }

    fn open_files(&self, log: &Log, table: &Table) -> io::Result<Open> {
        let directory = &log.directory;
        let newest = table.segments.back();
        let (first, bytes) = newest.map_or((0, 0), |segment| (segment.first, segment.bytes));
        let index = open_or_create(&*self.disk, &files::index(directory, first))?;
        let (entries, index_bytes) = index::read(&*index, bytes)?;
        if index.bytes()? > index_bytes {
            // Entries of records that were taken back must not count for those in their place.
            index.set_bytes(index_bytes)?;
        }
        Ok(Open {
            head: open_or_create(&*self.disk, &files::head(directory))?,
            segment: open_or_create(&*self.disk, &files::segment(directory, first))?,
            index,
            index_bytes,
            index_at: entries.last().map_or(0, |last| last.position + INDEX_BYTES),
            used: 0,
        })
    }

    /// Makes what was written last. The names of new streams are for [`Self::sync_names`].
    pub(crate) fn sync(&mut self, staged: &Staged) -> io::Result<()> {
        self.open(&staged.log, &staged.table)?.segment.sync()?;
        if staged.begun > 0 {
            self.disk.sync(&staged.log.directory)?;
        }
        Ok(())
    }

    /// Makes the names of a vhost's new streams last, and that of its directory, which may be new as well. A group of many
    /// new streams costs one such sync.
    pub(crate) fn sync_names<'s>(
        &self,
        mut staged: impl Iterator<Item = &'s Staged>,
    ) -> io::Result<()> {
        let Some(new) = staged.find(|staged| staged.is_new()) else {
            return Ok(());
        };
        let directory = &new.log.directory;
        let vhost = directory.split_once('/').map_or("", |(vhost, _)| vhost);
        self.disk.sync(vhost)?;
        self.disk.sync("")
    }

    /// Lets readers have what was synced, and notes it in the head. Returns the messages if they are few, and whether
    /// a segment was begun.
    pub(crate) fn publish(&mut self, staged: Staged) -> (Option<StreamPage>, bool) {
        *staged.log.table() = staged.table;
        // Without it a start serves the same, and could not tell whether damage at the end was confirmed.
        let _ = self.note(&staged.log);
        (staged.page, staged.begun > 0)
    }

    /// Notes in a stream's head what is synced.
    pub(crate) fn note(&mut self, log: &Log) -> io::Result<()> {
        let table = log.table().clone();
        let newest = table.segments.back();
        let head = Head {
            first: table.segments.front().map_or(table.end, |s| s.first),
            segment: newest.map_or(table.end, |segment| segment.first),
            bytes: newest.map_or(0, |segment| segment.bytes),
            end: table.end,
            last_at_ms: table.last_at_ms,
        };
        let open = self.open(log, &table)?;
        head.write(&*open.head)
    }

    /// Takes back what was written and is not confirmed.
    pub(crate) fn take_back(&mut self, staged: &Staged) {
        let directory = &staged.log.directory;
        self.open.remove(directory);
        let begun = staged.table.segments.iter().rev().take(staged.begun);
        let mut undone = begun
            .map(|segment| {
                remove_if_there(&*self.disk, &files::index(directory, segment.first))?;
                remove_if_there(&*self.disk, &files::segment(directory, segment.first))
            })
            .fold(Ok(()), Result::and);
        if staged.begun > 0 {
            // A power loss must not bring them back.
            let synced = self.disk.sync(directory);
            undone = undone.and(synced);
        }
        if let Some(before) = staged.before {
            let cut = self
                .disk
                .open(&files::segment(directory, before.first))
                .and_then(|file| file.set_bytes(before.bytes).and_then(|()| file.sync()));
            undone = undone.and(cut);
        }
        if undone.is_err() {
            // What is left there is not read, and the next message begins another segment.
            staged.log.table().is_sealed = true;
        }
    }

    /// Removes the segments that have to go. Returns the paths of their files, for the caller to remove, if there are
    /// any.
    pub(crate) fn retire(&mut self, log: &Log, now_ms: u64) -> Vec<String> {
        let mut paths = Vec::new();
        {
            let mut table = log.table();
            let expired = table.expired(&log.limits(), now_ms);
            for segment in table.segments.drain(..expired) {
                paths.push(files::segment(&log.directory, segment.first));
                paths.push(files::index(&log.directory, segment.first));
            }
        }
        if !paths.is_empty() {
            // First: a start does not bring them back. They go in any case, as their space is needed.
            let _ = self.note(log);
        }
        paths
    }

    /// Forgets a deleted stream.
    pub(crate) fn forget(&mut self, directory: &str) {
        self.open.remove(directory);
    }
}

impl Staged {
    /// Whether the stream had no file before.
    fn is_new(&self) -> bool {
        self.before.is_none() && self.begun == self.table.segments.len()
    }

    /// Whether a message begins another segment.
    fn is_full(&self, append: &StreamAppend) -> bool {
        let limits = &append.limits;
        let Some(segment) = self.table.segments.back().filter(|_| !self.table.is_sealed) else {
            return true;
        };
        if segment.bytes <= SEGMENT_HEAD_BYTES {
            return false;
        }
        let mut bytes_max = limits.segment_bytes_max.unwrap_or(SEGMENT_BYTES);
        if self.table.segments.len() >= SEGMENTS_MANY {
            bytes_max = bytes_max.max(SEGMENT_BYTES_OF_MANY);
        }
        // A segment that is never full would keep messages for ever, whatever their age.
        let age_ms = append.at.0.saturating_sub(segment.first_at_ms);
        segment.bytes >= bytes_max || limits.age_max_ms.is_some_and(|max| age_ms > max)
    }

    /// The messages for readers that wait for them.
    fn page_of(&self, bytes: Vec<u8>, starts: &[usize]) -> Option<StreamPage> {
        let newest = self.table.segments.back()?;
        let from = StreamPlace {
            offset: self.log.table().end,
            ..StreamPlace::default()
        };
        let mut heads = Vec::with_capacity(starts.len());
        for start in starts {
            match record::read(&bytes[*start..]) {
                Found::Record(head) => heads.push((*start, head)),
                _ => return None,
            }
        }
        let mut page = StreamPage::new(bytes, from);
        for (start, head) in heads {
            if !record::add_to(&mut page, start, &head) {
                return None;
            }
        }
        page.after = StreamPlace {
            offset: self.table.end,
            segment: newest.first,
            position: newest.bytes,
        };
        Some(page)
    }
}

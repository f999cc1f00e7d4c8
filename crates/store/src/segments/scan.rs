//! Reads the records of a segment, and tells damage from the end.
//!
//! A commit is written after the one before it was synced. So if a whole record of a later commit follows, what is
//! missing before it had been written: it is damage. If only records of the same commit follow, the process ended in
//! the middle of it, and it was never confirmed.

use std::io;

use crosstie_disk::{DiskFile, read_part};

use super::record::{ALIGNMENT, HEADER_BYTES, Header, Salt};
use super::segment::SEGMENT_HEAD_BYTES;

/// The bounds of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) first_sequence: u64,
    /// The first sequence of the next segment, if there is one: everything before it was committed.
    pub(crate) end_sequence: Option<u64>,
    /// The last sequence that was confirmed, as far as it is known.
    pub(crate) confirmed: u64,
    pub(crate) salt: Salt,
}

/// The outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// The sequence after the last committed record.
    pub(crate) next_sequence: u64,
    /// The end of the committed records in the file.
    pub(crate) end: u64,
    /// Sequences that are missing, from and to.
    pub(crate) gaps: Vec<(u64, u64)>,
    /// Wrong bits in headers that were corrected.
    pub(crate) repaired: u64,
}

/// A committed record. The payload is `None` if it is not as it was written.
pub(crate) struct Found<'a> {
    pub(crate) header: Header,
    pub(crate) offset: u64,
    pub(crate) payload: Option<&'a [u8]>,
}

/// Calls `visit` for each committed record, in order.
pub(crate) fn scan(
    file: &dyn DiskFile,
    bounds: Bounds,
    visit: &mut dyn FnMut(&Found<'_>),
) -> io::Result<Scanned> {
    let mut scan = Scan {
        window: Window::new(file, bounds.salt)?,
        bounds,
        scanned: Scanned::default(),
        pending: Vec::new(),
        commit: bounds.first_sequence,
        expected: bounds.first_sequence,
        at: SEGMENT_HEAD_BYTES,
    };
    scan.run(visit)?;
    Ok(scan.scanned)
}

struct Scan<'f> {
    window: Window<'f>,
    bounds: Bounds,
    scanned: Scanned,
    /// Records of the commit that is being read, with their offsets.
    pending: Vec<(Header, u64)>,
    /// The sequence of its first record.
    commit: u64,
    /// The next sequence.
    expected: u64,
    at: u64,
}

impl Scan<'_> {
    fn run(&mut self, visit: &mut dyn FnMut(&Found<'_>)) -> io::Result<()> {
        self.scanned.end = self.at;
        loop {
            if self.is_at_end() {
                break;
            }
            if let Some(header) = self.next_header()? {
                self.pending.push((header, self.at));
                self.expected = header.sequence + 1;
                self.at += header.record_bytes();
                if header.is_last {
                    if self.is_torn()? {
                        self.pending.clear();
                        self.expected = self.commit;
                        break;
                    }
                    self.flush(visit)?;
                }
            } else if !self.resume(visit)? {
                break;
            }
        }
        self.end(visit)
    }

    /// Records from there on do not count any more.
    fn is_at_end(&self) -> bool {
        let end = self.bounds.end_sequence;
        end.is_some_and(|end| self.expected >= end)
    }

    /// The record at the present offset, if it is the next one.
    fn next_header(&mut self) -> io::Result<Option<Header>> {
        let at = self.at;
        let Some(bytes) = self.window.header(at)? else {
            return Ok(None);
        };
        let (expected, commit) = (self.expected, self.commit);
        let is_next =
            |header: &Header| header.sequence == expected && header.commit_start() == commit;
        let salt = self.bounds.salt;
        if let Some(header) = Header::decode(&bytes, salt) {
            return Ok(Some(header).filter(is_next));
        }
        let repaired = Header::repair(&bytes, salt).filter(is_next);
        self.scanned.repaired += u64::from(repaired.is_some());
        Ok(repaired)
    }

    /// Whether the commit that was just read was never synced: a payload is not whole, the commit was not confirmed,
    /// and no later one follows.
    fn is_torn(&mut self) -> io::Result<bool> {
        if self.bounds.end_sequence.is_some() || self.expected <= self.bounds.confirmed + 1 {
            return Ok(false);
        }
        let mut is_whole = true;
        for (header, offset) in std::mem::take(&mut self.pending) {
            is_whole &= self.window.payload(&header, offset)?.is_some();
            self.pending.push((header, offset));
        }
        if is_whole {
            return Ok(false);
        }
        let follows = self.later_header(self.at, self.expected)?;
        Ok(follows.is_none_or(|(_, header)| header.commit_start() < self.expected))
    }

    /// The first header from an offset on with that sequence or a later one, and its offset.
    fn later_header(&mut self, from: u64, sequence: u64) -> io::Result<Option<(u64, Header)>> {
        let mut at = from;
        while let Some(bytes) = self.window.header(at)? {
            if Header::may_follow(&bytes, sequence)
                && let Some(header) = Header::decode(&bytes, self.bounds.salt)
                && self.is_possible(&header)
            {
                return Ok(Some((at, header)));
            }
            at += ALIGNMENT as u64;
        }
        Ok(None)
    }

    /// A record of the present commit, or of one that begins after all that was read.
    fn is_possible(&self, header: &Header) -> bool {
        let start = header.commit_start();
        start == self.commit || start >= self.expected
    }

    /// Looks for a later record. Returns whether there is one before which something is missing.
    fn resume(&mut self, visit: &mut dyn FnMut(&Found<'_>)) -> io::Result<bool> {
        let from = self.at + ALIGNMENT as u64;
        let Some((at, found)) = self.later_header(from, self.expected + 1)? else {
            return Ok(false);
        };
        let is_superseded = |end| found.sequence >= end;
        if self.bounds.end_sequence.is_some_and(is_superseded) {
            return Ok(false);
        }
        let is_damage = self.bounds.end_sequence.is_some()
            || found.commit_start() > self.expected
            || found.sequence <= self.bounds.confirmed
            || self.is_followed(at + found.record_bytes())?;
        if !is_damage {
            return Ok(false);
        }
        let gap = (self.expected, found.sequence - 1);
        self.scanned.gaps.push(gap);
        if found.commit_start() != self.commit {
            // Its last record is missing; the next commit proves that it was whole.
            self.flush(visit)?;
        }
        self.commit = found.commit_start();
        self.expected = found.sequence;
        self.at = at;
        Ok(true)
    }

    /// Whether a later commit than the present one follows from an offset on.
    fn is_followed(&mut self, from: u64) -> io::Result<bool> {
        let mut at = from;
        while let Some((found_at, found)) = self.later_header(at, self.expected + 1)? {
            if found.commit_start() > self.expected {
                return Ok(true);
            }
            at = found_at + found.record_bytes();
        }
        Ok(false)
    }

    /// The commit is whole.
    fn flush(&mut self, visit: &mut dyn FnMut(&Found<'_>)) -> io::Result<()> {
        for (header, offset) in std::mem::take(&mut self.pending) {
            let payload = self.window.payload(&header, offset)?;
            visit(&Found {
                header,
                offset,
                payload,
            });
        }
        self.commit = self.expected;
        self.scanned.end = self.at;
        self.scanned.next_sequence = self.expected;
        Ok(())
    }

    fn end(&mut self, visit: &mut dyn FnMut(&Found<'_>)) -> io::Result<()> {
        let confirmed_end = match self.bounds.end_sequence {
            Some(end) => end,
            None => self.bounds.confirmed + 1,
        };
        if self.expected < confirmed_end {
            self.scanned.gaps.push((self.expected, confirmed_end - 1));
        }
        let is_confirmed = self.commit < confirmed_end;
        if is_confirmed && !self.pending.is_empty() {
            self.flush(visit)?;
        }
        self.scanned.next_sequence = self.commit.max(confirmed_end);
        Ok(())
    }
}

/// A part of a file that is read from the front.
pub(crate) struct Window<'f> {
    file: &'f dyn DiskFile,
    salt: Salt,
    file_bytes: u64,
    bytes: Vec<u8>,
    start: u64,
    /// Nothing from there on is read before it is needed.
    end: u64,
}

const WINDOW_BYTES: u64 = 1 << 20;

impl<'f> Window<'f> {
    pub(crate) fn new(file: &'f dyn DiskFile, salt: Salt) -> io::Result<Self> {
        Ok(Self {
            file,
            salt,
            file_bytes: file.bytes()?,
            bytes: Vec::new(),
            start: 0,
            end: u64::MAX,
        })
    }

    /// Ends what is read ahead.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.end = end;
    }

    /// Whether these bytes of the file are in memory.
    pub(crate) fn has(&self, from: u64, to: u64) -> bool {
        self.start <= from && to <= self.start + self.bytes.len() as u64
    }

    fn header(&mut self, at: u64) -> io::Result<Option<[u8; HEADER_BYTES]>> {
        let bytes = self.get(at, HEADER_BYTES as u64)?;
        Ok(bytes.and_then(|bytes| bytes.first_chunk().copied()))
    }

    /// The record at an offset, whatever its sequence.
    pub(crate) fn record(&mut self, at: u64) -> io::Result<Option<(Header, &[u8])>> {
        let Some(bytes) = self.header(at)? else {
            return Ok(None);
        };
        let (salt, decoded) = (self.salt, Header::decode(&bytes, self.salt));
        let Some(header) = decoded.or_else(|| Header::repair(&bytes, salt)) else {
            return Ok(None);
        };
        let payload = self.payload(&header, at)?;
        Ok(payload.map(|payload| (header, payload)))
    }

    fn payload(&mut self, header: &Header, at: u64) -> io::Result<Option<&[u8]>> {
        let payload = self.get(at + HEADER_BYTES as u64, header.payload_bytes.into())?;
        Ok(payload.filter(|payload| crc32fast::hash(payload) == header.payload_checksum))
    }

    /// Bytes of the file; `None` beyond its end.
    fn get(&mut self, at: u64, count: u64) -> io::Result<Option<&[u8]>> {
        if at + count > self.file_bytes {
            return Ok(None);
        }
        if !self.has(at, at + count) {
            let ahead = self.end.saturating_sub(at).min(WINDOW_BYTES);
            let wanted = count.max(ahead).min(self.file_bytes - at);
            self.bytes = read_part(self.file, at, wanted)?;
            self.start = at;
        }
        let from = (at - self.start) as usize;
        Ok(self.bytes.get(from..from + count as usize))
    }
}

//! The bytes that wait to be sent on one connection.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem;

use bytes::Bytes;

/// Bytes in the order of their appends: runs for this connection alone, and runs shared with other connections (one
/// event's bytes, for all its receivers).
///
/// A queue is first appended to, then taken whole and consumed; never both at once. An idle one holds no memory:
/// emptied buffers return to the thread's spare ones.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Runs before `tail`, oldest first; the first `sent` bytes of the front are sent already. Boxed, because most
    /// queues have none.
    runs: Option<Box<Runs>>,
    sent: usize,
    /// The open run that appending writes to.
    tail: Vec<u8>,
}

#[derive(Debug, Default)]
struct Runs {
    runs: VecDeque<Run>,
    /// Bytes of all runs, sent or not: a run is kept whole.
    bytes: usize,
    /// Those of shared runs.
    shared_bytes: usize,
}

#[derive(Debug)]
enum Run {
    Own(Vec<u8>),
    Shared(Bytes),
    /// Shared bytes that are not a whole item: it began in the run before, or ends in the next.
    Part(Bytes),
}

/// Maximum number of slices of one system call.
const SLICES_MAX: usize = 64;

/// A shared run shorter than this is copied: a slice of its own costs more than the copy.
pub(crate) const SHARED_BYTES_MIN: usize = 1024;

/// An open run is closed at this length: a longer buffer, doubled, would be half empty.
const TAIL_BYTES_MAX: usize = 128 * 1024;

impl Queue {
    /// A queue of bytes that were to bypass it.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            tail: bytes.to_vec(),
            ..Self::default()
        }
    }

    /// Appends the bytes that `write` writes; nothing if it fails.
    pub(crate) fn append<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.tail.len() >= TAIL_BYTES_MAX {
            self.close_tail();
        }
        if self.tail.capacity() == 0 {
            self.tail = spare::take();
        }
        let before = self.tail.len();
        let written = write(&mut self.tail);
        if written.is_err() {
            self.tail.truncate(before);
        }
        self.give_back_empty_tail();
        written
    }

    /// Appends bytes that other connections send too.
    pub(crate) fn append_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            self.append_own(bytes);
        } else {
            self.close_tail();
            self.push(Run::Shared(bytes.clone()));
        }
    }

    /// Appends one item: `own` bytes, with each of `parts` inserted at its offset, in order. Other connections may send
    /// the parts too.
    pub(crate) fn append_parts(&mut self, own: &[u8], parts: &[(usize, &Bytes)]) {
        let copied = |length: &usize| *length < SHARED_BYTES_MIN;
        let lengths = parts.iter().map(|(_, part)| part.len());
        self.open_tail(own.len() + lengths.filter(copied).sum::<usize>());
        let mut done = 0;
        for (place, part) in parts {
            self.append_own(&own[done..*place]);
            done = *place;
            if part.len() < SHARED_BYTES_MIN {
                self.append_own(part);
                continue;
            }
            self.close_tail();
            self.push(Run::Part(Bytes::clone(part)));
        }
        self.append_own(&own[done..]);
    }

    fn append_own(&mut self, bytes: &[u8]) {
        self.open_tail(bytes.len());
        self.tail.extend_from_slice(bytes);
    }

    /// Makes sure that the open run has a buffer, if `bytes` are to be appended.
    fn open_tail(&mut self, bytes: usize) {
        if self.tail.capacity() == 0 && bytes > 0 {
            self.tail = spare::take_for(bytes);
        }
    }

    fn push(&mut self, run: Run) {
        self.runs.get_or_insert_default().push(run);
    }

    /// Bytes that are kept for this queue alone.
    pub(crate) fn own_bytes(&self) -> usize {
        let tail = self.tail.len();
        let Some(runs) = &self.runs else { return tail };
        tail + runs.bytes - runs.shared_bytes + runs.runs.len() * size_of::<Run>()
    }

    /// Bytes that are kept for others too.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.runs.as_ref().map_or(0, |runs| runs.shared_bytes)
    }

    /// Bytes waiting.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let closed = self.runs.as_ref().map_or(0, |runs| runs.bytes);
        closed + self.tail.len() - self.sent
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The usual case, one run: its unsent bytes. `None` if there are several.
    pub(crate) fn single(&self) -> Option<&[u8]> {
        match self.runs {
            None => Some(&self.tail[self.sent..]),
            Some(_) => None,
        }
    }

    /// The first `bytes_max` unsent bytes as slices for one system call, up to its maximum.
    pub(crate) fn slices(&self, bytes_max: usize) -> Vec<IoSlice<'_>> {
        let mut skip = self.sent;
        let mut left = bytes_max;
        let closed = self.runs.iter().flat_map(|runs| &runs.runs);
        let count = self.runs.as_ref().map_or(0, |runs| runs.runs.len()) + 1;
        let runs = closed.map(Run::bytes).chain([&self.tail[..]]);
        let mut slices = Vec::with_capacity(count.min(SLICES_MAX));
        for bytes in runs.take(SLICES_MAX) {
            if bytes.len() > skip {
                let bytes = &bytes[skip..];
                let length = bytes.len().min(left);
                slices.push(IoSlice::new(&bytes[..length]));
                left -= length;
            }
            if left == 0 {
                break;
            }
            skip = 0;
        }
        slices
    }

    /// Appends the first `count` unsent bytes to `out`.
    pub(crate) fn copy_to(&self, count: usize, out: &mut Vec<u8>) {
        let mut skip = self.sent;
        let mut left = count;
        let closed = self.runs.iter().flat_map(|runs| &runs.runs);
        for bytes in closed.map(Run::bytes).chain([&self.tail[..]]) {
            let unsent = bytes.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(bytes.len());
            let copied = &unsent[..unsent.len().min(left)];
            out.extend_from_slice(copied);
            left -= copied.len();
            if left == 0 {
                return;
            }
        }
    }

    /// Applies `transform` to each run, and calls it once even without any. Nothing of this queue has been consumed, so
    /// a run consists of whole appended items.
    pub(crate) fn transformed<E>(
        mut self,
        mut transform: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Self, E> {
        debug_assert_eq!(self.sent, 0, "a part of the queue has been sent");
        self.join_parts();
        let mut out = spare::take();
        for run in self.runs.take().into_iter().flat_map(|runs| runs.runs) {
            transform(run.bytes(), &mut out)?;
            if let Run::Own(buffer) = run {
                spare::put(buffer);
            }
        }
        if !self.tail.is_empty() || out.is_empty() {
            transform(&self.tail, &mut out)?;
        }
        spare::put(self.tail);
        let mut transformed = Self {
            tail: out,
            ..Self::default()
        };
        transformed.give_back_empty_tail();
        Ok(transformed)
    }

    /// Applies `filter` to each run. Nothing of this queue has been consumed, so a run consists of whole appended items.
    pub(crate) fn filtered<E>(
        mut self,
        mut filter: impl FnMut(&[u8], &mut Self) -> Result<(), E>,
    ) -> Result<Self, E> {
        debug_assert_eq!(self.sent, 0, "a part of the queue has been sent");
        self.join_parts();
        let mut out = Self::default();
        for run in self.runs.take().into_iter().flat_map(|runs| runs.runs) {
            filter(run.bytes(), &mut out)?;
            if let Run::Own(buffer) = run {
                spare::put(buffer);
            }
        }
        if !self.tail.is_empty() {
            filter(&self.tail, &mut out)?;
        }
        spare::put(self.tail);
        Ok(out)
    }

    /// Returns memory that a long wait would hold without need.
    pub(crate) fn shrink(&mut self) {
        self.tail.shrink_to_fit();
    }

    /// Drops the first `count` unsent bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "consumed {count} of {}", self.len());
        self.sent += count;
        if let Some(runs) = &mut self.runs {
            self.sent = runs.consume(self.sent);
            if !runs.runs.is_empty() {
                return;
            }
            self.runs = None;
        }
        if self.sent == self.tail.len() {
            self.sent = 0;
            spare::put(mem::take(&mut self.tail));
        }
    }

    /// Removes the `count` bytes that were appended last: whole items.
    pub(crate) fn truncate(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "took back {count} of {}", self.len());
        if count == 0 {
            return;
        }
        let of_tail = count.min(self.tail.len());
        self.tail.truncate(self.tail.len() - of_tail);
        self.give_back_empty_tail();
        if let Some(runs) = &mut self.runs {
            runs.truncate(count - of_tail);
            if runs.runs.is_empty() {
                self.runs = None;
            }
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let mut tail = mem::take(&mut self.tail);
            // A reused buffer may be much longer than its content, and wait for long.
            if tail.capacity() > 4 * tail.len().max(SHARED_BYTES_MIN) {
                tail.shrink_to_fit();
            }
            self.push(Run::Own(tail));
        }
    }

    fn join_parts(&mut self) {
        let Some(runs) = &mut self.runs else { return };
        let has_parts = runs.runs.iter().any(|run| matches!(run, Run::Part(_)));
        if has_parts
            && runs.join_parts()
            && let Some(Run::Own(last)) = runs.runs.back_mut()
        {
            last.extend_from_slice(&self.tail);
            runs.bytes += self.tail.len();
            spare::put(mem::take(&mut self.tail));
        }
    }

    fn give_back_empty_tail(&mut self) {
        if self.tail.is_empty() {
            spare::put(mem::take(&mut self.tail));
        }
    }
}

impl Runs {
    fn push(&mut self, run: Run) {
        let length = run.bytes().len();
        self.bytes += length;
        if !matches!(run, Run::Own(_)) {
            self.shared_bytes += length;
        }
        self.runs.push_back(run);
    }

    /// Drops the runs that are all sent, of `sent` bytes; returns how many bytes of the front are sent.
    fn consume(&mut self, mut sent: usize) -> usize {
        while let Some(front) = self.runs.front() {
            let length = front.bytes().len();
            if sent < length {
                break;
            }
            sent -= length;
            self.bytes -= length;
            match self.runs.pop_front() {
                Some(Run::Own(buffer)) => spare::put(buffer),
                Some(Run::Shared(_) | Run::Part(_)) => self.shared_bytes -= length,
                None => {}
            }
        }
        sent
    }

    /// Removes the last `count` bytes.
    fn truncate(&mut self, mut count: usize) {
        while count > 0
            && let Some(last) = self.runs.back_mut()
        {
            let length = last.bytes().len();
            match last {
                Run::Own(buffer) if length > count => {
                    self.bytes -= count;
                    return buffer.truncate(length - count);
                }
                Run::Own(_) => {}
                // Items end with it, or behind it.
                Run::Shared(_) | Run::Part(_) => self.shared_bytes -= length,
            }
            count = count.saturating_sub(length);
            self.bytes -= length;
            self.runs.pop_back();
        }
    }

    /// Joins an item's parts, and the items beside it, into one run; returns whether the tail belongs to it.
    fn join_parts(&mut self) -> bool {
        let mut joined = VecDeque::with_capacity(self.runs.len());
        let mut is_open = false;
        for run in mem::take(&mut self.runs) {
            let is_part = matches!(run, Run::Part(_));
            match joined.back_mut() {
                Some(Run::Own(last)) if is_part || is_open => last.extend_from_slice(run.bytes()),
                _ if is_part => joined.push_back(Run::Own(run.bytes().to_vec())),
                _ => joined.push_back(run),
            }
            is_open = is_part;
        }
        self.runs = joined;
        is_open
    }
}

impl Run {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(buffer) => buffer,
            Self::Shared(bytes) | Self::Part(bytes) => bytes,
        }
    }
}

/// Buffers to reuse, per thread, so that idle connections own none and busy ones rarely allocate.
pub(crate) mod spare {
    use std::cell::RefCell;

    /// Maximum number of buffers kept per thread.
    const COUNT_MAX: usize = 64;
    /// A buffer that one large message grew beyond this is freed, as is one smaller than the initial size.
    const BYTES_MAX: usize = 64 * 1024;
    const BYTES_FIRST: usize = 1024;

    thread_local! {
        static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    pub(crate) fn take() -> Vec<u8> {
        take_for(BYTES_FIRST)
    }

    /// A spare buffer, or a new one for `bytes`: the receivers of a fan-out outnumber the spare buffers, and each gets
    /// one small message.
    pub(crate) fn take_for(bytes: usize) -> Vec<u8> {
        SPARE
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    pub(crate) fn put(mut buffer: Vec<u8>) {
        if !(BYTES_FIRST..=BYTES_MAX).contains(&buffer.capacity()) {
            return;
        }
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < COUNT_MAX {
                buffer.clear();
                spare.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests;

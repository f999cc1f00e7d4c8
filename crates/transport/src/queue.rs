//! What waits to be sent on one connection.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem;

use bytes::Bytes;

/// Octets in the order they were appended: runs written for this connection alone, and runs
/// shared with other connections (one event's octets, for all who get it).
///
/// A queue is first appended to, then taken whole and consumed; never both at once. An idle one
/// holds no memory: emptied buffers go back to the thread's spare ones.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Runs before `tail`, oldest first; the first `sent` octets of the front are gone already.
    runs: VecDeque<Run>,
    sent: usize,
    /// The open run that appending writes to.
    tail: Vec<u8>,
    len: usize,
}

#[derive(Debug)]
enum Run {
    Own(Vec<u8>),
    Shared(Bytes),
}

/// Slices handed to one system call.
const SLICES_MAX: usize = 64;

/// A shared run shorter than this is copied: a slice of its own costs more than the copy.
const SHARED_BYTES_MIN: usize = 1024;

impl Queue {
    /// A queue of octets that were to be sent past it.
    pub(crate) fn of(octets: &[u8]) -> Self {
        Self {
            tail: octets.to_vec(),
            len: octets.len(),
            ..Self::default()
        }
    }

    /// Appends what `write` writes; nothing if it fails.
    pub(crate) fn append<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.tail.capacity() == 0 {
            self.tail = spare::take();
        }
        let before = self.tail.len();
        let written = write(&mut self.tail);
        if written.is_err() {
            self.tail.truncate(before);
        }
        self.len += self.tail.len() - before;
        self.give_back_empty_tail();
        written
    }

    /// Appends octets that other connections send too.
    pub(crate) fn append_shared(&mut self, octets: &Bytes) {
        if octets.len() < SHARED_BYTES_MIN {
            if self.tail.capacity() == 0 {
                self.tail = spare::take();
            }
            self.tail.extend_from_slice(octets);
        } else {
            self.close_tail();
            self.runs.push_back(Run::Shared(octets.clone()));
        }
        self.len += octets.len();
    }

    /// Octets waiting.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The usual case, one run: its unsent octets. `None` when there are several.
    pub(crate) fn single(&self) -> Option<&[u8]> {
        if self.runs.is_empty() {
            Some(&self.tail[self.sent..])
        } else {
            None
        }
    }

    /// The unsent octets as slices for one system call, as many as it takes.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut skip = self.sent;
        let runs = self.runs.iter().map(Run::octets).chain([&self.tail[..]]);
        let mut slices = Vec::with_capacity((self.runs.len() + 1).min(SLICES_MAX));
        for octets in runs.take(SLICES_MAX) {
            if octets.len() > skip {
                slices.push(IoSlice::new(&octets[skip..]));
            }
            skip = 0;
        }
        slices
    }

    /// A queue of what `transform` makes of each run. It is called once even when there is none.
    /// Nothing of this queue has been consumed, so that a run is made of whole appended items.
    pub(crate) fn transformed<E>(
        mut self,
        mut transform: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Self, E> {
        debug_assert_eq!(self.sent, 0, "a part of the queue has been sent");
        let mut out = spare::take();
        for run in mem::take(&mut self.runs) {
            transform(run.octets(), &mut out)?;
            if let Run::Own(buffer) = run {
                spare::put(buffer);
            }
        }
        if !self.tail.is_empty() || out.is_empty() {
            transform(&self.tail, &mut out)?;
        }
        spare::put(self.tail);
        let mut transformed = Self {
            len: out.len(),
            tail: out,
            ..Self::default()
        };
        transformed.give_back_empty_tail();
        Ok(transformed)
    }

    /// Gives back memory that a long wait would hold without need.
    pub(crate) fn shrink(&mut self) {
        self.tail.shrink_to_fit();
    }

    /// Forgets the first `count` unsent octets.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.len, "consumed {count} of {}", self.len);
        self.len -= count;
        self.sent += count;
        while let Some(front) = self.runs.front() {
            if self.sent < front.octets().len() {
                return;
            }
            self.sent -= front.octets().len();
            if let Some(Run::Own(buffer)) = self.runs.pop_front() {
                spare::put(buffer);
            }
        }
        if self.len == 0 {
            self.sent = 0;
            spare::put(mem::take(&mut self.tail));
        }
    }

    /// Takes back the `count` octets that were appended last, in one call.
    pub(crate) fn truncate(&mut self, count: usize) {
        debug_assert!(count <= self.len, "took back {count} of {}", self.len);
        self.len -= count;
        if count <= self.tail.len() && !self.tail.is_empty() {
            self.tail.truncate(self.tail.len() - count);
            self.give_back_empty_tail();
        } else {
            self.runs.pop_back();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            self.runs.push_back(Run::Own(mem::take(&mut self.tail)));
        }
    }

    fn give_back_empty_tail(&mut self) {
        if self.tail.is_empty() {
            spare::put(mem::take(&mut self.tail));
        }
    }
}

impl Run {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Own(buffer) => buffer,
            Self::Shared(octets) => octets,
        }
    }
}

/// Buffers to reuse, per thread, so that idle connections own none and busy ones never allocate.
pub(crate) mod spare {
    use std::cell::RefCell;

    /// Buffers kept per thread.
    const COUNT_MAX: usize = 64;
    /// A buffer that one large message grew beyond this is given back to the allocator, as is
    /// one smaller than the first.
    const BYTES_MAX: usize = 64 * 1024;
    const BYTES_FIRST: usize = 1024;

    thread_local! {
        static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    pub(crate) fn take() -> Vec<u8> {
        SPARE
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| Vec::with_capacity(BYTES_FIRST))
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

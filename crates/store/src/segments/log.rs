//! Writes commits: one write and one sync each, in the segment that is open.

mod opening;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crosstie_disk::{Disk, DiskFile, remove_if_there};

use super::draft::Draft;
use super::head::{Confirmed, Head};
use super::keeper::{Keeper, Spare, Task};
use super::record::Salt;
use super::recover::Recovered;
use super::segment::{SEGMENT_HEAD_BYTES, SegmentHead, segment_name};
use super::state::{Segment, State};
use opening::{list, reopen, spares, write};

/// The bounds of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogConfig {
    /// The size of a segment, unless one commit is larger.
    pub(crate) segment_bytes: u64,
    /// Of all segments together; a commit beyond it fails as on a full disk.
    pub(crate) bytes_max: Option<u64>,
    /// Whether zeros, indexes and removals have a thread of their own.
    pub(crate) has_thread: bool,
}

/// A log that is open for writing.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    state: Arc<Mutex<State>>,
    keeper: Keeper,
    head: Head,
    config: LogConfig,
    store: u64,
    /// The segment that takes the next commit.
    open: Option<Open>,
    number_last: u32,
    next_sequence: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    number: u32,
    file: Arc<dyn DiskFile>,
    /// The end of its records.
    end: u64,
    /// The end of its zeros.
    capacity: u64,
    /// A commit failed in it, so that nothing may follow there.
    is_spoiled: bool,
}

/// The operation that failed.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) doing: &'static str,
    pub(crate) error: io::Error,
}

impl Fault {
    pub(crate) fn when(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self { doing, error }
    }
}

/// Why a commit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It adds something: it does not take the last of the space.
    Adding,
    /// Space becomes free by it.
    Freeing,
}

/// A larger buffer is not kept.
const BUFFER_BYTES_MAX: usize = 2 << 20;

/// Offsets in a segment are numbers of 32 bits.
const COMMIT_BYTES_MAX: u64 = 3 << 30;

impl Log {
    /// Opens a recovered log for writing: removes what is not needed, and continues the last segment.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        recovered: Recovered,
        config: LogConfig,
    ) -> Result<Self, Fault> {
        let fault = Fault::when("opening it to write");
        let Recovered {
            mut manifest,
            state,
            confirmed: _,
            next_sequence,
            open,
            unindexed,
            unsure: _,
            leftover,
            loss: _,
            is_accepting,
            remains: _,
            given_up,
        } = recovered;
        let former = manifest.clone();
        let mut spares = spares(&*disk, config.segment_bytes).map_err(&fault)?;
        let number_last = state.segments.keys().next_back().copied().unwrap_or(0);
        let number_last = number_last.max(manifest.last);
        list(&mut manifest, &state, (number_last, next_sequence), open);
        let mends = !given_up.is_empty();
        manifest.list_missing(given_up);
        if is_accepting || manifest != former {
            write(&*disk, &manifest, (is_accepting, mends), &mut spares).map_err(&fault)?;
        }
        for name in leftover {
            // A file that stays is found again by the next start.
            let _ = disk.remove(&name);
        }
        let head = Head::open(&*disk).map_err(&fault)?;
        disk.sync("").map_err(&fault)?;
        let store = manifest.store;
        let open = match open {
            None => None,
            Some((number, end)) => {
                let open = reopen(&*disk, number, end, config.segment_bytes);
                Some(open.map_err(&fault)?)
            }
        };
        let state = Arc::new(Mutex::new(state));
        let keeper = Keeper::start(
            Arc::clone(&disk),
            Arc::clone(&state),
            (manifest, spares),
            config.segment_bytes,
            config.has_thread,
        );
        let log = Self {
            disk,
            state,
            keeper: keeper.map_err(&fault)?,
            head,
            config,
            store,
            open,
            number_last,
            next_sequence,
            buffer: Vec::new(),
        };
        for number in unindexed {
            log.index(number);
        }
        log.free();
        Ok(log)
    }

    pub(crate) fn state(&self) -> &Arc<Mutex<State>> {
        &self.state
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    pub(crate) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    pub(crate) fn store(&self) -> u64 {
        self.store
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The open segment's number.
    pub(crate) fn open_segment(&self) -> Option<u32> {
        self.open.as_ref().map(|open| open.number)
    }

    /// Whether a commit that failed is still in the open segment.
    #[cfg(test)]
    pub(crate) fn has_remnant(&self) -> bool {
        let Some(open) = self.open.as_ref().filter(|open| open.is_spoiled) else {
            return false;
        };
        let bytes = open.file.bytes().expect("a disk that can be read");
        let mut rest = vec![0; bytes.saturating_sub(open.end) as usize];
        let read = open.file.read_at(&mut rest, open.end);
        read.expect("a disk that can be read");
        rest.iter().any(|byte| *byte != 0)
    }

    /// Begins a commit of at most so many bytes.
    pub(crate) fn begin(&mut self, bytes_max: u64, purpose: Purpose) -> Result<Draft, Fault> {
        if bytes_max > COMMIT_BYTES_MAX {
            let error = io::Error::other("a commit of more than 3 GiB");
            return Err(Fault::when("writing it")(error));
        }
        let has_room = self.open.as_ref().is_some_and(|open| {
            let is_first = open.end == SEGMENT_HEAD_BYTES;
            !open.is_spoiled && (open.end + bytes_max <= open.capacity || is_first)
        });
        if !has_room {
            self.next_segment(purpose)
                .map_err(Fault::when("making a segment of it"))?;
        }
        let (number, end) = match &self.open {
            Some(open) => (open.number, open.end),
            None => (0, 0),
        };
        if let Some(bytes_max_all) = self.config.bytes_max
            && purpose == Purpose::Adding
            && self.lock().file_bytes_but(number) + end + bytes_max > bytes_max_all
        {
            return Err(Fault::when("writing it")(io::ErrorKind::StorageFull.into()));
        }
        let buffer = std::mem::take(&mut self.buffer);
        let salt = Salt::of(self.store);
        Ok(Draft::begin(
            (number, end),
            self.next_sequence,
            salt,
            buffer,
        ))
    }

    /// Makes sure that there is room for so many bytes, by zeros at the end of the open segment.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), Fault> {
        let draft = self.begin(bytes, Purpose::Adding)?;
        self.buffer = draft.abandon();
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let written = open.file.write_zeros(bytes, open.end);
        let synced = written.and_then(|()| open.file.sync());
        if synced.is_err() {
            open.is_spoiled = open.file.set_bytes(open.end).is_err();
        }
        synced.map_err(Fault::when("writing it"))
    }

    /// Writes and syncs a commit; when this returns, it lasts. Of a commit that fails nothing is left, unless the disk
    /// neither cuts it off nor begins another segment.
    pub(crate) fn commit(&mut self, mut draft: Draft, time_ms: u64) -> Result<(), Fault> {
        let bytes = draft.finish();
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if let Err(error) = open.file.write_at(bytes, open.end) {
            // It is not whole, so that it would not count. The next commit takes its place.
            open.is_spoiled = open.file.set_bytes(open.end).is_err();
            return Err(Fault::when("writing it")(error));
        }
        if let Err(error) = open.file.sync() {
            self.spoil();
            return Err(Fault::when("syncing it")(error));
        }
        open.end += bytes.len() as u64;
        self.next_sequence = draft.end_sequence();
        let confirmed = Confirmed {
            sequence: self.next_sequence - 1,
            time_ms,
        };
        // Without it a start knows less about damage, and loses nothing.
        let _ = self.head.write(confirmed);
        let (end, number) = (open.end, open.number);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = draft.apply(&mut state);
        if let Some(segment) = state.segments.get_mut(&number) {
            segment.file_bytes = segment.file_bytes.max(end);
        }
        drop(state);
        if buffer.capacity() <= BUFFER_BYTES_MAX {
            self.buffer = buffer;
        }
        self.free();
        Ok(())
    }

    /// Gives the segments back that nothing needs any more.
    pub(crate) fn free(&self) {
        let freed = self.lock().free();
        if !freed.is_empty() {
            self.keeper.submit(Task::Freed(freed));
        }
    }

    /// Missing segments that were given up are no loss any more: their records about others have been written again.
    pub(crate) fn forget_missing(&self, numbers: Vec<u32>) {
        if !numbers.is_empty() {
            self.keeper.submit(Task::Freed(numbers));
        }
    }

    /// Nothing is written any more. If a commit that failed is still in the open segment, it is cut off by another one, so
    /// that no start finds it.
    pub(crate) fn seal(&mut self) {
        if self.open.as_ref().is_some_and(|open| open.is_spoiled) {
            // There is no further attempt.
            let _ = self.next_segment(Purpose::Freeing);
        }
    }

    /// Notes the time, so that a clock that goes back is noticed at the next start.
    pub(crate) fn note_time(&mut self, time_ms: u64) {
        let confirmed = Confirmed {
            sequence: self.next_sequence - 1,
            time_ms,
        };
        let _ = self.head.write(confirmed);
    }

    /// A commit could not be synced: it is cut off, and a new segment is begun that starts with the same sequence. So
    /// the commit does not come back, whatever the disk has of it.
    fn spoil(&mut self) {
        let Some(open) = &mut self.open else {
            return;
        };
        open.is_spoiled = true;
        let cut = open.file.set_bytes(open.end);
        let _ = cut.and_then(|()| open.file.sync());
        let end = open.end;
        let number = open.number;
        open.capacity = end;
        if let Some(segment) = self.lock().segments.get_mut(&number) {
            segment.file_bytes = end;
        }
        // If that fails as well, the next commit tries again.
        let _ = self.next_segment(Purpose::Adding);
    }

    /// Begins a segment, and completes the one before it.
    fn next_segment(&mut self, purpose: Purpose) -> io::Result<()> {
        let number = self.number_last + 1;
        let head = SegmentHead {
            store: self.store,
            number,
            first_sequence: self.next_sequence,
        };
        let takes_last = purpose == Purpose::Freeing || self.has_room_for_spare();
        let spare = self.keeper.take_spare(takes_last);
        if spare.is_none() && purpose == Purpose::Adding && !takes_last {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let spare_name = spare.as_ref().map(Spare::name);
        let made = self.make_segment(&head, spare);
        let (file, capacity) = made.inspect_err(|_| {
            // Nothing else knows it. If it stays, the next start uses it, or removes it.
            let _ = spare_name.map(|name| remove_if_there(&*self.disk, &name));
            self.give_up_segment(number);
        })?;
        self.number_last = number;
        let mut state = self.lock();
        let segment = Segment::new(self.next_sequence, capacity);
        state.segments.insert(number, segment);
        drop(state);
        let former = self.open.replace(Open {
            number,
            file,
            end: SEGMENT_HEAD_BYTES,
            capacity,
            is_spoiled: false,
        });
        if let Some(former) = former {
            self.complete(&former);
        }
        Ok(())
    }

    /// Makes the file of a segment; returns it with the end of its zeros.
    fn make_segment(
        &self,
        head: &SegmentHead,
        spare: Option<Spare>,
    ) -> io::Result<(Arc<dyn DiskFile>, u64)> {
        let name = segment_name(head.number);
        let (file, capacity) = match &spare {
            Some(spare) => (self.disk.open(&spare.name())?, spare.bytes),
            // It grows with each commit: zeros are not there yet, and no commit waits for them.
            None => {
                remove_if_there(&*self.disk, &name)?;
                (self.disk.create(&name)?, self.config.segment_bytes)
            }
        };
        file.write_at(&head.encode(), 0)?;
        file.sync()?;
        if let Some(spare) = spare {
            self.disk.rename(&spare.name(), &name)?;
        }
        self.disk.sync("")?;
        Ok((file, capacity))
    }

    /// Removes the file of a segment that could not be made. If it may still be there, nothing may follow in the open
    /// segment: a start takes the head of the next one for its end.
    fn give_up_segment(&mut self, number: u32) {
        let removed = remove_if_there(&*self.disk, &segment_name(number));
        let removed = removed.and_then(|()| self.disk.sync(""));
        if let (Err(_), Some(open)) = (removed, &mut self.open) {
            open.is_spoiled = true;
        }
    }

    /// Whether the disk has room for another spare once the last one is taken.
    fn has_room_for_spare(&self) -> bool {
        let room = self.disk.room();
        room.is_none_or(|room| room.free_bytes >= self.config.segment_bytes * 2)
    }

    fn complete(&self, former: &Open) {
        // Unused zeros are given back.
        if former.file.set_bytes(former.end).is_ok()
            && let Some(segment) = self.lock().segments.get_mut(&former.number)
        {
            segment.file_bytes = former.end;
        }
        self.lock().complete(former.number);
        self.index(former.number);
    }

    fn index(&self, number: u32) {
        let mut state = self.lock();
        let index = state.complete(number);
        let summary = state.summary(self.store, number);
        drop(state);
        if let Some(index) = index {
            let summary = Box::new(summary);
            self.keeper.submit(Task::Completed { summary, index });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

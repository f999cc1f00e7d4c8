//! The thread that does what no commit should wait for: it writes zeros for later segments, indexes of complete ones
//! and the manifest, and removes segments that nothing needs any more.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crosstie_disk::{Disk, remove_if_there, replace_file};

use super::index::{Index, Summary, encode};
use super::manifest::{Listed, Manifest};
use super::recover::files_of;
use super::segment::{index_name, spare_name};
use super::state::{IndexPlace, State};

/// Work in its order.
#[derive(Debug)]
pub(crate) enum Task {
    /// A segment is complete.
    Completed {
        summary: Box<Summary>,
        index: Arc<Index>,
    },
    /// Segments are not needed any more.
    Freed(Vec<u32>),
}

/// A keeper on a thread of its own, or, for simulations, on the caller's.
#[derive(Debug)]
pub(crate) struct Keeper {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// The part that both threads share.
#[derive(Debug)]
struct Desk {
    disk: Arc<dyn Disk>,
    state: Arc<Mutex<State>>,
    segment_bytes: u64,
    tray: Mutex<Tray>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Tray {
    tasks: VecDeque<Task>,
    spares: Vec<Spare>,
    spare_last: u32,
    /// Zeros are wanted; they are not after a failure, until the next request.
    wants_spares: bool,
    /// A reader holds the segments that were freed.
    pins: usize,
    is_stopping: bool,
    /// Work has failed, and waits.
    is_resting: bool,
    manifest: Manifest,
}

/// Zeros between two syncs.
const PART_BYTES: u64 = 1 << 20;

/// Pause of the work after a failure.
const REST: Duration = Duration::from_secs(1);

/// A file of zeros.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
}

impl Spare {
    pub(crate) fn name(&self) -> String {
        spare_name(self.number)
    }
}

/// One for the next segment, and one in reserve.
pub(crate) const SPARES: usize = 2;

impl Keeper {
    /// `spares`: those of an earlier run, which are used again.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        state: Arc<Mutex<State>>,
        (manifest, spares): (Manifest, Vec<Spare>),
        segment_bytes: u64,
        has_thread: bool,
    ) -> io::Result<Self> {
        let desk = Arc::new(Desk {
            disk,
            state,
            segment_bytes,
            tray: Mutex::new(Tray {
                manifest,
                spare_last: spares.iter().map(|spare| spare.number).max().unwrap_or(0),
                spares,
                wants_spares: true,
                ..Tray::default()
            }),
            wake: Condvar::new(),
        });
        let of_thread = Arc::clone(&desk);
        let thread = has_thread.then(|| {
            thread::Builder::new()
                .name("store-keeper".to_owned())
                .spawn(move || of_thread.run())
        });
        Ok(Self {
            desk,
            thread: thread.transpose()?,
        })
    }

    /// Adds work.
    pub(crate) fn submit(&self, task: Task) {
        self.desk.lock().tasks.push_back(task);
        self.wake();
    }

    /// Takes a spare. The last one is left, unless `takes_last`.
    pub(crate) fn take_spare(&self, takes_last: bool) -> Option<Spare> {
        let mut tray = self.desk.lock();
        let kept = usize::from(!takes_last);
        let taken = (tray.spares.len() > kept).then(|| tray.spares.remove(0));
        tray.wants_spares = true;
        drop(tray);
        self.wake();
        taken
    }

    /// Whether the reserve is there; requests it if not.
    pub(crate) fn has_reserve(&self) -> bool {
        let mut tray = self.desk.lock();
        let has = !tray.spares.is_empty();
        if tray.spares.len() < SPARES && !tray.wants_spares {
            tray.wants_spares = true;
            drop(tray);
            self.wake();
        }
        has
    }

    /// Keeps the files of freed segments until the guard is dropped.
    pub(crate) fn pin(&self) -> Pin {
        self.desk.lock().pins += 1;
        Pin {
            desk: Arc::clone(&self.desk),
        }
    }

    /// Does the work that is there, for simulations.
    #[cfg(test)]
    pub(crate) fn work(&self) {
        while self.desk.step() {}
    }

    fn wake(&self) {
        self.desk.wake.notify_one();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.desk.lock().is_stopping = true;
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Keeps the files of freed segments.
#[derive(Debug)]
pub(crate) struct Pin {
    desk: Arc<Desk>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.desk.lock().pins -= 1;
        self.desk.wake.notify_one();
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            while self.step() {}
            let mut tray = self.lock();
            if tray.is_stopping {
                return;
            }
            if tray.is_resting {
                let rested = self.wake.wait_timeout(tray, REST);
                tray = rested.unwrap_or_else(PoisonError::into_inner).0;
                tray.is_resting = false;
            } else if !tray.has_work() {
                drop(self.wake.wait(tray).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Does one piece of work; returns whether there was one.
    fn step(&self) -> bool {
        let (task, wants_spare) = {
            let mut tray = self.lock();
            let at = tray.next_task();
            let task = at.and_then(|at| tray.tasks.remove(at));
            (task, tray.wants_spare())
        };
        match task {
            Some(task) => {
                let done = self.perform(&task).or_else(|error| {
                    let is_full = error.kind() == io::ErrorKind::StorageFull;
                    match is_full && self.give_up_spare() {
                        true => self.perform(&task),
                        false => Err(error),
                    }
                });
                if done.is_err() {
                    let mut tray = self.lock();
                    tray.tasks.push_front(task);
                    tray.is_resting = true;
                }
            }
            None if wants_spare => self.write_zeros(),
            None => return false,
        }
        true
    }

    /// Gives the space of a spare to something that makes more room.
    fn give_up_spare(&self) -> bool {
        let spare = self.lock().spares.pop();
        spare.is_some_and(|spare| self.disk.remove(&spare.name()).is_ok())
    }

    fn perform(&self, task: &Task) -> io::Result<()> {
        match task {
            Task::Completed { summary, index } => {
                self.lock().manifest.add(summary);
                let number = summary.number;
                let written =
                    replace_file(&*self.disk, &index_name(number), &encode(summary, index));
                // Without an index the next start reads the segment.
                written?;
                let manifest = self.lock().manifest.clone();
                // A segment that is missing is noticed without it too, but not what it had.
                manifest.write(&*self.disk)?;
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(segment) = state.segments.get_mut(&number) {
                    segment.index = IndexPlace::File;
                }
                Ok(())
            }
            Task::Freed(numbers) => {
                let manifest = self.lock().forget(numbers);
                // Before the files go: what is missing and listed is a loss.
                if let Err(error) = manifest.write(&*self.disk) {
                    // A segment without an index is read, so that the space of its index may be used at once.
                    for number in numbers {
                        remove_if_there(&*self.disk, &index_name(*number))?;
                    }
                    let is_full = error.kind() == io::ErrorKind::StorageFull;
                    let again = is_full.then(|| manifest.write(&*self.disk));
                    again.unwrap_or(Err(error))?;
                }
                let mut names = numbers.iter().flat_map(|number| files_of(*number));
                names.try_for_each(|name| remove_if_there(&*self.disk, &name))
            }
        }
    }

    /// Writes a spare. After a failure none is wanted until the next request.
    fn write_zeros(&self) {
        let number = {
            let mut tray = self.lock();
            tray.spare_last += 1;
            tray.spare_last
        };
        let name = spare_name(number);
        let written = self.try_write_zeros(&name);
        let mut tray = self.lock();
        match written {
            Ok(()) => tray.spares.push(Spare {
                number,
                bytes: self.segment_bytes,
            }),
            Err(_) => {
                tray.wants_spares = false;
                drop(tray);
                // If that fails too, the next start removes it.
                let _ = self.disk.remove(&name);
            }
        }
    }

    fn try_write_zeros(&self, name: &str) -> io::Result<()> {
        remove_if_there(&*self.disk, name)?;
        if let Some(room) = self.disk.room()
            && room.free_bytes < self.segment_bytes + self.segment_bytes / 2
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = self.disk.create(name)?;
        let mut at = 0;
        while at < self.segment_bytes {
            if self.lock().is_stopping {
                return Err(io::ErrorKind::Interrupted.into());
            }
            // In parts, so that no sync of a commit has to wait for all of it.
            let count = (self.segment_bytes - at).min(PART_BYTES);
            file.write_zeros(count, at)?;
            file.sync()?;
            at += count;
        }
        Ok(())
    }
}

impl Tray {
    fn wants_spare(&self) -> bool {
        self.wants_spares && self.spares.len() < SPARES && !self.is_stopping
    }

    /// The next task that can be done now. Removals come first: on a full disk they make room for the others.
    fn next_task(&self) -> Option<usize> {
        let is_removal = |task: &Task| matches!(task, Task::Freed(_));
        let removal = self.tasks.iter().position(is_removal);
        let at = removal.filter(|_| self.pins == 0);
        let at = at.or_else(|| self.tasks.iter().position(|task| !is_removal(task)));
        at.filter(|_| !self.is_resting)
    }

    /// The manifest without segments that are removed, which need no index any more. It names those that wait for
    /// theirs: the manifest's last segment may come after them.
    fn forget(&mut self, numbers: &[u32]) -> Manifest {
        let Self {
            tasks, manifest, ..
        } = self;
        tasks.retain(|task| match task {
            Task::Completed { summary, .. } => {
                manifest.add(summary);
                !numbers.contains(&summary.number)
            }
            Task::Freed(_) => true,
        });
        manifest.remove(numbers);
        manifest.clone()
    }

    fn has_work(&self) -> bool {
        self.next_task().is_some() || self.wants_spare()
    }
}

impl Manifest {
    fn add(&mut self, summary: &Summary) {
        self.last = self.last.max(summary.number);
        self.end_sequence = self.end_sequence.max(summary.end_sequence);
        self.segments
            .retain(|listed| listed.number != summary.number);
        self.segments.push(Listed {
            number: summary.number,
            first_sequence: summary.first_sequence,
            end_sequence: summary.end_sequence,
        });
        self.segments.sort_by_key(|listed| listed.number);
    }

    fn remove(&mut self, numbers: &[u32]) {
        self.segments
            .retain(|listed| !numbers.contains(&listed.number));
    }
}

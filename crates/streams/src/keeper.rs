//! The threads of the streams' files: one that writes, and one that reads and removes.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crosstie_queues::{Position, QueueId, Record, StreamChange, StreamWant};

use crate::directory::Directory;
use crate::group::{self, Unwritten};
use crate::orders::{Order, ReadPages, Shared, Submission, Written, lock};
use crate::reading::Reading;
use crate::writing::{Reports, Writing};

/// The files of streams, with two threads of their own. Dropping it writes what was submitted.
pub struct Keeper {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Keeper {
    /// `on_written` is called from the writer's thread, in the order of a vhost's positions, and `on_unwritten` after each
    /// attempt that failed. From the reader's thread, `on_read` is called with pages of a vhost, and `on_trouble` with
    /// what cannot be read of a stream.
    pub fn start(
        directory: Directory,
        on_written: impl Fn(&Arc<str>, Written) + Send + 'static,
        on_unwritten: impl Fn(&Arc<str>, Unwritten<'_>) + Send + 'static,
        on_read: impl Fn(&Arc<str>, ReadPages) + Send + 'static,
        on_trouble: impl Fn(&Arc<str>, QueueId, String) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let Directory {
            disk,
            logs,
            removed,
            ..
        } = directory;
        let mut writing = Writing::new(Arc::clone(&shared), Arc::clone(&disk), &logs);
        *lock(&shared.logs) = logs;
        lock(&shared.reads).removed = removed;
        let mut reading = Reading::new(Arc::clone(&shared), disk);
        let reports = Reports {
            on_written,
            on_unwritten,
        };
        let writer = thread::Builder::new().name("streams".to_owned());
        let writer = writer.spawn(move || writing.run(&reports))?;
        let reader = thread::Builder::new().name("stream-reader".to_owned());
        let reader = reader.spawn(move || reading.run(&on_read, &on_trouble))?;
        Ok(Self {
            shared,
            threads: vec![writer, reader],
        })
    }

    /// Submits the changes of a vhost's streams, with the records up to `position`, which a store may have after them.
    /// Returns the bytes that wait. Never waits for the disk. Submit under the vhost's lock.
    pub fn submit(
        &self,
        vhost: &Arc<str>,
        changes: Vec<StreamChange>,
        records: Vec<Record>,
        position: Position,
    ) -> usize {
        let of_changes = changes.iter().map(group::change_bytes);
        let of_records = records.iter().map(group::record_bytes);
        let bytes = of_changes.sum::<usize>() + of_records.sum::<usize>();
        let mut waiting = lock(&self.shared.waiting);
        waiting.bytes += bytes;
        waiting.submissions.push(Submission {
            vhost: Arc::clone(vhost),
            changes,
            records,
            position,
            bytes,
        });
        self.shared.wake_writer.notify_one();
        waiting.bytes + waiting.taken_bytes
    }

    /// Reads about that many bytes of a stream for a reader.
    pub fn read(&self, vhost: &Arc<str>, want: StreamWant, bytes_max: usize) {
        let mut reads = lock(&self.shared.reads);
        reads.orders.push_back(Order {
            vhost: Arc::clone(vhost),
            want,
            bytes_max,
        });
        self.shared.wake_reader.notify_one();
    }

    /// Bytes that were submitted and are not written.
    pub fn waiting_bytes(&self) -> usize {
        let waiting = lock(&self.shared.waiting);
        waiting.bytes + waiting.taken_bytes
    }

    /// Writes what was submitted, and ends the threads. Returns whether all could be written. Must not be called from
    /// them.
    pub fn stop(mut self) -> bool {
        self.end();
        !lock(&self.shared.waiting).is_given_up
    }

    fn end(&mut self) {
        lock(&self.shared.waiting).is_stopping = true;
        self.shared.wake_writer.notify_one();
        lock(&self.shared.reads).is_stopping = true;
        self.shared.wake_reader.notify_one();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

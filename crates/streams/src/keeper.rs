//! The threads of the streams' files: one that writes, and one that reads and removes.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crosstie_queues::{Position, QueueId, Record, StreamChange, StreamWant};

use crate::directory::Directory;
use crate::group::{self, Unwritten};
use crate::orders::{Order, ReadPages, Removed, Shared, Submission, Written, lock};
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
        let removed = removed.into_iter().map(Removed::Tree);
        lock(&shared.reads).removed = removed.collect();
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
        self.push(Submission {
            vhost: Arc::clone(vhost),
            changes,
            records,
            position,
            bytes,
            is_vhost_gone: false,
        })
    }

    /// Removes all streams of a vhost of which the store has nothing any more. Once `position` is written, their files
    /// have other paths, so that another vhost may have its name. Until then it is tried again.
    pub fn remove_vhost(&self, vhost: &Arc<str>, position: Position) {
        self.push(Submission {
            vhost: Arc::clone(vhost),
            changes: Vec::new(),
            records: Vec::new(),
            position,
            bytes: 0,
            is_vhost_gone: true,
        });
    }

    fn push(&self, submission: Submission) -> usize {
        let mut waiting = lock(&self.shared.waiting);
        waiting.bytes += submission.bytes;
        waiting.submissions.push(submission);
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;
    use std::time::Duration;

    use crosstie_queues::{MessageContent, StreamAppend, StreamLimits, Time};

    use super::*;
    use crate::files;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn appended(offset: u64) -> StreamChange {
        StreamChange::Appended {
            id: QueueId(1),
            append: StreamAppend {
                offset,
                at: Time(1),
                limits: StreamLimits::default(),
                name: "s".into(),
                content: Arc::new(MessageContent::new("", "s", &[0, 0], b"kept")),
            },
        }
    }

    #[test]
    fn streams_of_a_deleted_vhost_are_not_those_of_the_next_of_its_name() {
        let root = tempfile::tempdir().expect("a directory");
        let vhost: Arc<str> = "v".into();
        let (written, is_written) = mpsc::channel();
        let (unwritten, is_unwritten) = mpsc::channel();
        let keeper = Keeper::start(
            Directory::new(root.path()),
            move |_, report| drop(written.send(report)),
            move |_, report| drop(unwritten.send(report.error.to_owned())),
            |_, _| {},
            |_, _, _| {},
        );
        let keeper = keeper.expect("is started");
        let streams = root.path().join(files::of_vhost(&vhost));
        for life in 0..3 {
            for offset in 0..2 {
                keeper.submit(&vhost, vec![appended(offset)], Vec::new(), Position(offset));
                let report = is_written.recv_timeout(PATIENCE).expect("is written");
                let (_, extent, _) = &report.streams[0];
                assert_eq!((extent.first, extent.end), (0, offset + 1), "life {life}");
            }
            // What is left of another deletion does not prevent this one.
            let aside = root.path().join("vhost-v.1.deleted");
            fs::create_dir_all(aside.join("left")).expect("is made");
            keeper.remove_vhost(&vhost, Position(2));
            let report = is_written.recv_timeout(PATIENCE).expect("is written");
            assert_eq!((report.position, report.error), (Some(Position(2)), None));
            assert!(!streams.exists(), "the name is free");
        }
        assert!(is_unwritten.try_recv().is_err());
        assert!(keeper.stop());
    }

    #[test]
    fn a_vhost_is_not_removed_before_its_files_are_set_aside() {
        let root = tempfile::tempdir().expect("a directory");
        let vhost: Arc<str> = "v".into();
        let (tell, told) = mpsc::channel();
        let failed = tell.clone();
        // A file in the place of the streams' directory.
        let path = root.path().join("streams");
        fs::write(&path, "in the way").expect("is written");
        let keeper = Keeper::start(
            Directory::new(&path),
            move |_, report| tell.send(report.position).expect("is awaited"),
            move |_, _| failed.send(None).expect("is awaited"),
            |_, _| {},
            |_, _, _| {},
        );
        let keeper = keeper.expect("is started");
        keeper.remove_vhost(&vhost, Position(2));
        assert_eq!(told.recv_timeout(PATIENCE), Ok(None));
        fs::remove_file(&path).expect("is removed");
        while told.recv_timeout(PATIENCE).expect("is tried again") != Some(Position(2)) {}
    }
}

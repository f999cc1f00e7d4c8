//! A store on a thread of its own.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crosstie_queues::{Page, Position, Record, Want};

use crate::committing::{CommitterConfig, NotCommitted};
use crate::disk::{DiskLow, FreeMin};
use crate::orders::{Begun, FreeMinOrder, Order, PageOrder, SettingsOrder, Shared};
use crate::{Backup, Batch, NewSetting, Store, StoreError, StoreErrorKind};

/// A store on a thread of its own. Dropping it commits all submitted records, as [`Committer::stop`] does.
pub struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

impl Committer {
    /// `on_committed` is called from the committer's thread, once per vhost and commit: with `Ok`
    /// everything that the vhost submitted up to the position is on the disk. With an error it
    /// is not: it is kept, and tried again each second, so that a position that failed may be
    /// told as committed later.
    pub fn start(
        store: Store,
        on_committed: impl Fn(&str, Position, Result<(), NotCommitted<'_>>) + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_with(store, CommitterConfig::default(), on_committed, |_| {})
    }

    /// The same, by that configuration. `on_disk_low` is called from the same thread, once when
    /// less is free than there should be, and once when that is over; deletions make room.
    pub fn start_with(
        store: Store,
        config: CommitterConfig,
        on_committed: impl Fn(&str, Position, Result<(), NotCommitted<'_>>) + Send + 'static,
        on_disk_low: impl Fn(DiskLow) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || of_thread.run(store, &config, &on_committed, &on_disk_low))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Submits records, up to and including `position`; returns the bytes that wait, these included. Never waits for
    /// the disk. The records of a vhost must arrive in its journal's order: submit under the vhost's lock. Records are
    /// never refused, since a journal must not have a hole: the caller stops reading publishers if too much waits.
    pub fn submit(&self, vhost: &Arc<str>, records: Vec<Record>, position: Position) -> usize {
        let mut state = self.shared.lock();
        state.waiting.push(vhost, records, position);
        let bytes = state.waiting.bytes();
        if state
            .wakes_with
            .take_if(|enough| *enough <= bytes)
            .is_some()
        {
            self.shared.wake.notify_one();
        }
        state.bytes()
    }

    /// Has the store copied to a file that must not exist, by a thread of its own, which calls `on_done`. The copy has
    /// everything that was reported as committed before, and the records of `last`, which is called from the
    /// committer's thread. There is one backup at a time; a waiting one is cancelled for this.
    pub fn back_up(
        &self,
        path: PathBuf,
        last: impl FnOnce() -> Batch + Send + 'static,
        on_done: impl FnOnce(Result<Backup, StoreError>) + Send + 'static,
    ) {
        let order = Order {
            path,
            last: Box::new(last),
            on_done: Box::new(on_done),
        };
        let before = {
            let mut state = self.shared.lock();
            if state.wakes_with.take().is_some() {
                self.shared.wake.notify_one();
            }
            state.backup.replace(order)
        };
        if let Some(Order { path, on_done, .. }) = before {
            let why = "another backup was asked for";
            let error = StoreErrorKind::Abandoned { why };
            on_done(Err(StoreError::new(&path, error)));
        }
    }

    /// Reads a page of a deep queue, about `bytes_max` bytes, between two commits: it delays them. `on_read` is called
    /// from the committer's thread.
    pub fn read_page(
        &self,
        vhost: &Arc<str>,
        want: Want,
        bytes_max: usize,
        on_read: impl FnOnce(Result<Page, StoreError>) + Send + 'static,
    ) {
        let mut state = self.shared.lock();
        state.pages.push_back(PageOrder {
            vhost: Arc::clone(vhost),
            want,
            bytes_max,
            segment: None,
            on_read: Box::new(on_read),
        });
        if state.wakes_with.take().is_some() {
            self.shared.wake.notify_one();
        }
    }

    /// Submits settings and vhosts to be created, which are written in one commit of their own. `on_written` is called
    /// from the committer's thread; if the commit failed nothing of it is written, now or later. A committer that stops
    /// may drop `on_written` without a call.
    pub fn create_vhosts(
        &self,
        vhosts: Vec<Arc<str>>,
        settings: Vec<NewSetting>,
        on_written: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> Begun {
        let begun = Begun::default();
        let mut state = self.shared.lock();
        state.settings.push_back(SettingsOrder {
            vhosts,
            settings,
            begun: begun.clone(),
            on_written: Box::new(on_written),
        });
        if state.wakes_with.take().is_some() {
            self.shared.wake.notify_one();
        }
        begun
    }

    /// The same without a vhost.
    pub fn put_settings(
        &self,
        settings: Vec<NewSetting>,
        on_written: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> Begun {
        self.create_vhosts(Vec::new(), settings, on_written)
    }

    /// Changes the minimum of free bytes on the disk; 0: none. `on_looked` is called from the committer's thread once the
    /// disk is judged by it.
    pub fn set_free_min(&self, free_min: FreeMin, on_looked: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.lock();
        state.free_minima.push(FreeMinOrder {
            free_min,
            on_looked: Box::new(on_looked),
        });
        if state.wakes_with.take().is_some() {
            self.shared.wake.notify_one();
        }
    }

    /// Bytes that were submitted and are not on the disk.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.lock().bytes()
    }

    /// The last commit failed, and is tried again.
    pub fn is_failing(&self) -> bool {
        self.shared.lock().is_failing
    }

    /// Commits all submitted records, and ends the thread. If some could not be written they are lost; the error says
    /// why.
    pub fn stop(mut self) -> Result<(), StoreError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), StoreError> {
        {
            let mut state = self.shared.lock();
            state.is_stopping = true;
            self.shared.wake.notify_one();
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // It has panicked, and said so.
            Some(Err(_)) | None => Ok(()),
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // An owner that wants to know the outcome calls `stop`.
        let _ = self.end();
    }
}

//! The thread that reads pages for readers, and removes files.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use crosstie_disk::Disk;
use crosstie_queues::{QueueId, StreamFilter, StreamFrom, StreamPage, StreamWant};

use crate::log::Log;
use crate::orders::{Order, ReadPages, Removed, Shared, lock};
use crate::read::Pages;

/// Maximum pages that are read before they are handed over.
const PAGES_MAX: usize = 16;

/// How long after a failed read it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The thread's state.
pub(crate) struct Reading {
    shared: Arc<Shared>,
    pages: Pages,
    disk: Arc<dyn Disk>,
    /// Pages that other readers may want, too, while some reader has them.
    recent: VecDeque<Recent>,
    /// Damaged places that were reported.
    known: HashSet<(String, u64)>,
    /// Reads that failed.
    again: Vec<(Instant, Order)>,
}

struct Recent {
    log: Weak<Log>,
    from: StreamFrom,
    filter: Option<Arc<StreamFilter>>,
    page: Weak<StreamPage>,
}

const RECENT_MAX: usize = 64;

/// Damaged places that are remembered; others are reported at each read.
const KNOWN_MAX: usize = 10_000;

impl Reading {
    pub(crate) fn new(shared: Arc<Shared>, disk: Arc<dyn Disk>) -> Self {
        Self {
            shared,
            pages: Pages::new(Arc::clone(&disk)),
            disk,
            recent: VecDeque::new(),
            known: HashSet::new(),
            again: Vec::new(),
        }
    }

    pub(crate) fn run(
        &mut self,
        on_read: &dyn Fn(&Arc<str>, ReadPages),
        on_trouble: &dyn Fn(&Arc<str>, QueueId, String),
    ) {
        while let Some((orders, removed)) = self.take() {
            let mut pages: HashMap<Arc<str>, ReadPages> = HashMap::new();
            for order in orders {
                if let Some(page) = self.read(&order, on_trouble) {
                    let pages = pages.entry(order.vhost).or_default();
                    pages.push((order.want, page));
                }
            }
            for (vhost, pages) in pages {
                on_read(&vhost, pages);
            }
            if let Some(removed) = removed {
                self.remove(removed);
            }
        }
    }

    /// Waits for orders, and takes some, with one removal. `None` at the end.
    fn take(&mut self) -> Option<(Vec<Order>, Option<Removed>)> {
        let mut reads = lock(&self.shared.reads);
        loop {
            if reads.is_stopping {
                return None;
            }
            for path in mem::take(&mut reads.forgotten) {
                self.pages.forget(&path);
            }
            let now = Instant::now();
            let due = self.again.extract_if(.., |(at, _)| *at <= now);
            reads.orders.extend(due.map(|(_, order)| order));
            if !reads.orders.is_empty() || !reads.removed.is_empty() {
                let count = reads.orders.len().min(PAGES_MAX);
                let orders = reads.orders.drain(..count).collect();
                return Some((orders, reads.removed.pop_front()));
            }
            if self.again.is_empty() {
                let woken = self.shared.wake_reader.wait(reads);
                reads = woken.unwrap_or_else(PoisonError::into_inner);
            } else {
                let woken = self.shared.wake_reader.wait_timeout(reads, RETRY / 4);
                reads = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Reads a page, or takes one that another reader has. `None`: that failed, and is tried again.
    fn read(
        &mut self,
        order: &Order,
        on_trouble: &dyn Fn(&Arc<str>, QueueId, String),
    ) -> Option<Arc<StreamPage>> {
        let Order {
            vhost,
            want,
            bytes_max,
        } = order;
        let log = lock(&self.shared.logs)
            .get(&(Arc::clone(vhost), want.id))
            .cloned()?;
        if let Some(page) = self.recent(&log, want) {
            return Some(page);
        }
        let mut damages = Vec::new();
        let (pages, from, end) = (&mut self.pages, want.from, want.end);
        let read = match &want.filter {
            None => pages.read(&log, from, end, *bytes_max, &mut damages),
            Some(filter) => {
                pages.read_accepted(&log, (from, end), filter, *bytes_max, &mut damages)
            }
        };
        for damage in damages {
            let place = (damage.path.clone(), damage.position);
            if self.known.len() >= KNOWN_MAX || self.known.insert(place) {
                on_trouble(vhost, want.id, damage.to_string());
            }
        }
        match read {
            Ok(page) => {
                let page = Arc::new(page);
                if self.recent.len() >= RECENT_MAX {
                    self.recent.pop_front();
                }
                self.recent.push_back(Recent {
                    log: Arc::downgrade(&log),
                    from: want.from,
                    filter: want.filter.clone(),
                    page: Arc::downgrade(&page),
                });
                Some(page)
            }
            Err(error) => {
                on_trouble(vhost, want.id, format!("retrying: {error}"));
                let again = Order {
                    vhost: Arc::clone(vhost),
                    want: want.clone(),
                    bytes_max: *bytes_max,
                };
                self.again.push((Instant::now() + RETRY, again));
                None
            }
        }
    }

    fn recent(&self, log: &Arc<Log>, want: &StreamWant) -> Option<Arc<StreamPage>> {
        let mut recent = self.recent.iter();
        let found = recent.find_map(|recent| {
            let is_same = recent.from == want.from
                && recent.filter == want.filter
                && recent.log.as_ptr() == Arc::as_ptr(log);
            is_same.then(|| recent.page.upgrade()).flatten()
        });
        found.filter(|page| !page.is_empty())
    }

    /// Removes a file, which the next start would remove otherwise. A directory's files are removed one after the other.
    fn remove(&self, removed: Removed) {
        let _ = match removed {
            Removed::File(path) => self.disk.remove(&path),
            Removed::Directory(path) => self.disk.remove_directory(&path),
            Removed::Tree(path) => match self.disk.names(&path) {
                Err(_) => self.disk.remove(&path),
                Ok(names) => {
                    let mut reads = lock(&self.shared.reads);
                    let parts = names.iter().map(|name| format!("{path}/{name}"));
                    let parts: Vec<_> = parts.map(Removed::Tree).collect();
                    reads.removed.push_front(Removed::Directory(path));
                    parts
                        .into_iter()
                        .for_each(|part| reads.removed.push_front(part));
                    Ok(())
                }
            },
        };
    }
}

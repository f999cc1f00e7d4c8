//! Pages of deep queues, read from the log: the ledger knows which entries have them.
//!
//! ```text
//! SharedVhost ─▶ Journal::request ─▶ Ledger::excerpt ─▶ the log ─▶ the vhost
//!                                        ▲                 │
//!                                        └── again, if the entries are not where they were
//! ```
//!
//! Messages of many queues that were published at one time are in the same entries. So pages that wait are read together:
//! a hundred such queues would otherwise read and decode the log a hundred times.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crosstie_jetstream::Stream;
use crosstie_ledger::{Broken, Excerpt, Found, Ledger, Sequence};
use crosstie_queues::{Page, Paged, Want};

use super::driver::Driver;
use super::log;
use super::term::{Done, Entries};
use super::unread::{LASTING, Unread};

/// Takes a page, or the reason why it cannot be read.
type OnRead = Box<dyn FnOnce(Result<Page, String>) + Send>;

/// A page that the vhost requests.
pub(crate) struct Wanted {
    want: Want,
    bytes_max: usize,
    since: Instant,
    on_read: OnRead,
}

/// The pages of a term.
#[derive(Default)]
pub(super) struct Pages {
    waiting: VecDeque<Wanted>,
    /// Number of reads, and the bytes of what they read.
    reading: usize,
    pub(super) reading_bytes: u64,
}

/// Maximum number of reads at once: each takes up to 16 MiB meanwhile.
const READING_MAX: usize = 4;

/// Maximum number of pages of one read.
const TOGETHER_MAX: usize = 256;

/// Pause before a page is read again: what the ledger knew of the log has changed, or a server does not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Wanted {
    pub(crate) fn new(want: Want, bytes_max: usize, on_read: OnRead) -> Self {
        Self {
            want,
            bytes_max,
            since: Instant::now(),
            on_read,
        }
    }
}

impl Wanted {
    fn excerpt(&self, ledger: &Ledger) -> Excerpt {
        let Want {
            stored, from, to, ..
        } = self.want;
        ledger.excerpt(stored.unwrap_or_default(), (from, to), self.bytes_max)
    }
}

impl Driver {
    /// Reads requested pages, a few at once.
    pub(super) fn read_pages(&mut self, stream: &Stream) {
        let Some(term) = &mut self.term else {
            return;
        };
        term.pages.waiting.extend(term.journal.take_wanted());
        while term.pages.reading < READING_MAX
            && let Some((group, excerpt)) = next_group(&self.ledger, &mut term.pages.waiting)
        {
            term.pages.reading += 1;
            term.pages.reading_bytes += excerpt.bytes();
            let bytes = excerpt.bytes();
            let (stream, doing) = (stream.clone(), term.doing.clone());
            tokio::spawn(async move {
                let read = read(&stream, excerpt).await;
                let again = hand_over(group, read);
                if !again.is_empty() {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                let _ = doing.send(Done::Pages { again, bytes });
            });
        }
    }

    /// Pages were read, or are to be read again.
    pub(super) fn end_pages(&mut self, stream: &Stream, again: Vec<Wanted>, bytes: u64) {
        if let Some(term) = &mut self.term {
            term.pages.reading = term.pages.reading.saturating_sub(1);
            term.pages.reading_bytes = term.pages.reading_bytes.saturating_sub(bytes);
            term.pages.waiting.extend(again);
        }
        self.read_pages(stream);
    }

    /// Live messages are written again at the log's end, now that they were read.
    pub(super) fn handle_fetched(&mut self, result: Result<Entries, String>) {
        let now = self.now();
        let read = match result {
            Ok(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(at, entry)| (Sequence(*at), &entry[..]));
                let handled = self.ledger.handle_fetched(now, entries);
                handled.map_err(|broken| broken.to_string())
            }
            // The server does not answer, or lags behind: the ledger asks again.
            Err(why) => {
                self.ledger.handle_not_fetched(now);
                Err(why)
            }
        };
        self.note_read(read);
    }

    /// Notes whether live messages could be read that are to be written again, or copied.
    pub(super) fn note_read(&mut self, result: Result<(), String>) {
        let Some(term) = &mut self.term else {
            return;
        };
        let before = term.unread.take();
        let Err(why) = result else {
            return;
        };
        let unread = Unread::after(before.as_ref(), why);
        let was_alarm = before.is_some_and(|before| before.alarm().is_some());
        if let (Some(alarm), false) = (unread.alarm(), was_alarm) {
            tracing::error!("vhost '{}': {alarm}", self.task.vhost);
        }
        term.unread = Some(unread);
    }
}

/// Takes the next page that waits, and those behind it that are in the same part of the log.
fn next_group(ledger: &Ledger, waiting: &mut VecDeque<Wanted>) -> Option<(Vec<Wanted>, Excerpt)> {
    let first = waiting.pop_front()?;
    let mut excerpt = first.excerpt(ledger);
    let mut group = vec![first];
    while group.len() < TOGETHER_MAX
        && let Some(next) = waiting.front()
        && excerpt.join(next.excerpt(ledger))
    {
        group.extend(waiting.pop_front());
    }
    Some((group, excerpt))
}

/// Reads the messages of pages.
async fn read(stream: &Stream, mut excerpt: Excerpt) -> Result<Vec<Result<Found, Broken>>, String> {
    while let Some(between) = excerpt.next_read() {
        for (sequence, entry) in log::read_between(stream, between).await? {
            let taken = excerpt.take(Sequence(sequence), &entry);
            taken.map_err(|broken| format!("entry {sequence} of the log: {broken}"))?;
        }
    }
    Ok(excerpt.finish())
}

/// Hands pages to those that requested them; returns the requests that are to be tried again.
fn hand_over(group: Vec<Wanted>, read: Result<Vec<Result<Found, Broken>>, String>) -> Vec<Wanted> {
    let pages: Vec<Result<Page, String>> = match read {
        Ok(found) => found.into_iter().map(page).collect(),
        Err(why) => group.iter().map(|_| Err(why.clone())).collect(),
    };
    let mut again = Vec::new();
    for (wanted, page) in group.into_iter().zip(pages) {
        match page {
            // Then the vhost learns that the page cannot be read, and requests it again.
            Err(_) if wanted.since.elapsed() < LASTING => again.push(wanted),
            page => (wanted.on_read)(page),
        }
    }
    again
}

fn page(found: Result<Found, Broken>) -> Result<Page, String> {
    let (messages, upto) = found.map_err(|broken| format!("messages in the log: {broken}"))?;
    let messages = messages.into_iter().map(|(place, message)| Paged {
        place,
        message,
        is_spilled: false,
    });
    Ok(Page {
        messages: messages.collect(),
        upto,
    })
}

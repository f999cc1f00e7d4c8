//! Pages of deep queues, read from the log: the ledger knows which entries have them.
//!
//! ```text
//! SharedVhost ─▶ Journal::request ─▶ Ledger::excerpt ─▶ the log ─▶ the vhost
//!                                        ▲                 │
//!                                        └── again, if the entries are not where they were
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crosstie_jetstream::Stream;
use crosstie_ledger::{Excerpt, Sequence};
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
    /// Number of pages that are being read.
    reading: usize,
}

/// Maximum number of pages that are read at once: each takes up to a few MiB meanwhile.
const READING_MAX: usize = 4;

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

impl Driver {
    /// Reads requested pages, a few at once.
    pub(super) fn read_pages(&mut self, stream: &Stream) {
        let Some(term) = &mut self.term else {
            return;
        };
        term.pages.waiting.extend(term.journal.take_wanted());
        while term.pages.reading < READING_MAX
            && let Some(wanted) = term.pages.waiting.pop_front()
        {
            term.pages.reading += 1;
            let want = &wanted.want;
            let queue = want.stored.unwrap_or_default();
            let between = (want.from, want.to);
            let excerpt = self.ledger.excerpt(queue, between, wanted.bytes_max);
            let (stream, doing) = (stream.clone(), term.doing.clone());
            tokio::spawn(async move {
                let again = match read(&stream, excerpt).await {
                    // Then the vhost learns that the page cannot be read, and requests it again.
                    Err(_) if wanted.since.elapsed() < LASTING => {
                        tokio::time::sleep(AGAIN_AFTER).await;
                        Some(wanted)
                    }
                    page => {
                        (wanted.on_read)(page);
                        None
                    }
                };
                let _ = doing.send(Done::Page { again });
            });
        }
    }

    /// A page was read, or is to be read again.
    pub(super) fn end_page(&mut self, stream: &Stream, again: Option<Wanted>) {
        if let Some(term) = &mut self.term {
            term.pages.reading = term.pages.reading.saturating_sub(1);
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

/// Reads the messages of a page.
async fn read(stream: &Stream, mut excerpt: Excerpt) -> Result<Page, String> {
    while let Some(between) = excerpt.next_read() {
        for (sequence, entry) in log::read_between(stream, between).await? {
            let taken = excerpt.take(Sequence(sequence), &entry);
            taken.map_err(|broken| format!("entry {sequence} of the log: {broken}"))?;
        }
    }
    let read = excerpt.finish();
    let (messages, upto) = read.map_err(|broken| format!("messages in the log: {broken}"))?;
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

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
    /// Approximate bytes of the messages that they yield.
    page_bytes: u64,
}

/// Bytes of the entries that a read needs, and of the messages that it yields.
pub(super) type ReadBytes = (u64, u64);

/// Maximum number of reads at once: each takes up to 16 MiB meanwhile.
const READING_MAX: usize = 4;

/// Maximum number of pages of one read.
const TOGETHER_MAX: usize = 256;

/// Pause before a page is read again: what the ledger knew of the log has changed, or a server does not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Wanted {
    pub(crate) fn new(want: Want, on_read: OnRead) -> Self {
        Self {
            want,
            since: Instant::now(),
            on_read,
        }
    }
}

impl Wanted {
    fn excerpt(&self, ledger: &Ledger, bytes_max: usize) -> Excerpt {
        let Want {
            stored, from, to, ..
        } = self.want;
        ledger.excerpt(stored.unwrap_or_default(), (from, to), bytes_max)
    }
}

impl Pages {
    /// Begins the next read, if one may begin. `page_bytes` returns the bytes of a page behind messages of so many bytes that
    /// are on their way into memory: at a takeover each of many queues requests a page before any has come.
    fn next_read(
        &mut self,
        ledger: &Ledger,
        page_bytes: impl Fn(usize) -> usize,
    ) -> Option<(Vec<Wanted>, Excerpt, ReadBytes)> {
        if self.reading == READING_MAX {
            return None;
        }
        let before = self.page_bytes;
        let bytes_max = |more: u64| page_bytes((before + more) as usize);
        let (group, excerpt) = next_group(ledger, &mut self.waiting, bytes_max)?;
        let bytes = (excerpt.bytes(), excerpt.page_bytes());
        self.reading += 1;
        self.reading_bytes += bytes.0;
        self.page_bytes += bytes.1;
        Some((group, excerpt, bytes))
    }

    fn end_read(&mut self, (entries, messages): ReadBytes) {
        self.reading = self.reading.saturating_sub(1);
        self.reading_bytes = self.reading_bytes.saturating_sub(entries);
        self.page_bytes = self.page_bytes.saturating_sub(messages);
    }
}

impl Driver {
    /// Reads requested pages, a few at once.
    pub(super) fn read_pages(&mut self, stream: &Stream) {
        let Some(term) = &mut self.term else {
            return;
        };
        term.pages.waiting.extend(term.journal.take_wanted());
        let holder = &self.task.holder;
        while let Some((group, excerpt, bytes)) = term
            .pages
            .next_read(&self.ledger, |under_way| holder.page_bytes(under_way))
        {
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
    pub(super) fn end_pages(&mut self, stream: &Stream, again: Vec<Wanted>, bytes: ReadBytes) {
        if let Some(term) = &mut self.term {
            term.pages.end_read(bytes);
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

/// Takes the next page that waits, and those behind it that are in the same part of the log. `bytes_max` returns the bytes of
/// the next page behind so many of others.
fn next_group(
    ledger: &Ledger,
    waiting: &mut VecDeque<Wanted>,
    bytes_max: impl Fn(u64) -> usize,
) -> Option<(Vec<Wanted>, Excerpt)> {
    let first = waiting.pop_front()?;
    let mut excerpt = first.excerpt(ledger, bytes_max(0));
    let mut group = vec![first];
    while group.len() < TOGETHER_MAX
        && let Some(next) = waiting.front()
        && excerpt.join(next.excerpt(ledger, bytes_max(excerpt.page_bytes())))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crosstie_amqp::TableBuf;
    use crosstie_ledger::{Config, Effect, Owner};
    use crosstie_queues::{
        MessageContent, Paging, Position, QueueId, Record, StoredMessage, Time, Vhost, VhostConfig,
    };

    use super::super::super::flow::FlowControl;
    use super::super::super::outbox::VhostOutbox;
    use super::super::super::peer::Peer;
    use super::*;

    const QUEUES: u64 = 100;
    const NOW: Time = Time(1);

    /// A ledger whose log alone has the messages of many short queues, which were filled in turn.
    fn crowded() -> Ledger {
        let mut ledger = Ledger::new(Config {
            crowded_messages: 16,
            ..Config::DEFAULT
        });
        let owner = Owner {
            node: "a".into(),
            address: "".into(),
            incarnation: 1,
        };
        ledger.claim(NOW, &owner, 1);
        settle(&mut ledger);
        for id in (1..=QUEUES).map(QueueId) {
            let mut records = vec![Record::QueueDeclared {
                id,
                name: format!("q{}", id.0).into(),
                auto_delete: false,
                arguments: TableBuf::new(),
            }];
            records.extend((1..=100).map(|place| Record::Enqueued {
                queue: id,
                place,
                message: StoredMessage {
                    content: Arc::new(MessageContent::new("", "", &[0, 0], &[7; 1_000])),
                    expires_at: None,
                    deliveries: 0,
                },
            }));
            ledger.submit(NOW, records, Position(id.0));
            settle(&mut ledger);
        }
        ledger.set_crowded(true);
        ledger
    }

    /// Lets the log accept all appends.
    fn settle(ledger: &mut Ledger) {
        while let Some(effect) = ledger.next_effect() {
            if let Effect::Append { after, .. } = effect {
                ledger.handle_appended(NOW, Sequence(after.0 + 1));
            }
        }
    }

    #[test]
    fn pages_that_many_queues_request_at_once_stay_within_the_bound_of_memory() {
        const BOUND: usize = 4 << 20;
        let ledger = crowded();
        assert!(ledger.is_deep());
        let mut config = VhostConfig::named("/");
        config.paging = Paging {
            crowded_messages: 16,
            ..Paging::OFF
        };
        let mut vhost: Vhost<Arc<Peer>> = Vhost::new(config, 1);
        ledger
            .records()
            .for_each(|record| vhost.restore(NOW, record));
        let mut outbox = VhostOutbox::default();
        vhost.restored(NOW, &mut outbox);
        while vhost.has_backlog() {
            vhost.work(NOW, 1_000, &mut outbox);
        }
        let wants = std::iter::from_fn(|| vhost.take_want());
        let wanted = wants.map(|want| Wanted::new(want, Box::new(drop)));
        let mut pages = Pages {
            waiting: wanted.collect(),
            ..Pages::default()
        };
        assert_eq!(pages.waiting.len() as u64, QUEUES);
        let flow = FlowControl::new(BOUND, usize::MAX);
        let mut read = 0;
        // Each has come before the next one begins, or four are under way.
        let mut under_way = VecDeque::new();
        loop {
            let next = pages.next_read(&ledger, |bytes| flow.page_bytes(bytes));
            if let Some((group, _, bytes)) = next {
                read += group.len() as u64;
                under_way.push_back(bytes);
                continue;
            }
            let Some(bytes) = under_way.pop_front() else {
                break;
            };
            pages.end_read(bytes);
            flow.memory_changed(0, bytes.1 as usize);
        }
        assert_eq!(read, QUEUES);
        let taken = flow.memory_bytes();
        assert!(taken < BOUND, "{taken}");
        // The first pages are of a part of what is left, and the last ones of what a queue may have.
        assert!(taken > BOUND / 4, "{taken}");
    }
}

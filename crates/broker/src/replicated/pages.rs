//! Pages of deep queues, read from the log: the ledger knows which entries have them.
//!
//! ```text
//! SharedVhost ─▶ Journal::request ─▶ Ledger::excerpt ─▶ the log ─▶ the vhost
//!                                        ▲                 │
//!                                        └── again, if the entries are not where they were
//! ```
//!
//! Messages of many queues that were published at one time are in the same entries. So pages that wait are read together,
//! and one whose entries are being read waits until they were: a hundred such queues would otherwise read and decode the
//! log a hundred times.

use std::collections::{BTreeSet, VecDeque};
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
    /// Only pages of one part are read together. A group is halved when an entry that it was read with is broken.
    part: u64,
    on_read: OnRead,
}

/// Why nothing was read.
enum Unreadable {
    Unanswered(String),
    /// An entry is not as it was written. The pages that do not need it can be read.
    Broken(String),
}

/// The pages of a term.
#[derive(Default)]
pub(super) struct Pages {
    waiting: VecDeque<Wanted>,
    /// Number of reads, and the bytes of what they read.
    reading: usize,
    pub(super) reading_bytes: u64,
    /// The extents that they read, by their first entries.
    extents: BTreeSet<u64>,
    /// Approximate bytes of the messages that they yield.
    page_bytes: u64,
}

/// What a read takes while it is under way.
pub(super) struct Reading {
    extents: Vec<u64>,
    /// Bytes of the entries.
    bytes: u64,
    /// Approximate bytes of the messages.
    page_bytes: u64,
}

/// Maximum number of reads at once: each takes up to 16 MiB meanwhile.
const READING_MAX: usize = 4;

/// Maximum number of pages of one read: to find the messages of so many takes a few milliseconds.
const TOGETHER_MAX: usize = 4_096;

/// Maximum number of pages that are looked at in vain for one read.
const APART_MAX: usize = 256;

/// Pause before a page is read again: what the ledger knew of the log has changed, or a server does not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

impl Wanted {
    pub(crate) fn new(want: Want, on_read: OnRead) -> Self {
        Self {
            want,
            since: Instant::now(),
            part: 1,
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
    ) -> Option<(Vec<Wanted>, Excerpt, Reading)> {
        if self.reading == READING_MAX {
            return None;
        }
        let (group, excerpt) = self.next_group(ledger, page_bytes)?;
        let reading = Reading {
            extents: excerpt.extents().collect(),
            bytes: excerpt.bytes(),
            page_bytes: excerpt.page_bytes(),
        };
        self.reading += 1;
        self.reading_bytes += reading.bytes;
        self.page_bytes += reading.page_bytes;
        self.extents.extend(&reading.extents);
        Some((group, excerpt, reading))
    }

    /// Takes the next page that waits, and those behind it that are in the same part of the log. Others keep their order.
    fn next_group(
        &mut self,
        ledger: &Ledger,
        page_bytes: impl Fn(usize) -> usize,
    ) -> Option<(Vec<Wanted>, Excerpt)> {
        let bytes_max = |more: u64| page_bytes((self.page_bytes + more) as usize);
        let is_free = |excerpt: &Excerpt| excerpt.extents().all(|at| !self.extents.contains(&at));
        let first = self.waiting.front()?;
        let mut excerpt = first.excerpt(ledger, bytes_max(0));
        if !is_free(&excerpt) {
            return None;
        }
        let (mut group, mut rest) = (Vec::new(), VecDeque::new());
        let part = first.part;
        group.extend(self.waiting.pop_front());
        for next in self.waiting.drain(..) {
            let is_full = group.len() == TOGETHER_MAX || rest.len() >= APART_MAX;
            let is_joined = !is_full && next.part == part && {
                let next = next.excerpt(ledger, bytes_max(excerpt.page_bytes()));
                is_free(&next) && excerpt.join(next)
            };
            if is_joined {
                group.push(next);
            } else {
                rest.push_back(next);
            }
        }
        self.waiting = rest;
        Some((group, excerpt))
    }

    fn end_read(&mut self, read: &Reading) {
        self.reading = self.reading.saturating_sub(1);
        self.reading_bytes = self.reading_bytes.saturating_sub(read.bytes);
        self.page_bytes = self.page_bytes.saturating_sub(read.page_bytes);
        for at in &read.extents {
            self.extents.remove(at);
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
        let holder = &self.task.holder;
        while let Some((group, excerpt, reading)) = term
            .pages
            .next_read(&self.ledger, |under_way| holder.page_bytes(under_way))
        {
            let (stream, doing) = (stream.clone(), term.doing.clone());
            tokio::spawn(async move {
                let read = read(&stream, excerpt).await;
                let again = hand_over(group, read);
                let is_again = !again.is_empty();
                let _ = doing.send(Done::PagesRead(reading));
                if is_again {
                    tokio::time::sleep(AGAIN_AFTER).await;
                    let _ = doing.send(Done::PagesWanted(again));
                }
            });
        }
    }

    /// Pages were read: what they took is free.
    pub(super) fn end_pages(&mut self, stream: &Stream, read: &Reading) {
        if let Some(term) = &mut self.term {
            term.pages.end_read(read);
        }
        self.read_pages(stream);
    }

    /// Pages are to be read again.
    pub(super) fn want_again(&mut self, stream: &Stream, again: Vec<Wanted>) {
        if let Some(term) = &mut self.term {
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

/// Reads the messages of pages.
async fn read(
    stream: &Stream,
    mut excerpt: Excerpt,
) -> Result<Vec<Result<Found, Broken>>, Unreadable> {
    while let Some(between) = excerpt.next_read() {
        let entries = log::read_between(stream, between).await;
        for (sequence, entry) in entries.map_err(Unreadable::Unanswered)? {
            let taken = excerpt.take(Sequence(sequence), &entry);
            taken.map_err(|broken| {
                Unreadable::Broken(format!("entry {sequence} of the log: {broken}"))
            })?;
        }
    }
    Ok(excerpt.finish())
}

/// Hands pages to those that requested them; returns the requests that are to be tried again.
fn hand_over(
    mut group: Vec<Wanted>,
    read: Result<Vec<Result<Found, Broken>>, Unreadable>,
) -> Vec<Wanted> {
    let pages: Vec<Result<Page, String>> = match read {
        Ok(found) => found.into_iter().map(page).collect(),
        Err(Unreadable::Broken(_)) if group.len() > 1 => {
            let half = group.len() / 2;
            for (at, wanted) in group.iter_mut().enumerate() {
                wanted.part = wanted.part.wrapping_mul(2) | u64::from(at >= half);
            }
            return group;
        }
        Err(Unreadable::Broken(why) | Unreadable::Unanswered(why)) => {
            group.iter().map(|_| Err(why.clone())).collect()
        }
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
    const MESSAGES: i64 = 100;
    const NOW: Time = Time(1);

    /// A ledger whose log alone has the messages of many short queues, which were filled in turn or together.
    fn crowded(together: bool) -> Ledger {
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
        let queues = || (1..=QUEUES).map(QueueId);
        let declared = queues().map(|id| Record::QueueDeclared {
            id,
            name: format!("q{}", id.0).into(),
            auto_delete: false,
            arguments: TableBuf::new(),
        });
        let mut batches = vec![declared.collect()];
        let messages = |queue| (1..=MESSAGES).map(move |place| enqueued(queue, place));
        match together {
            false => batches.extend(queues().map(|queue| messages(queue).collect::<Vec<_>>())),
            true => batches.extend((1..=MESSAGES).map(|place| {
                let at_place = queues().map(|queue| enqueued(queue, place));
                at_place.collect()
            })),
        }
        for (records, number) in batches.into_iter().zip(1..) {
            ledger.submit(NOW, records, Position(number));
            settle(&mut ledger);
        }
        ledger.set_crowded(true);
        ledger
    }

    fn enqueued(queue: QueueId, place: i64) -> Record {
        Record::enqueued(
            queue,
            place,
            StoredMessage::new(Arc::new(MessageContent::new("", "", &[0, 0], &[7; 1_000]))),
        )
    }

    /// The pages that a vhost requests once it was restored.
    fn wanted(ledger: &Ledger) -> Vec<Wanted> {
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
        wants
            .map(|want| Wanted::new(want, Box::new(drop)))
            .collect()
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
        let ledger = crowded(false);
        assert!(ledger.is_deep());
        let wanted = wanted(&ledger);
        let mut pages = Pages {
            waiting: wanted.into(),
            ..Pages::default()
        };
        assert_eq!(pages.waiting.len() as u64, QUEUES);
        let flow = FlowControl::new(BOUND, usize::MAX);
        let mut read = 0;
        // Each has come before the next one begins, or four are under way.
        let mut under_way = VecDeque::new();
        loop {
            let next = pages.next_read(&ledger, |bytes| flow.page_bytes(bytes));
            if let Some((group, _, reading)) = next {
                read += group.len() as u64;
                under_way.push_back(reading);
                continue;
            }
            let Some(reading) = under_way.pop_front() else {
                break;
            };
            pages.end_read(&reading);
            flow.memory_changed(0, reading.page_bytes as usize);
        }
        assert_eq!(read, QUEUES);
        let taken = flow.memory_bytes();
        assert!(taken < BOUND, "{taken}");
        // The first pages are of a part of what is left, and the last ones of what a queue may have.
        assert!(taken > BOUND / 4, "{taken}");
    }

    #[test]
    fn pages_of_queues_that_share_entries_are_read_together() {
        let ledger = crowded(true);
        let mut wanted = wanted(&ledger).into_iter();
        let mut pages = Pages::default();
        let page_bytes = |_| 64 << 10;
        pages.waiting.extend(wanted.next());
        let (group, excerpt, first) = pages.next_read(&ledger, page_bytes).expect("a read");
        assert_eq!(group.len(), 1);
        let one_alone = excerpt.bytes();
        // The entries are being read.
        pages.waiting.extend(wanted);
        assert!(pages.next_read(&ledger, page_bytes).is_none());
        pages.end_read(&first);
        let (group, excerpt, second) = pages.next_read(&ledger, page_bytes).expect("a read");
        assert_eq!(group.len() as u64, QUEUES - 1);
        assert!(
            excerpt.bytes() <= one_alone * 2,
            "{} {one_alone}",
            excerpt.bytes()
        );
        pages.end_read(&second);
        assert_eq!(
            (pages.reading, pages.reading_bytes, pages.page_bytes),
            (0, 0, 0)
        );
        assert!(pages.extents.is_empty());
    }

    #[test]
    fn pages_read_together_with_a_broken_entry_are_halved() {
        let ledger = crowded(true);
        let mut pages = Pages {
            waiting: wanted(&ledger).into(),
            ..Pages::default()
        };
        let page_bytes = |_| 64 << 10;
        let (group, _, reading) = pages.next_read(&ledger, page_bytes).expect("a read");
        assert_eq!(group.len() as u64, QUEUES);
        pages.end_read(&reading);
        let broken = || Err(Unreadable::Broken("entry 1 of the log".to_owned()));
        pages.waiting.extend(hand_over(group, broken()));
        // One half is read at once, the other one is halved again.
        let (first, _, reading) = pages.next_read(&ledger, page_bytes).expect("a read");
        assert_eq!(first.len() as u64, QUEUES / 2);
        pages.end_read(&reading);
        let (mut second, _, reading) = pages.next_read(&ledger, page_bytes).expect("a read");
        assert_eq!(second.len() as u64, QUEUES / 2);
        pages.end_read(&reading);
        while second.len() > 1 {
            let before = second.len();
            pages.waiting.extend(hand_over(second, broken()));
            let (part, _, reading) = pages.next_read(&ledger, page_bytes).expect("a read");
            assert_eq!(part.len(), before / 2);
            pages.end_read(&reading);
            pages.waiting.clear();
            second = part;
        }
        assert!(pages.waiting.is_empty());
    }
}

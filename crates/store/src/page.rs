//! Pages of deep queues: messages that a vhost has let out of memory.

use crosstie_queues::{Page, Paged, QueueId, Want};

use crate::segments::contents::{Contents, Found, Wanted};
use crate::segments::log::Fault;
use crate::segments::record::QueueKey;

/// A page, and what of it cannot be read.
pub(crate) struct PageRead {
    pub(crate) page: Page,
    pub(crate) damaged: Vec<(QueueKey, i64)>,
}

/// The page of a queue that the store does not have.
pub(crate) fn empty(want: &Want) -> Page {
    Page {
        messages: Vec::new(),
        upto: want.to,
    }
}

/// The first messages of a page, about that many bytes of each id.
pub(crate) fn wanted(vhost: u16, want: &Want, bytes_max: usize) -> Wanted {
    let key = |id: Option<QueueId>| id.map(|QueueId(queue)| QueueKey { vhost, queue });
    Wanted {
        queues: [key(want.stored), key(want.spilled)],
        places: (want.from, want.to),
        bytes_max: bytes_max as u64,
    }
}

/// Reads the first messages of each page, as far as the pages go in one read.
pub(crate) fn read(
    contents: &Contents,
    vhost: u16,
    wants: &[&Want],
    bytes_max: usize,
) -> Result<Vec<PageRead>, Fault> {
    let wanted: Vec<_> = wants
        .iter()
        .map(|want| wanted(vhost, want, bytes_max))
        .collect();
    let found = contents.read(&wanted)?;
    let pages = wanted.iter().zip(found);
    let pages = pages.map(|(Wanted { queues, .. }, found)| page(queues[1], found));
    Ok(pages.collect())
}

impl PageRead {
    /// The messages before the first that cannot be read; an error tells how many cannot be read if there are none.
    pub(crate) fn before_damage(self) -> Result<Page, usize> {
        let Self { mut page, damaged } = self;
        if let Some((_, first)) = damaged.first() {
            page.upto = first - 1;
            page.messages.retain(|paged| paged.place < *first);
            if page.messages.is_empty() {
                return Err(damaged.len());
            }
        }
        Ok(page)
    }
}

fn page(spilled: Option<QueueKey>, found: Found) -> PageRead {
    let mut damaged = Vec::new();
    let messages = found.messages.into_iter().filter_map(|chosen| {
        let Some(message) = chosen.message else {
            damaged.push((chosen.queue, chosen.place));
            return None;
        };
        Some(Paged {
            place: chosen.place,
            message,
            is_spilled: Some(chosen.queue) == spilled,
        })
    });
    let messages = messages.collect();
    let upto = found.upto;
    PageRead {
        page: Page { messages, upto },
        damaged,
    }
}

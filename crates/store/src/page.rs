//! Pages of deep queues: messages that a vhost has let out of memory.

use crosstie_queues::{Page, Paged, QueueId, Want};

use crate::segments::contents::Contents;
use crate::segments::log::Fault;
use crate::segments::record::QueueKey;

/// A page, and what of it cannot be read.
pub(crate) struct PageRead {
    pub(crate) page: Page,
    pub(crate) damaged: Vec<(QueueKey, i64)>,
}

/// Reads the first messages of a page, about that many bytes of each id.
pub(crate) fn read(
    contents: &Contents,
    vhost: u16,
    want: &Want,
    bytes_max: usize,
) -> Result<PageRead, Fault> {
    let mut page = Page {
        messages: Vec::new(),
        upto: want.to,
    };
    let mut damaged = Vec::new();
    let ids = [(want.stored, false), (want.spilled, true)];
    for (id, is_spilled) in ids {
        let Some(QueueId(queue)) = id else {
            continue;
        };
        let key = QueueKey { vhost, queue };
        let (read, upto) = contents.read(key, (want.from, page.upto), bytes_max as u64)?;
        page.upto = upto;
        for (place, message) in read {
            match message {
                Some(message) => page.messages.push(Paged {
                    place,
                    message,
                    is_spilled,
                }),
                None => damaged.push((key, place)),
            }
        }
    }
    // One part may have ended before the other.
    page.messages.retain(|paged| paged.place <= page.upto);
    page.messages.sort_by_key(|paged| paged.place);
    damaged.retain(|(_, place)| *place <= page.upto);
    damaged.sort_unstable_by_key(|(_, place)| *place);
    Ok(PageRead { page, damaged })
}

//! Pages of deep queues: messages that a vhost has let out of memory.

use std::sync::Arc;

use crosstie_queues::{Page, Paged, QueueId, StoredMessage, Want};
use rusqlite::{Connection, Row, params};

use crate::rows::{message_content, stored_message};

/// Reads the first messages of a page, about that many bytes. A vhost without a number has none.
pub(crate) fn read(
    connection: &Connection,
    vhost: Option<i64>,
    want: &Want,
    bytes_max: usize,
) -> rusqlite::Result<Page> {
    let mut page = Page {
        messages: Vec::new(),
        upto: want.to,
    };
    let Some(vhost) = vhost else {
        return Ok(page);
    };
    let ids = [(want.stored, false), (want.spilled, true)];
    for (id, is_spilled) in ids {
        let Some(id) = id else {
            continue;
        };
        let part = read_part(connection, vhost, id, (want.from, page.upto), bytes_max)?;
        page.upto = part.upto;
        page.messages
            .extend(part.messages.into_iter().map(|(place, message)| Paged {
                place,
                message,
                is_spilled,
            }));
    }
    // One part may have ended before the other.
    page.messages.retain(|paged| paged.place <= page.upto);
    page.messages.sort_by_key(|paged| paged.place);
    Ok(page)
}

/// The messages under one id.
struct Part {
    messages: Vec<(i64, StoredMessage)>,
    /// None is missing up to this place.
    upto: i64,
}

fn read_part(
    connection: &Connection,
    vhost: i64,
    id: QueueId,
    (from, to): (i64, i64),
    bytes_max: usize,
) -> rusqlite::Result<Part> {
    let mut statement = connection.prepare_cached(
        "SELECT vhost, queue, place, expires_at, deliveries, content FROM message
         WHERE vhost = ?1 AND queue = ?2 AND place BETWEEN ?3 AND ?4 ORDER BY place",
    )?;
    let mut rows = statement.query(params![vhost, id.0 as i64, from, to])?;
    let mut part = Part {
        messages: Vec::new(),
        upto: to,
    };
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let message = stored_message(row, |number| shared(connection, number))?;
        bytes += message.content.memory_bytes();
        let place = row.get(2)?;
        part.messages.push((place, message));
        if bytes >= bytes_max {
            part.upto = place;
            break;
        }
    }
    Ok(part)
}

fn shared(
    connection: &Connection,
    number: i64,
) -> rusqlite::Result<Option<Arc<crosstie_queues::MessageContent>>> {
    let mut statement =
        connection.prepare_cached("SELECT bytes FROM shared_content WHERE number = ?1")?;
    let mut found = statement.query_map([number], |row: &Row<'_>| message_content(row, 0))?;
    found.next().transpose()
}

/// Removes messages of queues that are not declared: those that a vhost had let out of memory, and that a restart
/// forgets.
pub(crate) fn forget_spilled(connection: &Connection) -> rusqlite::Result<()> {
    let spilled = "FROM message AS spilled WHERE NOT EXISTS (
        SELECT 1 FROM queue WHERE queue.vhost = spilled.vhost AND queue.id = spilled.queue)";
    let has_some: bool =
        connection.query_row(&format!("SELECT EXISTS (SELECT 1 {spilled})"), (), |row| {
            row.get(0)
        })?;
    if !has_some {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(&format!(
        "DELETE {spilled};
         DELETE FROM shared_content WHERE number NOT IN (
             SELECT content FROM message WHERE typeof(content) = 'integer');
         DELETE FROM shared_content_user WHERE number NOT IN (SELECT number FROM shared_content);
         UPDATE shared_content_user SET messages = (
             SELECT count(*) FROM message WHERE content = shared_content_user.number);"
    ))?;
    transaction.commit()
}

/// The number of a vhost, if it has records.
pub(crate) fn number(connection: &Connection, vhost: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT number FROM vhost WHERE name = ?1")?;
    let mut found = statement.query_map([vhost], |row| row.get(0))?;
    found.next().transpose()
}

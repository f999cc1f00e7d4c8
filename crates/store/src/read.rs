//! Rows into records.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::path::Path;
use std::sync::Arc;

use crosstie_amqp::{Table, TableBuf};
use crosstie_queues::{Destination, Kept, MessageContent, QueueId, Record, StoredMessage};
use rusqlite::{Connection, Row};

use crate::Restored;
use crate::error::StoreError;
use crate::form::Part;
use crate::rows::{self, message_content, not_as_written, stored_message};

/// Everything that is kept: exchanges, queues, bindings, and then messages in their order.
///
/// Of a queue with more messages than `loaded_max` there is only their extent, unless it has priorities.
pub(crate) fn read(
    connection: &Connection,
    path: &Path,
    loaded_max: usize,
) -> Result<Vec<Restored>, StoreError> {
    let mut reader = Reader {
        vhosts: HashMap::new(),
        restored: Vec::new(),
        loaded_max,
        prioritized: HashSet::new(),
    };
    match reader.read(connection) {
        Ok(()) => Ok(reader.restored),
        Err(error) => Err(rows::error(path, error)),
    }
}

struct Reader {
    vhosts: HashMap<i64, Arc<str>>,
    restored: Vec<Restored>,
    loaded_max: usize,
    /// Queues with priorities.
    prioritized: HashSet<(Arc<str>, QueueId)>,
}

/// The messages of one queue so far.
#[derive(Default)]
struct Extent {
    vhost: Option<Arc<str>>,
    /// The number of records before its first message.
    start: usize,
    kept: Kept,
    /// Whether only the extent is handed over.
    is_kept: bool,
}

impl Extent {
    fn of(vhost: &Arc<str>, queue: QueueId, start: usize) -> Self {
        Self {
            vhost: Some(Arc::clone(vhost)),
            start,
            kept: Kept {
                queue,
                ..Kept::default()
            },
            is_kept: false,
        }
    }

    fn is_of(&self, vhost: &Arc<str>, queue: QueueId) -> bool {
        self.vhost.as_ref() == Some(vhost) && self.kept.queue == queue
    }

    fn add(&mut self, place: i64, message: &StoredMessage) {
        if self.kept.messages == 0 {
            self.kept.from = place;
        }
        self.kept.to = place;
        self.kept.messages += 1;
        self.kept.body_bytes += message.content.body().len() as u64;
    }

    fn kept(&self) -> Option<Restored> {
        let vhost = self.vhost.as_ref().filter(|_| self.is_kept)?;
        Some(Restored {
            vhost: Arc::clone(vhost),
            record: Record::Kept(self.kept),
        })
    }
}

impl Reader {
    fn read(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare("SELECT number, name FROM vhost")?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            self.vhosts.insert(row.get(0)?, row.get(1)?);
        }
        self.read_each(
            connection,
            "SELECT vhost, name, kind, auto_delete, internal, arguments FROM exchange",
            exchange,
        )?;
        self.read_each(
            connection,
            "SELECT vhost, id, name, auto_delete, arguments FROM queue",
            queue,
        )?;
        self.prioritized = self.restored.iter().filter_map(prioritized).collect();
        let order = match Part::Order.is_in(connection)? {
            true => "place",
            false => "0",
        };
        let sql = format!(
            "SELECT vhost, source, to_queue, destination, routing_key, arguments, {order} FROM binding"
        );
        self.read_each(connection, &sql, binding)?;
        self.read_messages(connection)?;
        if Part::Rested.is_in(connection)? {
            let sql = "SELECT vhost, queue, fresh_from FROM rested";
            self.read_each(connection, sql, rested)?;
        }
        Ok(())
    }

    /// Messages in their order. Of a queue with more than `loaded_max` only the extent.
    fn read_messages(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let shared = read_shared(connection)?;
        let mut statement = connection.prepare(
            "SELECT vhost, queue, place, expires_at, deliveries, content FROM message
             ORDER BY vhost, queue, place",
        )?;
        let mut rows = statement.query(())?;
        let mut extent = Extent::default();
        while let Some(row) = rows.next()? {
            let vhost = self.vhosts.get(&row.get(0)?);
            let vhost = vhost.ok_or_else(|| not_as_written(0, "a row's vhost is not there"))?;
            let vhost = Arc::clone(vhost);
            let queue = QueueId(row.get::<_, i64>(1)? as u64);
            let place = row.get(2)?;
            let message = stored_message(row, |number| Ok(shared.get(&number).cloned()))?;
            if !extent.is_of(&vhost, queue) {
                self.restored.extend(extent.kept());
                extent = Extent::of(&vhost, queue, self.restored.len());
            }
            extent.add(place, &message);
            let is_kept = extent.kept.messages > self.loaded_max
                && !self.prioritized.contains(&(Arc::clone(&vhost), queue));
            if !is_kept {
                let record = Record::Enqueued {
                    queue,
                    place,
                    message,
                };
                self.restored.push(Restored { vhost, record });
            } else if !mem::replace(&mut extent.is_kept, true) {
                self.restored.truncate(extent.start);
            }
        }
        self.restored.extend(extent.kept());
        Ok(())
    }

    fn read_each(
        &mut self,
        connection: &Connection,
        sql: &str,
        mut record: impl FnMut(&Row<'_>) -> rusqlite::Result<Record>,
    ) -> rusqlite::Result<()> {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let vhost = self.vhosts.get(&row.get(0)?);
            let vhost = vhost.ok_or_else(|| not_as_written(0, "a row's vhost is not there"))?;
            self.restored.push(Restored {
                vhost: Arc::clone(vhost),
                record: record(row)?,
            });
        }
        Ok(())
    }
}

fn rested(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record::Rested {
        queue: QueueId(row.get::<_, i64>(1)? as u64),
        fresh_from: row.get(2)?,
    })
}

fn exchange(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record::ExchangeDeclared {
        name: row.get(1)?,
        kind: row.get(2)?,
        auto_delete: row.get(3)?,
        internal: row.get(4)?,
        arguments: table(row, 5)?,
    })
}

fn queue(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record::QueueDeclared {
        id: QueueId(row.get::<_, i64>(1)? as u64),
        name: row.get(2)?,
        auto_delete: row.get(3)?,
        arguments: table(row, 4)?,
    })
}

/// A queue with priorities: its messages stay in memory.
fn prioritized(restored: &Restored) -> Option<(Arc<str>, QueueId)> {
    let Record::QueueDeclared { id, arguments, .. } = &restored.record else {
        return None;
    };
    arguments.as_table().find("x-max-priority")?;
    Some((Arc::clone(&restored.vhost), *id))
}

fn binding(row: &Row<'_>) -> rusqlite::Result<Record> {
    let name = row.get(3)?;
    Ok(Record::Bound {
        source: row.get(1)?,
        destination: if row.get(2)? {
            Destination::Queue(name)
        } else {
            Destination::Exchange(name)
        },
        routing_key: row.get(4)?,
        arguments: table(row, 5)?,
        order: row.get::<_, i64>(6)? as u64,
    })
}

fn read_shared(connection: &Connection) -> rusqlite::Result<HashMap<i64, Arc<MessageContent>>> {
    connection
        .prepare("SELECT number, bytes FROM shared_content")?
        .query_map((), |row| Ok((row.get(0)?, message_content(row, 1)?)))?
        .collect()
}

fn table(row: &Row<'_>, column: usize) -> rusqlite::Result<TableBuf> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Table::from_bytes(bytes)
        .map(TableBuf::from)
        .map_err(|_| not_as_written(column, "a table of arguments is not as it was written"))
}

//! Stores of version 0.1.0: one SQLite file, which is read once, and written anew as segments.

mod content;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use crosstie_amqp::{Table, TableBuf};
use crosstie_queues::{Destination, MessageContent, QueueId, Record, StoredMessage, Time};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Row};

use crate::error::{StoreError, StoreErrorKind};
use crate::file::StoreFile;
use crate::form::{MESSAGES, RESTED_VERSION};
use crate::{Damaged, Restored};

/// The contents of a file.
pub(crate) struct Read {
    /// Exchanges, queues, bindings, and then messages in their order.
    pub(crate) restored: Vec<Restored>,
    /// The messages that are left out, a clause for each queue.
    pub(crate) damaged: Vec<String>,
    /// It stays open, and so in the hands of this process, until this is dropped.
    pub(crate) file: StoreFile,
}

/// Reads a file, and changes nothing. Messages that are not as they were written are left out if that is accepted.
pub(crate) fn read(path: &Path, accepts_loss: bool) -> Result<Read, StoreError> {
    let Some(file) = StoreFile::open(path, &MESSAGES)? else {
        let error = std::io::ErrorKind::NotFound.into();
        return Err(StoreError::io(path, "looking for it", error));
    };
    file.closes_with_checkpoint(false)
        .map_err(|error| StoreError::sqlite(path, "opening it", error))?;
    let Reader {
        restored, damaged, ..
    } = read_rows(&file.connection, path)?;
    let damaged: Vec<_> = damaged.values().map(ToString::to_string).collect();
    if !damaged.is_empty() && !accepts_loss {
        let what = damaged.join("; ");
        return Err(StoreError::new(path, StoreErrorKind::Loss { what }));
    }
    Ok(Read {
        restored,
        damaged,
        file,
    })
}

fn read_rows(connection: &Connection, path: &Path) -> Result<Reader, StoreError> {
    let mut reader = Reader::default();
    reader.read(connection).map_err(|error| match error {
        // The row's values are impossible: it has been changed since it was written.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => StoreError::new(
            path,
            StoreErrorKind::Damaged {
                what: error.to_string(),
            },
        ),
        _ => StoreError::sqlite(path, "reading it", error),
    })?;
    Ok(reader)
}

#[derive(Default)]
struct Reader {
    vhosts: HashMap<i64, Arc<str>>,
    restored: Vec<Restored>,
    /// Queues with messages that are not as they were written.
    damaged: BTreeMap<(i64, QueueId), Damaged>,
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
        self.read_each(
            connection,
            "SELECT vhost, source, to_queue, destination, routing_key, arguments FROM binding",
            binding,
        )?;
        self.read_messages(connection)?;
        if is_rested(connection)? {
            let sql = "SELECT vhost, queue, fresh_from FROM rested";
            self.read_each(connection, sql, rested)?;
        }
        Ok(())
    }

    fn read_messages(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let shared = read_shared(connection)?;
        let mut statement = connection.prepare(
            "SELECT vhost, queue, place, expires_at, deliveries, content FROM message
             ORDER BY vhost, queue, place",
        )?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let vhost = self.vhost(number)?;
            let id = QueueId(row.get::<_, i64>(1)? as u64);
            match message(row, id, &shared)? {
                Some(record) => self.restored.push(Restored { vhost, record }),
                None => self.note_damaged((number, id), vhost),
            }
        }
        Ok(())
    }

    fn note_damaged(&mut self, key: (i64, QueueId), vhost: Arc<str>) {
        if let Some(damaged) = self.damaged.get_mut(&key) {
            damaged.messages += 1;
            return;
        }
        let declared = self.restored.iter().find_map(|found| match &found.record {
            Record::QueueDeclared { id, name, .. } => {
                (*id == key.1 && found.vhost == vhost).then(|| Arc::clone(name))
            }
            _ => None,
        });
        let damaged = Damaged {
            vhost,
            id: key.1,
            queue: declared.unwrap_or_default(),
            messages: 1,
            acknowledgements: 0,
        };
        self.damaged.insert(key, damaged);
    }

    fn vhost(&self, number: i64) -> rusqlite::Result<Arc<str>> {
        let vhost = self.vhosts.get(&number).map(Arc::clone);
        vhost.ok_or_else(|| not_as_written(0, "a row's vhost is not there"))
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
            let vhost = self.vhost(row.get(0)?)?;
            let record = record(row)?;
            self.restored.push(Restored { vhost, record });
        }
        Ok(())
    }
}

/// Whether the store has the table of messages that were never delivered.
fn is_rested(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version == RESTED_VERSION)
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
        order: 0,
    })
}

/// A message whose content is in its row, or in the table of shared contents, by its number there. `None` if the
/// content is not as it was written.
fn message(
    row: &Row<'_>,
    queue: QueueId,
    shared: &HashMap<i64, Arc<MessageContent>>,
) -> rusqlite::Result<Option<Record>> {
    let content = match row.get_ref(5)? {
        ValueRef::Integer(number) => shared.get(&number).map(Arc::clone),
        _ => message_content(row, 5)?,
    };
    let Some(content) = content else {
        return Ok(None);
    };
    Ok(Some(Record::enqueued(
        queue,
        row.get(2)?,
        StoredMessage {
            content,
            expires_at: row.get::<_, Option<i64>>(3)?.map(|time| Time(time as u64)),
            deliveries: row.get(4)?,
        },
    )))
}

/// The contents that are as they were written.
fn read_shared(connection: &Connection) -> rusqlite::Result<HashMap<i64, Arc<MessageContent>>> {
    let mut shared = HashMap::new();
    let mut statement = connection.prepare("SELECT number, bytes FROM shared_content")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        if let Some(content) = message_content(row, 1)? {
            shared.insert(row.get(0)?, content);
        }
    }
    Ok(shared)
}

fn message_content(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Arc<MessageContent>>> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Ok(content::decode(bytes).map(Arc::new))
}

fn table(row: &Row<'_>, column: usize) -> rusqlite::Result<TableBuf> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Table::from_bytes(bytes)
        .map(TableBuf::from)
        .map_err(|_| not_as_written(column, "a table of arguments is not as it was written"))
}

fn not_as_written(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, what.into())
}

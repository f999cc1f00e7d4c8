//! Stores of version 0.1.0: one SQLite file, which is read once, and written anew as segments.

mod content;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crosstie_amqp::{Table, TableBuf};
use crosstie_queues::{Destination, MessageContent, QueueId, Record, StoredMessage, Time};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Row};

use crate::Restored;
use crate::error::{StoreError, StoreErrorKind};
use crate::file::StoreFile;
use crate::form::{MESSAGES, RESTED_VERSION};

/// Everything that is kept: exchanges, queues, bindings, and then messages in their order. The file stays open, and so
/// in the hands of this process, until the second value is dropped.
pub(crate) fn read(path: &Path) -> Result<(Vec<Restored>, StoreFile), StoreError> {
    let Some(file) = StoreFile::open(path, &MESSAGES)? else {
        let error = std::io::ErrorKind::NotFound.into();
        return Err(StoreError::io(path, "looking for it", error));
    };
    Ok((read_rows(&file.connection, path)?, file))
}

fn read_rows(connection: &Connection, path: &Path) -> Result<Vec<Restored>, StoreError> {
    let mut reader = Reader {
        vhosts: HashMap::new(),
        restored: Vec::new(),
    };
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
    Ok(reader.restored)
}

struct Reader {
    vhosts: HashMap<i64, Arc<str>>,
    restored: Vec<Restored>,
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
        let shared = read_shared(connection)?;
        self.read_each(
            connection,
            "SELECT vhost, queue, place, expires_at, deliveries, content FROM message
             ORDER BY vhost, queue, place",
            |row| message(row, &shared),
        )?;
        if is_rested(connection)? {
            let sql = "SELECT vhost, queue, fresh_from FROM rested";
            self.read_each(connection, sql, rested)?;
        }
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

/// A message whose content is in its row, or in the table of shared contents, by its number there.
fn message(row: &Row<'_>, shared: &HashMap<i64, Arc<MessageContent>>) -> rusqlite::Result<Record> {
    let content = match row.get_ref(5)? {
        ValueRef::Integer(number) => {
            let content = shared
                .get(&number)
                .ok_or_else(|| not_as_written(5, "a message's shared content is not there"))?;
            Arc::clone(content)
        }
        _ => message_content(row, 5)?,
    };
    Ok(Record::Enqueued {
        queue: QueueId(row.get::<_, i64>(1)? as u64),
        place: row.get(2)?,
        message: StoredMessage {
            content,
            expires_at: row.get::<_, Option<i64>>(3)?.map(|time| Time(time as u64)),
            deliveries: row.get(4)?,
        },
    })
}

fn read_shared(connection: &Connection) -> rusqlite::Result<HashMap<i64, Arc<MessageContent>>> {
    connection
        .prepare("SELECT number, bytes FROM shared_content")?
        .query_map((), |row| Ok((row.get(0)?, message_content(row, 1)?)))?
        .collect()
}

fn message_content(row: &Row<'_>, column: usize) -> rusqlite::Result<Arc<MessageContent>> {
    let bytes = row.get_ref(column)?.as_blob()?;
    content::decode(bytes)
        .map(Arc::new)
        .ok_or_else(|| not_as_written(column, "a message is not as it was written"))
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

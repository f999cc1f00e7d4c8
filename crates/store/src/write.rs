//! Records into rows.

use std::collections::HashMap;
use std::sync::Arc;

use crosstie_amqp::TableBuf;
use crosstie_queues::{Destination, MessageContent, QueueId, Record, StoredMessage};
use rusqlite::{CachedStatement, Connection, params};

use crate::form::Part;
use crate::{Batch, content};

/// Contents of several queues' messages that are longer than this are written once.
const SHARED_BYTES_MIN: usize = 1024;

/// Writes a batch inside a transaction. Statements are looked up once per batch.
pub(crate) struct Writer<'c> {
    connection: &'c Connection,
    enqueue: Option<CachedStatement<'c>>,
    dequeue: Option<CachedStatement<'c>>,
    /// Some messages share their content.
    is_sharing: bool,
    /// Whether the table of rested queues exists.
    is_rested: bool,
    /// How many messages of this batch share a long content, and its number once it has one; by its address, which is
    /// unique while the batch exists.
    long_contents: HashMap<*const MessageContent, LongContent>,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct LongContent {
    messages: usize,
    number: Option<i64>,
}

impl<'c> Writer<'c> {
    pub(crate) fn new(connection: &'c Connection, batch: &Batch) -> rusqlite::Result<Self> {
        let is_sharing = connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM shared_content_user)")?
            .query_row((), |row| row.get(0))?;
        let mut long_contents: HashMap<_, LongContent> = HashMap::new();
        for (_, record) in batch.records() {
            if let Record::Enqueued { message, .. } = record
                && message.content.body().len() > SHARED_BYTES_MIN
            {
                let content = Arc::as_ptr(&message.content);
                long_contents.entry(content).or_default().messages += 1;
            }
        }
        Ok(Self {
            connection,
            enqueue: None,
            dequeue: None,
            is_sharing,
            is_rested: false,
            long_contents,
            bytes: Vec::new(),
        })
    }

    /// A vhost's number, which is assigned with its first record.
    pub(crate) fn number_vhost(&self, name: &str) -> rusqlite::Result<i64> {
        self.connection
            .prepare_cached(
                "INSERT INTO vhost (name) VALUES (?1)
                 ON CONFLICT (name) DO UPDATE SET name = name RETURNING number",
            )?
            .query_row([name], |row| row.get(0))
    }

    pub(crate) fn write(&mut self, vhost: i64, record: &Record) -> rusqlite::Result<()> {
        match record {
            Record::Enqueued {
                queue,
                place,
                message,
            } => self.enqueue(vhost, *queue, *place, message),
            Record::Dequeued { queue, place } => self.dequeue(vhost, *queue, *place),
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => self.count(vhost, *queue, *place, *deliveries),
            Record::Purged { queue } => self.purge(vhost, *queue, (i64::MIN, i64::MAX)),
            Record::Cleared { queue, from, to } => self.purge(vhost, *queue, (*from, *to)),
            Record::Rested { queue, fresh_from } => self.rest(vhost, *queue, *fresh_from),
            // A vhost makes none.
            Record::Kept(_) => Ok(()),
            Record::ExchangeDeclared {
                name,
                kind,
                auto_delete,
                internal,
                arguments,
            } => self.execute(
                "INSERT OR REPLACE INTO exchange VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![vhost, name, kind, auto_delete, internal, bytes(arguments)],
            ),
            Record::ExchangeDeleted { name } => self.delete_exchange(vhost, name),
            Record::QueueDeclared {
                id,
                name,
                auto_delete,
                arguments,
            } => self.execute(
                "INSERT OR REPLACE INTO queue VALUES (?1, ?2, ?3, ?4, ?5)",
                params![vhost, id.0 as i64, name, auto_delete, bytes(arguments)],
            ),
            Record::QueueDeleted { id } => self.delete_queue(vhost, *id),
            Record::Bound { .. } => self.bind(vhost, record),
            Record::Unbound {
                source,
                destination,
                routing_key,
                arguments,
            } => {
                let (to_queue, name) = parts(destination);
                let arguments = bytes(arguments);
                self.execute(
                    "DELETE FROM binding WHERE vhost = ?1 AND source = ?2 AND to_queue = ?3
                     AND destination = ?4 AND routing_key = ?5 AND arguments = ?6",
                    params![vhost, source, to_queue, name, routing_key, arguments],
                )
            }
        }
    }

    /// Adds a binding, with its place if it has one.
    fn bind(&self, vhost: i64, record: &Record) -> rusqlite::Result<()> {
        let Record::Bound {
            source,
            destination,
            routing_key,
            arguments,
            order,
        } = record
        else {
            return Ok(());
        };
        let (to_queue, name) = parts(destination);
        let arguments = bytes(arguments);
        self.execute(
            "INSERT OR IGNORE INTO binding
             (vhost, source, to_queue, destination, routing_key, arguments)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![vhost, source, to_queue, name, routing_key, arguments],
        )?;
        if *order == 0 {
            return Ok(());
        }
        Part::Order.add(self.connection)?;
        let place = *order as i64;
        self.execute(
            "UPDATE binding SET place = ?7
             WHERE vhost = ?1 AND source = ?2 AND to_queue = ?3
             AND destination = ?4 AND routing_key = ?5 AND arguments = ?6",
            params![vhost, source, to_queue, name, routing_key, arguments, place],
        )
    }

    fn enqueue(
        &mut self,
        vhost: i64,
        queue: QueueId,
        place: i64,
        message: &StoredMessage,
    ) -> rusqlite::Result<()> {
        let shared = self.share(&message.content)?;
        if shared.is_none() {
            content::encode(&message.content, &mut self.bytes);
        }
        let connection = self.connection;
        let statement = match &mut self.enqueue {
            Some(statement) => statement,
            empty => empty.insert(
                connection.prepare_cached("INSERT INTO message VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?,
            ),
        };
        let queue = queue.0 as i64;
        let expires_at = message.expires_at.map(|time| time.0 as i64);
        let deliveries = message.deliveries;
        match shared {
            Some(number) => {
                statement.execute(params![vhost, queue, place, expires_at, deliveries, number])
            }
            None => statement.execute(params![
                vhost, queue, place, expires_at, deliveries, self.bytes
            ]),
        }
        .map(drop)
    }

    /// The number of a content that several messages of the batch have, with one user more.
    fn share(&mut self, content: &Arc<MessageContent>) -> rusqlite::Result<Option<i64>> {
        let known = match self.long_contents.get_mut(&Arc::as_ptr(content)) {
            Some(known) if known.messages > 1 => known,
            _ => return Ok(None),
        };
        let connection = self.connection;
        if let Some(number) = known.number {
            let counted = connection
                .prepare_cached(
                    "UPDATE shared_content_user SET messages = messages + 1 WHERE number = ?1",
                )?
                .execute([number])?;
            if counted == 1 {
                return Ok(Some(number));
            }
            // All of its messages have been removed already.
        }
        content::encode(content, &mut self.bytes);
        connection
            .prepare_cached("INSERT INTO shared_content (bytes) VALUES (?1)")?
            .execute([&self.bytes])?;
        let number = connection.last_insert_rowid();
        connection
            .prepare_cached("INSERT INTO shared_content_user VALUES (?1, 1)")?
            .execute([number])?;
        known.number = Some(number);
        self.is_sharing = true;
        Ok(Some(number))
    }

    fn dequeue(&mut self, vhost: i64, queue: QueueId, place: i64) -> rusqlite::Result<()> {
        let connection = self.connection;
        let key = params![vhost, queue.0 as i64, place];
        if self.is_sharing {
            let number: Option<i64> = connection
                .prepare_cached(
                    "SELECT iif(typeof(content) = 'integer', content, NULL) FROM message
                     WHERE vhost = ?1 AND queue = ?2 AND place = ?3",
                )?
                .query_map(key, |row| row.get(0))?
                .next()
                .transpose()?
                .flatten();
            if let Some(number) = number {
                self.release(number)?;
            }
        }
        let statement = match &mut self.dequeue {
            Some(statement) => statement,
            empty => empty.insert(connection.prepare_cached(
                "DELETE FROM message WHERE vhost = ?1 AND queue = ?2 AND place = ?3",
            )?),
        };
        statement.execute(key).map(drop)
    }

    /// One user less of a shared content.
    fn release(&self, number: i64) -> rusqlite::Result<()> {
        let messages: i64 = self
            .connection
            .prepare_cached(
                "UPDATE shared_content_user SET messages = messages - 1 WHERE number = ?1
                 RETURNING messages",
            )?
            .query_row([number], |row| row.get(0))?;
        if messages > 0 {
            return Ok(());
        }
        self.execute(
            "DELETE FROM shared_content_user WHERE number = ?1",
            [number],
        )?;
        self.execute("DELETE FROM shared_content WHERE number = ?1", [number])
    }

    /// Removes the first messages of a queue, at most that many; returns whether there were any.
    pub(crate) fn purge_some(
        &self,
        vhost: i64,
        queue: QueueId,
        count: u32,
    ) -> rusqlite::Result<bool> {
        let last: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT max(place) FROM (SELECT place FROM message
                 WHERE vhost = ?1 AND queue = ?2 ORDER BY place LIMIT ?3)",
            )?
            .query_row(params![vhost, queue.0 as i64, count], |row| row.get(0))?;
        if let Some(last) = last {
            self.purge(vhost, queue, (i64::MIN, last))?;
        }
        Ok(last.is_some())
    }

    /// From the first to the last of these places.
    fn purge(&self, vhost: i64, queue: QueueId, (from, to): (i64, i64)) -> rusqlite::Result<()> {
        let key = [vhost, queue.0 as i64, from, to];
        if self.is_sharing {
            let mut statement = self.connection.prepare_cached(
                "SELECT content FROM message
                 WHERE vhost = ?1 AND queue = ?2 AND place BETWEEN ?3 AND ?4
                 AND typeof(content) = 'integer'",
            )?;
            let numbers: Vec<i64> = statement
                .query_map(key, |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            for number in numbers {
                self.release(number)?;
            }
        }
        self.execute(
            "DELETE FROM message WHERE vhost = ?1 AND queue = ?2 AND place BETWEEN ?3 AND ?4",
            key,
        )
    }

    fn count(
        &self,
        vhost: i64,
        queue: QueueId,
        place: i64,
        deliveries: u32,
    ) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE message SET deliveries = ?4
             WHERE vhost = ?1 AND queue = ?2 AND place = ?3",
            params![vhost, queue.0 as i64, place, deliveries],
        )
    }

    /// Notes from which place on a queue's messages were never delivered.
    fn rest(&mut self, vhost: i64, queue: QueueId, fresh_from: i64) -> rusqlite::Result<()> {
        if !std::mem::replace(&mut self.is_rested, true) {
            Part::Rested.add(self.connection)?;
        }
        self.execute(
            "INSERT OR REPLACE INTO rested VALUES (?1, ?2, ?3)",
            params![vhost, queue.0 as i64, fresh_from],
        )
    }

    /// With its messages, and with the bindings that lead to it.
    fn delete_queue(&self, vhost: i64, id: QueueId) -> rusqlite::Result<()> {
        self.purge(vhost, id, (i64::MIN, i64::MAX))?;
        let key = [vhost, id.0 as i64];
        self.execute(
            "DELETE FROM binding WHERE vhost = ?1 AND to_queue = 1
             AND destination = (SELECT name FROM queue WHERE vhost = ?1 AND id = ?2)",
            key,
        )?;
        self.execute("DELETE FROM queue WHERE vhost = ?1 AND id = ?2", key)
    }

    /// With the bindings that lead from and to it.
    fn delete_exchange(&self, vhost: i64, name: &str) -> rusqlite::Result<()> {
        let key = params![vhost, name];
        self.execute(
            "DELETE FROM binding WHERE vhost = ?1
             AND (source = ?2 OR (to_queue = 0 AND destination = ?2))",
            key,
        )?;
        self.execute("DELETE FROM exchange WHERE vhost = ?1 AND name = ?2", key)
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(sql)?
            .execute(values)
            .map(drop)
    }
}

fn parts(destination: &Destination) -> (bool, &str) {
    match destination {
        Destination::Exchange(name) => (false, name),
        Destination::Queue(name) => (true, name),
    }
}

fn bytes(arguments: &TableBuf) -> &[u8] {
    arguments.as_table().bytes()
}

//! The forms of a store's file: the program that it belongs to, by the numbers in its header, and its tables.

use rusqlite::Connection;

/// The form of a file.
pub(crate) struct Form {
    /// In the file's header, so that `file` and we recognize it.
    pub(crate) application_id: i32,
    /// The version of the tables below, and of the encoding of their bytes.
    pub(crate) version: i64,
    /// The last that can be read.
    pub(crate) version_max: i64,
    pub(crate) tables: &'static str,
}

/// Vhosts' messages: "XTIE".
pub(crate) static MESSAGES: Form = Form {
    application_id: 0x5854_4945,
    version: 1,
    version_max: 4,
    tables: MESSAGE_TABLES,
};

/// A realm's events: "XTEV".
pub(crate) static EVENTS: Form = Form {
    application_id: 0x5854_4556,
    version: 1,
    version_max: 1,
    tables: EVENT_TABLES,
};

/// `message.content` is either the content, or the number of one that messages share.
///
/// Messages are rows of their primary key's tree, so that those of a queue lie together in their
/// order: they come at one end of it and go from the other.
const MESSAGE_TABLES: &str = "
    CREATE TABLE vhost (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE exchange (
        vhost INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
        auto_delete INTEGER NOT NULL, internal INTEGER NOT NULL, arguments BLOB NOT NULL,
        PRIMARY KEY (vhost, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE queue (
        vhost INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL,
        auto_delete INTEGER NOT NULL, arguments BLOB NOT NULL,
        PRIMARY KEY (vhost, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE binding (
        vhost INTEGER NOT NULL, source TEXT NOT NULL, to_queue INTEGER NOT NULL,
        destination TEXT NOT NULL, routing_key TEXT NOT NULL, arguments BLOB NOT NULL,
        PRIMARY KEY (vhost, source, to_queue, destination, routing_key, arguments)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE message (
        vhost INTEGER NOT NULL, queue INTEGER NOT NULL, place INTEGER NOT NULL,
        expires_at INTEGER, deliveries INTEGER NOT NULL, content ANY NOT NULL,
        PRIMARY KEY (vhost, queue, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE shared_content (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE shared_content_user (
        number INTEGER PRIMARY KEY, messages INTEGER NOT NULL
    ) STRICT;
";

/// Parts that only some stores of messages have. A program that does not know one would leave it outdated, so each has
/// a bit in the version, less the version of a store without any.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// A table of stores whose vhosts have ended in good order: for each queue, the place from which on messages were
    /// never delivered. It is dropped while the store is in use.
    Rested = 1,
    /// The order of bindings, a column that is added with the first binding that has one (`x-consistent-hash`).
    Order = 2,
}

const RESTED: &str = "
    CREATE TABLE IF NOT EXISTS rested (
        vhost INTEGER NOT NULL, queue INTEGER NOT NULL, fresh_from INTEGER NOT NULL,
        PRIMARY KEY (vhost, queue)
    ) STRICT, WITHOUT ROWID;
";

const ORDER: &str = "ALTER TABLE binding ADD COLUMN place INTEGER NOT NULL DEFAULT 0;";

impl Part {
    pub(crate) fn is_in(self, connection: &Connection) -> rusqlite::Result<bool> {
        Ok(parts(connection)? & self as i64 != 0)
    }

    /// Adds it, if it is absent.
    pub(crate) fn add(self, connection: &Connection) -> rusqlite::Result<()> {
        let parts = parts(connection)?;
        if parts & self as i64 != 0 {
            return Ok(());
        }
        connection.execute_batch(match self {
            Self::Rested => RESTED,
            Self::Order => ORDER,
        })?;
        set_parts(connection, parts | self as i64)
    }
}

/// Restores the form of a store that is in use.
pub(crate) fn wake(connection: &Connection) -> rusqlite::Result<()> {
    let parts = parts(connection)?;
    if parts & Part::Rested as i64 == 0 {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch("DROP TABLE IF EXISTS rested")?;
    set_parts(&transaction, parts & !(Part::Rested as i64))?;
    transaction.commit()
}

fn parts(connection: &Connection) -> rusqlite::Result<i64> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version - MESSAGES.version)
}

fn set_parts(connection: &Connection, parts: i64) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", MESSAGES.version + parts)
}

/// Events are stored in chunks, as they were committed: a row for each would cost more than everything else. A chunk's
/// `place` combines the numbers of its log and of its first event; events of a log have numbers without gaps. Searches
/// without the events themselves use columns of their own.
const EVENT_TABLES: &str = "
    CREATE TABLE realm (name TEXT NOT NULL) STRICT;
    CREATE TABLE log (
        number INTEGER PRIMARY KEY, match TEXT NOT NULL, uri TEXT NOT NULL, UNIQUE (match, uri)
    ) STRICT;
    CREATE TABLE chunk (
        place INTEGER PRIMARY KEY, events INTEGER NOT NULL,
        time_min INTEGER NOT NULL, time_max INTEGER NOT NULL,
        publications BLOB NOT NULL, body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE retained (
        number INTEGER PRIMARY KEY, ends_us INTEGER, publication BLOB NOT NULL, body BLOB NOT NULL
    ) STRICT;
";

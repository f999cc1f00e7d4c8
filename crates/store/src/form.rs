//! The forms of a store's file: the program that it belongs to, by the numbers in its header, and its tables.

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
    version_max: RESTED_VERSION,
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

/// A store whose vhosts have ended in good order has a further table: for each queue, the place from which on
/// messages were never delivered. A program that does not know that table would leave outdated rows in it, so
/// the version refuses such a program. [`AWAKE`] restores the ordinary form while the store is in use.
pub(crate) const RESTED_VERSION: i64 = 2;

pub(crate) const RESTED: &str = "
    CREATE TABLE IF NOT EXISTS rested (
        vhost INTEGER NOT NULL, queue INTEGER NOT NULL, fresh_from INTEGER NOT NULL,
        PRIMARY KEY (vhost, queue)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 2;
";

pub(crate) const AWAKE: &str = "
    BEGIN;
    DROP TABLE IF EXISTS rested;
    PRAGMA user_version = 1;
    COMMIT;
";

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

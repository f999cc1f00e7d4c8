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

/// Vhosts' messages, of version 0.1.0: "XTIE".
pub(crate) static MESSAGES: Form = Form {
    application_id: 0x5854_4945,
    version: 1,
    version_max: RESTED_VERSION,
    // None is created any more.
    tables: "",
};

/// A realm's events: "XTEV".
pub(crate) static EVENTS: Form = Form {
    application_id: 0x5854_4556,
    version: 1,
    version_max: 1,
    tables: EVENT_TABLES,
};

/// A store whose vhosts have ended in good order has a further table: for each queue, the place from which on
/// messages were never delivered.
pub(crate) const RESTED_VERSION: i64 = 2;

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

/// The first bytes of a backup, with the version of its format.
pub(crate) const BACKUP_MAGIC: &[u8] = b"XTIEBAK\x01";

/// The first bytes of a file of version 0.1.0.
pub(crate) const EARLIER_MAGIC: &[u8] = b"SQLite format 3\0";

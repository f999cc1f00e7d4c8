//! What a realm keeps: every key that is taken. Long and flat.

use super::form::{
    Fallback, Kind, NO, Rule, TYPE, Table, Tagged, Words, YES, integer, integer_or_zero, key, list,
};

pub(super) static REALM_STORE: Tagged = Tagged {
    path: "realms[].store.type",
    name: "a realm's store",
    variants: &[("memory", &MEMORY), ("sqlite", &SQLITE), ("cfxdb", &CFXDB)],
};

const LIMIT: super::form::Key = key(
    "limit",
    integer(1, 100_000),
    "Default for histories and queues without a `limit` of their own: maximum number of events per history, and of \
     waiting calls per queue.",
)
.fallback(Fallback::Integer(100));

const EVENT_HISTORY: super::form::Key = key(
    "event-history",
    list(&ONE_HISTORY),
    "Topics whose events are recorded: [event history](event-history.md).",
)
.otherwise("none");

const CALL_QUEUE: super::form::Key = key(
    "call-queue",
    list(&ONE_QUEUE),
    "Procedures whose calls wait if no callee is free: [calls that wait](calls.md#calls-that-wait).",
)
.otherwise("none");

const RETAINED: super::form::Key = key(
    "retained",
    list(&ONE_RETENTION),
    "Lifetimes of retained events: [those that end](event-history.md#retained-events-that-end).",
)
.otherwise("until they make room for others")
.own();

static ONE_RETENTION: Kind = Kind::Object(&RETENTION);

static RETENTION: Table = Table {
    path: "realms[].store.retained[]",
    name: "an age of retained events",
    keys: &[
        key(
            "uri",
            Kind::Text(Rule::Uri),
            "Topic or pattern of topics. Of several entries that match, the shortest age counts.",
        )
        .required()
        .own(),
        key("match", Kind::OneOf(&MATCH), "Matching policy of `uri`.")
            .fallback(Fallback::Text("exact"))
            .own(),
        key(
            "age_ms_max",
            integer(1, 31_536_000_000_000),
            "Maximum age of a retained event, in milliseconds. A shorter time from the publisher takes precedence.",
        )
        .required()
        .own(),
    ],
};

static ONE_QUEUE: Kind = Kind::Object(&QUEUE);

static ONE_HISTORY: Kind = Kind::Object(&HISTORY);

static MEMORY: Table = Table {
    path: "realms[].store[memory]",
    name: "a store in memory",
    keys: &[TYPE, LIMIT, EVENT_HISTORY, CALL_QUEUE, RETAINED],
};

/// On disk.
static SQLITE: Table = Table {
    path: "realms[].store[sqlite]",
    name: "a store in a file",
    keys: &[
        TYPE,
        key(
            "path",
            Kind::Text(Rule::Path),
            "File of the events, created if it does not exist. A relative path starts at the node's directory; no \
             two realms share a file.",
        )
        .required()
        .environment()
        .own(),
        LIMIT,
        key(
            "event-history",
            list(&ONE_STORED_HISTORY),
            "Topics whose events are recorded: [event history](event-history.md#on-disk).",
        )
        .otherwise("none"),
        CALL_QUEUE,
        RETAINED,
        key(
            "keep_retained",
            Kind::Boolean,
            "Stores retained events in the file, so that they survive a restart: [retained events that \
             end](event-history.md#retained-events-that-end).",
        )
        .fallback(NO)
        .own(),
        key(
            "bytes_max",
            integer(65_536, i64::MAX),
            "Maximum size of all recorded events in the file, in bytes. Beyond it the oldest events of any history \
             are deleted. The file itself is larger by its tables and log, and does not shrink.",
        )
        .fallback(Fallback::Integer(1 << 30))
        .own(),
        key(
            "buffer_bytes_max",
            integer(65_536, i64::MAX),
            "Maximum size of events that wait to be written, in bytes. A further event is not recorded, which is \
             counted and reported to a publisher that asked for `acknowledge`.",
        )
        .fallback(Fallback::Integer(16 << 20))
        .own(),
        key(
            "sync",
            Kind::Boolean,
            "Waits for the disk at each commit. Without it, acknowledged events survive the end of the process, but \
             not always that of the machine.",
        )
        .fallback(YES)
        .own(),
    ],
};

/// Crossbar.io's on disk, whose files nobody else can read.
static CFXDB: Table = Table {
    path: "realms[].store[cfxdb]",
    name: "a store on disk",
    keys: &[
        TYPE,
        LIMIT,
        EVENT_HISTORY,
        CALL_QUEUE,
        RETAINED,
        key("path", Kind::Text(Rule::Path), "").inert(IN_MEMORY),
        key("maxsize", integer(1, i64::MAX), "").inert(IN_MEMORY),
        key("readonly", Kind::Boolean, "")
            .fallback(NO)
            .inert(IN_MEMORY),
        key("sync", Kind::Boolean, "")
            .fallback(YES)
            .inert(IN_MEMORY),
        key("max-buffer", integer(1, i64::MAX), "").inert(IN_MEMORY),
        key("buffer-flush", integer(1, i64::MAX), "").inert(IN_MEMORY),
    ],
};

const IN_MEMORY: &str = "events are kept in memory";

static HISTORY: Table = Table {
    path: "realms[].store.event-history[]",
    name: "an event history",
    keys: &[
        HISTORY_URI,
        HISTORY_MATCH,
        key(
            "limit",
            integer(1, 100_000),
            "Maximum number of events in the history. Another one evicts the oldest.",
        )
        .otherwise("the store's `limit`"),
        HISTORY_AGE,
    ],
};

static ONE_STORED_HISTORY: Kind = Kind::Object(&STORED_HISTORY);

static STORED_HISTORY: Table = Table {
    path: "realms[].store[sqlite].event-history[]",
    name: "an event history in a file",
    keys: &[
        HISTORY_URI,
        HISTORY_MATCH,
        key(
            "limit",
            integer(1, 1_000_000_000),
            "Maximum number of events in the history. Beyond it the oldest are deleted. `bytes_max` bounds the file.",
        )
        .otherwise("the store's `limit`"),
        HISTORY_AGE,
    ],
};

const HISTORY_URI: super::form::Key =
    key("uri", Kind::Text(Rule::Uri), "Topic or pattern of topics.").required();

const HISTORY_MATCH: super::form::Key =
    key("match", Kind::OneOf(&MATCH), "Matching policy of `uri`.")
        .fallback(Fallback::Text("exact"));

const HISTORY_AGE: super::form::Key = key(
    "age_ms_max",
    integer_or_zero(1, 31_536_000_000_000),
    "Maximum age of an event, in milliseconds. 0 keeps events until others replace them.",
)
.fallback(Fallback::Integer(0))
.own();

static QUEUE: Table = Table {
    path: "realms[].store.call-queue[]",
    name: "a call queue",
    keys: &[
        key(
            "uri",
            Kind::Text(Rule::Uri),
            "Procedure or pattern that a registration's is compared with. Of several entries the best match counts.",
        )
        .required(),
        key("match", Kind::OneOf(&QUEUE_MATCH), "Matching policy of `uri`.")
            .fallback(Fallback::Text("exact")),
        key(
            "limit",
            integer(0, 100_000),
            "Maximum number of calls that wait for the callees of one registration. Another one fails.",
        )
        .otherwise("the store's `limit`"),
    ],
};

static QUEUE_MATCH: Words = Words {
    path: "realms[].store.call-queue[].match",
    words: &["exact", "prefix", "wildcard"],
};

static MATCH: Words = Words {
    path: "realms[].store.event-history[].match",
    words: &["exact", "prefix", "wildcard"],
};

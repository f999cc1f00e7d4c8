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
    "How many events a history has, and how many calls wait in a queue, that has no `limit` of its own.",
)
.fallback(Fallback::Integer(100));

const EVENT_HISTORY: super::form::Key = key(
    "event-history",
    list(&ONE_HISTORY),
    "What is recorded of what is published: [event history](event-history.md).",
)
.otherwise("nothing");

const CALL_QUEUE: super::form::Key = key(
    "call-queue",
    list(&ONE_QUEUE),
    "For which procedures calls wait that find no callee free: [calls that wait](calls.md#calls-that-wait).",
)
.otherwise("none");

const RETAINED: super::form::Key = key(
    "retained",
    list(&ONE_RETENTION),
    "For how long retained events are kept: [those that end](event-history.md#retained-events-that-end).",
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
            "The topic, or a pattern of topics; of several entries that match the shortest age counts.",
        )
        .required()
        .own(),
        key("match", Kind::OneOf(&MATCH), "How `uri` is compared.")
            .fallback(Fallback::Text("exact"))
            .own(),
        key(
            "age_ms_max",
            integer(1, 31_536_000_000_000),
            "For how long an event is retained, in milliseconds, where its publisher does not say a shorter time.",
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
            "The file of the events, which is made where there is none. A relative path begins at the node's directory; \
             no two realms share one.",
        )
        .required()
        .environment()
        .own(),
        LIMIT,
        key(
            "event-history",
            list(&ONE_STORED_HISTORY),
            "What is recorded of what is published: [event history](event-history.md#on-disk).",
        )
        .otherwise("nothing"),
        CALL_QUEUE,
        RETAINED,
        key(
            "keep_retained",
            Kind::Boolean,
            "Whether retained events are in the file, too, and survive a restart: \
             [retained events that end](event-history.md#retained-events-that-end).",
        )
        .fallback(NO)
        .own(),
        key(
            "bytes_max",
            integer(65_536, i64::MAX),
            "Bytes of all recorded events in the file; beyond, the oldest go, of whatever history. The file itself is \
             larger by its tables and its log, and does not shrink.",
        )
        .fallback(Fallback::Integer(1 << 30))
        .own(),
        key(
            "buffer_bytes_max",
            integer(65_536, i64::MAX),
            "Bytes of events that wait to be written. One more is not recorded, which is counted, and told to a \
             publisher that asked for `acknowledge`.",
        )
        .fallback(Fallback::Integer(16 << 20))
        .own(),
        key(
            "sync",
            Kind::Boolean,
            "Whether a commit waits for the disk. Without, what was acknowledged survives the end of the process, and \
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
            "How many events: for one more the oldest goes.",
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
            "How many events: for more the oldest go. In a file there may be as many as there is room for.",
        )
        .otherwise("the store's `limit`"),
        HISTORY_AGE,
    ],
};

const HISTORY_URI: super::form::Key = key(
    "uri",
    Kind::Text(Rule::Uri),
    "The topic, or a pattern of topics.",
)
.required();

const HISTORY_MATCH: super::form::Key =
    key("match", Kind::OneOf(&MATCH), "How `uri` is compared.").fallback(Fallback::Text("exact"));

const HISTORY_AGE: super::form::Key = key(
    "age_ms_max",
    integer_or_zero(1, 31_536_000_000_000),
    "For how long an event is kept, in milliseconds; 0 is until it makes room for another.",
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
            "What the procedure or pattern of a registration is compared with; of several entries the best match counts.",
        )
        .required(),
        key("match", Kind::OneOf(&QUEUE_MATCH), "How `uri` is compared.")
            .fallback(Fallback::Text("exact")),
        key(
            "limit",
            integer(0, 100_000),
            "How many calls may wait for the callees of one registration; one more is an error.",
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

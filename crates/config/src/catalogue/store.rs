//! Keys of a realm's store.

use crosstie_routing::Retention;

use super::form::{Kind, OFF, ON, Rule, TYPE, integer, integer_or_zero, list, one_of, text};
use super::table::tables;
use crate::model::MatchPolicy;

tables! {
    pub(super) tagged REALM_STORE("realms[].store.type", "a realm's store") {
        "memory" => MEMORY, "sqlite" => SQLITE, "cfxdb" => CFXDB
    }

    const LIMIT = "limit": integer(1, 100_000).or(100),
        "Default for histories and queues without a `limit` of their own: maximum number of events per history, \
         and of waiting calls per queue.";
    const EVENT_HISTORY = "event-history": list(&ONE_HISTORY).optional(),
        "Topics whose events are recorded: [event history](event-history.md).";
    const CALL_QUEUE = "call-queue": list(&ONE_QUEUE).optional(),
        "Procedures whose calls wait if no callee is free: [calls that wait](calls.md#calls-that-wait).";
    const RETAINED = "retained": list(&ONE_RETENTION).otherwise("until they make room for others").own(),
        "Lifetimes of retained events: [those that end](event-history.md#retained-events-that-end).";
}

static ONE_RETENTION: Kind = Kind::Object(&RETENTION);

tables! {
    impl Retention = static RETENTION("realms[].store.retained[]", "an age of retained events") {
        uri: String = text(Rule::Uri).required().own(),
            "Topic or pattern of topics. Of several entries that match, the shortest age counts.";
        "match" => match_policy: MatchPolicy = one_of(&MATCH).or_text("exact").own(), "Matching policy of `uri`.";
        age_ms_max: u64 = integer(1, 31_536_000_000_000).required().own(),
            "Maximum age of a retained event, in milliseconds. A shorter time from the publisher takes precedence.";
    }
}

static ONE_QUEUE: Kind = Kind::Object(&QUEUE);

static ONE_HISTORY: Kind = Kind::Object(&HISTORY);

tables! {
    static MEMORY("realms[].store[memory]", "a store in memory") {
        ..TYPE, LIMIT, EVENT_HISTORY, CALL_QUEUE, RETAINED;
    }

    /// File of a realm's events.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EventStore = static SQLITE("realms[].store[sqlite]", "a store in a file") {
        ..TYPE;
        path: String = text(Rule::Path).required().environment().own(),
            "File of the events, created if it does not exist. A relative path starts at the node's directory; no \
             two realms share a file.";
        ..LIMIT;
        "event-history" = list(&ONE_STORED_HISTORY).optional(),
            "Topics whose events are recorded: [event history](event-history.md#on-disk).";
        ..CALL_QUEUE, RETAINED;
        keep_retained => keeps_retained: bool = OFF.own(),
            "Stores retained events in the file, so that they survive a restart: [retained events that \
             end](event-history.md#retained-events-that-end).";
        bytes_max: u64 = integer(65_536, i64::MAX).or(1 << 30).own(),
            "Maximum size of all recorded events in the file, in bytes. Beyond it the oldest events of any history \
             are deleted. The file itself is larger by its tables and log, and does not shrink.";
        buffer_bytes_max: usize = integer(65_536, i64::MAX).or(16 << 20).own(),
            "Maximum size of events that wait to be written, in bytes. A further event is not recorded, which is \
             counted and reported to a publisher that asked for `acknowledge`.";
        sync => is_synced: bool = ON.own(),
            "Waits for the disk at each commit. Without it, acknowledged events survive the end of the process, but \
             not always that of the machine.";
    }

    /// Crossbar.io's store on disk, in a format of its own.
    static CFXDB("realms[].store[cfxdb]", "a store on disk") {
        ..TYPE, LIMIT, EVENT_HISTORY, CALL_QUEUE, RETAINED;
        "path" = text(Rule::Path).inert(IN_MEMORY);
        "maxsize" = integer(1, i64::MAX).inert(IN_MEMORY);
        "readonly" = OFF.inert(IN_MEMORY);
        "sync" = ON.inert(IN_MEMORY);
        "max-buffer" = integer(1, i64::MAX).inert(IN_MEMORY);
        "buffer-flush" = integer(1, i64::MAX).inert(IN_MEMORY);
    }
}

const IN_MEMORY: &str = "events are kept in memory";

tables! {
    static HISTORY("realms[].store.event-history[]", "an event history") {
        ..HISTORY_URI, HISTORY_MATCH;
        "limit" = integer(1, 100_000).otherwise("the store's `limit`"),
            "Maximum number of events in the history. Another one evicts the oldest.";
        ..HISTORY_AGE;
    }
}

static ONE_STORED_HISTORY: Kind = Kind::Object(&STORED_HISTORY);

tables! {
    static STORED_HISTORY("realms[].store[sqlite].event-history[]", "an event history in a file") {
        ..HISTORY_URI, HISTORY_MATCH;
        "limit" = integer(1, 1_000_000_000).otherwise("the store's `limit`"),
            "Maximum number of events in the history. Beyond it the oldest are deleted. `bytes_max` bounds the file.";
        ..HISTORY_AGE;
    }

    const HISTORY_URI = "uri": text(Rule::Uri).required(), "Topic or pattern of topics.";
    const HISTORY_MATCH = "match": one_of(&MATCH).or_text("exact"), "Matching policy of `uri`.";
    const HISTORY_AGE = "age_ms_max": integer_or_zero(1, 31_536_000_000_000).or(0).own(),
        "Maximum age of an event, in milliseconds. 0 keeps events until others replace them.";

    static QUEUE("realms[].store.call-queue[]", "a call queue") {
        "uri" = text(Rule::Uri).required(),
            "Procedure or pattern that a registration's is compared with. Of several entries the best match counts.";
        "match" = one_of(&QUEUE_MATCH).or_text("exact"), "Matching policy of `uri`.";
        "limit" = integer(0, 100_000).otherwise("the store's `limit`"),
            "Maximum number of calls that wait for the callees of one registration. Another one fails.";
    }

    words QUEUE_MATCH("realms[].store.call-queue[].match") { "exact", "prefix", "wildcard" }
    words MATCH("realms[].store.event-history[].match") { "exact", "prefix", "wildcard" }
}

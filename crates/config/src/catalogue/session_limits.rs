//! What sessions may have: of a role, of a realm, of a listener. Long and flat.

use super::form::{Fallback, Key, Kind, Table, Words, integer, integer_or_zero, key};

pub(super) static ROLE_LIMITS: Table = Table {
    path: "realms[].roles[].limits",
    name: "a role's limits",
    keys: &[
        key(
            "sessions_max",
            integer(1, 100_000_000),
            "Sessions with the role. One more is sent ABORT with `crosstie.error.role_sessions_max`.",
        )
        .otherwise("no such bound")
        .own(),
        AUTHID_SESSIONS_MAX,
        SUBSCRIPTIONS_MAX,
        REGISTRATIONS_MAX,
        CALLS_PENDING_MAX,
        MESSAGES_PER_SECOND_MAX,
        BYTES_PER_SECOND_MAX,
        MESSAGE_BYTES_MAX,
        QUEUE_BYTES_MAX,
        SLOW_CONSUMER,
    ],
};

pub(super) static REALM_LIMITS: Table = Table {
    path: "realms[].limits",
    name: "a realm's limits",
    keys: &[
        key(
            "sessions_max",
            integer(1, 100_000_000),
            "Sessions in the realm. One more is sent ABORT with `crosstie.error.sessions_max`.",
        )
        .otherwise("the node's")
        .own(),
        AUTHID_SESSIONS_MAX,
        SUBSCRIPTIONS_MAX,
        REGISTRATIONS_MAX,
        CALLS_PENDING_MAX,
        all_of_them(
            "realm_subscriptions_max",
            "Subscriptions of all sessions together; one more is refused with `crosstie.error.realm_subscriptions_max`.",
        ),
        all_of_them(
            "realm_registrations_max",
            "Registrations of all sessions together; one more is refused with `crosstie.error.realm_registrations_max`.",
        ),
        all_of_them(
            "realm_calls_pending_max",
            "Calls of all sessions together that wait for their answer; one more is refused with \
             `crosstie.error.realm_calls_max`.",
        ),
        MESSAGES_PER_SECOND_MAX,
        BYTES_PER_SECOND_MAX,
        MESSAGE_BYTES_MAX,
        QUEUE_BYTES_MAX,
        SLOW_CONSUMER,
    ],
};

static LISTENER_LIMITS: Table = Table {
    path: "transports[].limits",
    name: "a listener's limits",
    keys: &[
        key(
            "connections_per_second_max",
            integer(1, 1_000_000),
            "Connections in a second. A second's worth may come at once; one more is told so and closed.",
        )
        .otherwise("no such bound")
        .own(),
        key(
            "authid_sessions_max",
            integer(1, 100_000_000),
            "Sessions that come by it with the same authid, in whichever realm. One more is sent ABORT with \
             `crosstie.error.authid_sessions_max`.",
        )
        .otherwise("no such bound")
        .own(),
        SUBSCRIPTIONS_MAX,
        REGISTRATIONS_MAX,
        CALLS_PENDING_MAX,
        MESSAGES_PER_SECOND_MAX,
        BYTES_PER_SECOND_MAX,
        MESSAGE_BYTES_MAX,
        QUEUE_BYTES_MAX,
        SLOW_CONSUMER,
    ],
};

pub(super) const LISTENER_LIMITS_KEY: Key = key(
    "limits",
    Kind::Object(&LISTENER_LIMITS),
    "What [sessions](authorization.md#limits) that come by it may have, where that is less than the node's `limits` let \
     everybody have; `max_connections` bounds the connections.",
)
.otherwise("the node's `limits` alone")
.own();

const AUTHID_SESSIONS_MAX: Key = key(
    "authid_sessions_max",
    integer(1, 100_000_000),
    "Sessions among them that have the same authid. One more is sent ABORT with \
     `crosstie.error.authid_sessions_max`.",
)
.otherwise("no such bound")
.own();

const SUBSCRIPTIONS_MAX: Key = key(
    "subscriptions_max",
    integer_or_zero(1, 100_000_000),
    "Subscriptions of one session; one more is refused with `crosstie.error.subscriptions_max`.",
)
.otherwise("the node's")
.own();

const REGISTRATIONS_MAX: Key = key(
    "registrations_max",
    integer_or_zero(1, 100_000_000),
    "Registrations of one session; one more is refused with `crosstie.error.registrations_max`.",
)
.otherwise("the node's")
.own();

const CALLS_PENDING_MAX: Key = key(
    "calls_pending_max",
    integer_or_zero(1, 100_000_000),
    "Calls of one session that wait for their answer; one more is refused with `crosstie.error.calls_max`.",
)
.otherwise("the node's")
.own();

const MESSAGES_PER_SECOND_MAX: Key = key(
    "messages_per_second_max",
    integer(1, 1_000_000_000),
    "Messages that one session may send in a second. A second's worth may come at once; then the session is \
     read no faster, and loses nothing.",
)
.otherwise("no such bound")
.own();

const BYTES_PER_SECOND_MAX: Key = key(
    "bytes_per_second_max",
    integer(1, 1_000_000_000),
    "Likewise the bytes of its messages. No message holds a session up for more than 10 seconds.",
)
.otherwise("no such bound")
.own();

const MESSAGE_BYTES_MAX: Key = key(
    "message_bytes_max",
    integer(1_024, 1 << 30),
    "Bytes of one message that a session sends, once it has joined; a longer one ends it as one that is longer than its \
     transport takes.",
)
.otherwise("the transport's")
.own();

const QUEUE_BYTES_MAX: Key = key(
    "queue_bytes_max",
    integer(4_096, 1 << 40),
    "Bytes that wait for one session, where that is less than the node's `queue_bytes_max`.",
)
.otherwise("the node's")
.own();

const SLOW_CONSUMER: Key = key(
    "slow_consumer",
    Kind::OneOf(&SLOW_CONSUMERS),
    "What becomes of events for a session that does not take them as fast as they come, at `queue_bytes_max`: the new one \
     is dropped; the oldest that wait are; the session is ended with `crosstie.error.slow_consumer`; or, from half of \
     the bound on, those who publish are not read until a quarter is left.",
)
.otherwise("`drop-new`")
.own();

const fn all_of_them(name: &'static str, about: &'static str) -> Key {
    let mut key = key(name, integer(1, 1_000_000_000), about);
    key.fallback = Fallback::Words("the node's");
    key.own = true;
    key
}

static SLOW_CONSUMERS: Words = Words {
    path: "limits.slow_consumer",
    words: &["drop-new", "drop-oldest", "disconnect", "back-pressure"],
};

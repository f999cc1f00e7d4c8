//! What sessions may have: of a role, of a realm, of a listener. Long and flat.

use super::form::{Fallback, Key, Kind, Table, Words, integer, integer_or_zero, key};

pub(super) static ROLE_LIMITS: Table = Table {
    path: "realms[].roles[].limits",
    name: "a role's limits",
    keys: &[
        key(
            "sessions_max",
            integer(1, 100_000_000),
            "Maximum number of sessions with the role. Another one is sent ABORT with \
             `crosstie.error.role_sessions_max`.",
        )
        .otherwise("unlimited")
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
            "Maximum number of sessions in the realm. Another one is sent ABORT with `crosstie.error.sessions_max`.",
        )
        .otherwise("the node's")
        .own(),
        AUTHID_SESSIONS_MAX,
        SUBSCRIPTIONS_MAX,
        REGISTRATIONS_MAX,
        CALLS_PENDING_MAX,
        all_of_them(
            "realm_subscriptions_max",
            "Maximum number of subscriptions of all sessions. Another one fails with \
             `crosstie.error.realm_subscriptions_max`.",
        ),
        all_of_them(
            "realm_registrations_max",
            "Maximum number of registrations of all sessions. Another one fails with \
             `crosstie.error.realm_registrations_max`.",
        ),
        all_of_them(
            "realm_calls_pending_max",
            "Maximum number of pending calls of all sessions. Another one fails with \
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
            "Maximum rate of new connections, per second, with a burst of one second's worth. Another connection is \
             told so and closed.",
        )
        .otherwise("unlimited")
        .own(),
        key(
            "authid_sessions_max",
            integer(1, 100_000_000),
            "Maximum number of sessions of this transport per authid, in all realms. Another one is sent ABORT with \
             `crosstie.error.authid_sessions_max`.",
        )
        .otherwise("unlimited")
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
    "Limits of [sessions](authorization.md#limits) of this transport. The node's `limits` apply if they are lower; \
     `max_connections` bounds the connections.",
)
.otherwise("the node's `limits` alone")
.own();

const AUTHID_SESSIONS_MAX: Key = key(
    "authid_sessions_max",
    integer(1, 100_000_000),
    "Maximum number of these sessions per authid. Another one is sent ABORT with \
     `crosstie.error.authid_sessions_max`.",
)
.otherwise("unlimited")
.own();

const SUBSCRIPTIONS_MAX: Key = key(
    "subscriptions_max",
    integer_or_zero(1, 100_000_000),
    "Maximum number of subscriptions per session. Another one fails with `crosstie.error.subscriptions_max`.",
)
.otherwise("the node's")
.own();

const REGISTRATIONS_MAX: Key = key(
    "registrations_max",
    integer_or_zero(1, 100_000_000),
    "Maximum number of registrations per session. Another one fails with `crosstie.error.registrations_max`.",
)
.otherwise("the node's")
.own();

const CALLS_PENDING_MAX: Key = key(
    "calls_pending_max",
    integer_or_zero(1, 100_000_000),
    "Maximum number of pending calls per session. Another one fails with `crosstie.error.calls_max`.",
)
.otherwise("the node's")
.own();

const MESSAGES_PER_SECOND_MAX: Key = key(
    "messages_per_second_max",
    integer(1, 1_000_000_000),
    "Maximum rate of messages of a session, per second, with a burst of one second's worth. Above it the router \
     reads the session more slowly; no message is lost.",
)
.otherwise("unlimited")
.own();

const BYTES_PER_SECOND_MAX: Key = key(
    "bytes_per_second_max",
    integer(1, 1_000_000_000),
    "Maximum rate of bytes of a session, per second, likewise. One message delays a session by at most 10 seconds.",
)
.otherwise("unlimited")
.own();

const MESSAGE_BYTES_MAX: Key = key(
    "message_bytes_max",
    integer(1_024, 1 << 30),
    "Maximum size of a message from a joined session, in bytes. A longer one ends the session as if it exceeded the \
     transport's maximum.",
)
.otherwise("the transport's")
.own();

const QUEUE_BYTES_MAX: Key = key(
    "queue_bytes_max",
    integer(4_096, 1 << 40),
    "Maximum data queued for a session, in bytes. The node's `queue_bytes_max` applies if it is lower.",
)
.otherwise("the node's")
.own();

const SLOW_CONSUMER: Key = key(
    "slow_consumer",
    Kind::OneOf(&SLOW_CONSUMERS),
    "Handling of events for a slow session at `queue_bytes_max`. `drop-new` drops the new event, `drop-oldest` the \
     oldest queued ones. `disconnect` ends the session with `crosstie.error.slow_consumer`. `back-pressure` stops \
     reading the publishers from half of the limit until a quarter is left.",
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

//! Limits of sessions, by role, realm and listener.

use crosstie_routing::SlowConsumer;

use super::form::{integer, integer_or_zero, object, one_of};
use super::table::tables;

tables! {
    pub(super) static ROLE_LIMITS("realms[].roles[].limits", "a role's limits") {
        "sessions_max" = integer(1, 100_000_000).otherwise("unlimited").own(),
            "Maximum number of sessions with the role. Another one is sent ABORT with \
             `crosstie.error.role_sessions_max`.";
        ..AUTHID_SESSIONS_MAX, SUBSCRIPTIONS_MAX, REGISTRATIONS_MAX, CALLS_PENDING_MAX, MESSAGES_PER_SECOND_MAX;
        ..BYTES_PER_SECOND_MAX, MESSAGE_BYTES_MAX, QUEUE_BYTES_MAX, SLOW_CONSUMER;
    }

    pub(super) static REALM_LIMITS("realms[].limits", "a realm's limits") {
        "sessions_max" = integer(1, 100_000_000).otherwise("the node's").own(),
            "Maximum number of sessions in the realm. Another one is sent ABORT with `crosstie.error.sessions_max`.";
        ..AUTHID_SESSIONS_MAX, SUBSCRIPTIONS_MAX, REGISTRATIONS_MAX, CALLS_PENDING_MAX;
        "realm_subscriptions_max" = integer(1, 1_000_000_000).otherwise("the node's").own(),
            "Maximum number of subscriptions of all sessions. Another one fails with \
             `crosstie.error.realm_subscriptions_max`.";
        "realm_registrations_max" = integer(1, 1_000_000_000).otherwise("the node's").own(),
            "Maximum number of registrations of all sessions. Another one fails with \
             `crosstie.error.realm_registrations_max`.";
        "realm_calls_pending_max" = integer(1, 1_000_000_000).otherwise("the node's").own(),
            "Maximum number of pending calls of all sessions. Another one fails with \
             `crosstie.error.realm_calls_max`.";
        ..MESSAGES_PER_SECOND_MAX, BYTES_PER_SECOND_MAX, MESSAGE_BYTES_MAX, QUEUE_BYTES_MAX, SLOW_CONSUMER;
    }

    static LISTENER_LIMITS("transports[].limits", "a listener's limits") {
        "connections_per_second_max" = integer(1, 1_000_000).otherwise("unlimited").own(),
            "Maximum rate of new connections, per second, with a burst of one second's worth. Another connection is \
             told so and closed.";
        "authid_sessions_max" = integer(1, 100_000_000).otherwise("unlimited").own(),
            "Maximum number of sessions of this transport per authid, in all realms. Another one is sent ABORT with \
             `crosstie.error.authid_sessions_max`.";
        ..SUBSCRIPTIONS_MAX, REGISTRATIONS_MAX, CALLS_PENDING_MAX, MESSAGES_PER_SECOND_MAX, BYTES_PER_SECOND_MAX;
        ..MESSAGE_BYTES_MAX, QUEUE_BYTES_MAX, SLOW_CONSUMER;
    }

    pub(super) const LISTENER_LIMITS_KEY = "limits": object(&LISTENER_LIMITS)
        .otherwise("the node's `limits` alone").own(),
        "Limits of [sessions](authorization.md#limits) of this transport. The node's `limits` apply if they are \
         lower; `max_connections` bounds the connections.";
    const AUTHID_SESSIONS_MAX = "authid_sessions_max": integer(1, 100_000_000).otherwise("unlimited").own(),
        "Maximum number of these sessions per authid. Another one is sent ABORT with \
         `crosstie.error.authid_sessions_max`.";
    const SUBSCRIPTIONS_MAX = "subscriptions_max": integer_or_zero(1, 100_000_000).otherwise("the node's").own(),
        "Maximum number of subscriptions per session. Another one fails with `crosstie.error.subscriptions_max`.";
    const REGISTRATIONS_MAX = "registrations_max": integer_or_zero(1, 100_000_000).otherwise("the node's").own(),
        "Maximum number of registrations per session. Another one fails with `crosstie.error.registrations_max`.";
    const CALLS_PENDING_MAX = "calls_pending_max": integer_or_zero(1, 100_000_000).otherwise("the node's").own(),
        "Maximum number of pending calls per session. Another one fails with `crosstie.error.calls_max`.";
    const MESSAGES_PER_SECOND_MAX = "messages_per_second_max": integer(1, 1_000_000_000).otherwise("unlimited").own(),
        "Maximum rate of messages of a session, per second, with a burst of one second's worth. Above it the \
         router reads the session more slowly; no message is lost.";
    const BYTES_PER_SECOND_MAX = "bytes_per_second_max": integer(1, 1_000_000_000).otherwise("unlimited").own(),
        "Maximum rate of bytes of a session, per second, likewise. One message delays a session by at most 10 \
         seconds.";
    const MESSAGE_BYTES_MAX = "message_bytes_max": integer(1_024, 1 << 30).otherwise("the transport's").own(),
        "Maximum size of a message from a joined session, in bytes. A longer one ends the session as if it \
         exceeded the transport's maximum.";
    const QUEUE_BYTES_MAX = "queue_bytes_max": integer(4_096, 1 << 40).otherwise("the node's").own(),
        "Maximum data queued for a session, in bytes. The node's `queue_bytes_max` applies if it is lower.";
    const SLOW_CONSUMER = "slow_consumer": one_of(&SLOW_CONSUMERS).otherwise("`drop-new`").own(),
        "Handling of events for a slow session at `queue_bytes_max`. `drop-new` drops the new event, \
         `drop-oldest` the oldest queued ones. `disconnect` ends the session with \
         `crosstie.error.slow_consumer`. `back-pressure` stops reading the publishers from half of the limit \
         until a quarter is left.";

    words SLOW_CONSUMERS("limits.slow_consumer") => SlowConsumer {
        "drop-new" => DropNew,
        "drop-oldest" => DropOldest,
        "disconnect" => Disconnect,
        "back-pressure" => BackPressure,
    }
}

//! Limits of sessions, by role, realm and listener.

use crosstie_routing::{RoleLimits, SlowConsumer};

use crate::model::{ListenerLimits, RealmLimits};
use crate::plain::{Plain, Word, size};
use crate::view::View;

/// The limits of a role or of a realm's sessions.
pub(super) fn session_limits(view: View<'_>) -> RoleLimits {
    let mut limits = of_each(view);
    limits.sessions_max = view.integer("sessions_max").map(size);
    limits.authid_sessions_max = view.integer("authid_sessions_max").map(size);
    limits
}

/// The limits of each session.
fn of_each(view: View<'_>) -> RoleLimits {
    let number = |key| view.integer(key).map(size);
    let mut limits = RoleLimits::default();
    limits.subscriptions_max = number("subscriptions_max");
    limits.registrations_max = number("registrations_max");
    limits.calls_max = number("calls_pending_max");
    limits.messages_per_second_max = Option::<u32>::read(view, "messages_per_second_max");
    limits.bytes_per_second_max = Option::<u32>::read(view, "bytes_per_second_max");
    limits.message_bytes_max = number("message_bytes_max");
    limits.queue_bytes_max = number("queue_bytes_max");
    limits.slow_consumer = view.text("slow_consumer").and_then(SlowConsumer::of);
    limits
}

/// The limits of a realm, with those that count all of its sessions.
pub(super) fn realm_limits(view: View<'_>) -> RealmLimits {
    let number = |key| view.integer(key).map(size);
    let mut each = session_limits(view);
    RealmLimits {
        sessions_max: each.sessions_max.take(),
        subscriptions_max: number("realm_subscriptions_max"),
        registrations_max: number("realm_registrations_max"),
        calls_pending_max: number("realm_calls_pending_max"),
        each,
    }
}

pub(super) fn listener_limits(view: View<'_>) -> ListenerLimits {
    ListenerLimits {
        connections_per_second_max: Option::<u32>::read(view, "connections_per_second_max"),
        authid_sessions_max: view.integer("authid_sessions_max").map(size),
        each: of_each(view),
    }
}

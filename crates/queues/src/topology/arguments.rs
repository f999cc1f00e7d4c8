//! The arguments of `queue.declare`: their names, types and effects.

use std::sync::Arc;

use crosstie_amqp::{Table, Value};
use crosstie_auth::Access;

use super::age::age_ms;
use super::kind::QueueKind;
use super::overflow::Overflow;
use super::{Caller, Resource, equivalence, term};
use crate::{Fault, StreamLimits};

#[cfg(test)]
mod tests;

/// The flags of a declared queue. An exclusive queue is never durable, whatever its declaration says: it ends with its
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueFlags {
    pub(crate) durable: bool,
    pub(crate) exclusive: bool,
    pub(crate) auto_delete: bool,
}

/// The checked arguments of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueArguments {
    pub(crate) kind: QueueKind,
    /// Time without use after which the queue is deleted.
    pub(crate) expires_ms: Option<u64>,
    pub(crate) message_ttl_ms: Option<u64>,
    pub(crate) length_max: Option<u64>,
    /// Maximum bytes of message bodies.
    pub(crate) bytes_max: Option<u64>,
    pub(crate) overflow: Overflow,
    /// The highest priority level; 0: all messages wait in one line.
    pub(crate) priority_max: u8,
    pub(crate) dead_letter_exchange: Option<Arc<str>>,
    pub(crate) dead_letter_routing_key: Option<Arc<str>>,
    /// Whether dead letters are kept until their targets have accepted them (`x-dead-letter-strategy`).
    pub(crate) is_at_least_once: bool,
    pub(crate) delivery_limit: Option<u64>,
    /// Time that a delivery may stay unacknowledged, in place of the vhost's.
    pub(crate) consumer_timeout_ms: Option<u64>,
    pub(crate) is_single_active_consumer: bool,
    /// Of a stream: the age at which a message may go.
    pub(crate) age_max_ms: Option<u64>,
    /// Of a stream: bytes from which on a segment is full.
    pub(crate) segment_bytes_max: Option<u64>,
}

impl QueueArguments {
    /// Parses the arguments of a new queue, and checks that the user may publish its dead letters. They are the queue's
    /// settings only with its policies: [`Self::under`].
    pub(crate) fn parse(
        caller: &Caller<'_>,
        queue: Resource<'_>,
        flags: QueueFlags,
        arguments: Table<'_>,
    ) -> Result<Self, Fault> {
        Self::read((caller, queue), flags, arguments, true)
    }

    /// Parses the arguments of a present queue. They were valid when it was declared; one that an earlier version took
    /// without reading it counts as absent if it is wrong.
    pub(crate) fn present(
        caller: &Caller<'_>,
        queue: Resource<'_>,
        flags: QueueFlags,
        arguments: Table<'_>,
    ) -> Self {
        Self::read((caller, queue), flags, arguments, false).unwrap_or_default()
    }

    fn read(
        (caller, queue): (&Caller<'_>, Resource<'_>),
        flags: QueueFlags,
        arguments: Table<'_>,
        is_new: bool,
    ) -> Result<Self, Fault> {
        let mut parsed = Self::default();
        if let Some(value) = arguments.find(DEAD_LETTER_EXCHANGE) {
            let Value::LongString(bytes) = value else {
                return Err(caller.precondition_failed(format!(
                    "invalid type '{}' for arg '{DEAD_LETTER_EXCHANGE}' in {queue}",
                    term::kind(value)
                )));
            };
            let name = String::from_utf8_lossy(bytes);
            caller.check(Access::Read, queue)?;
            caller.check(Access::Write, Resource::exchange(&name, queue.vhost))?;
            parsed.dead_letter_exchange = Some((&*name).into());
        }
        let invalid = |name: &str, reason: &str| {
            caller.precondition_failed(format!("invalid arg '{name}' for {queue}: {reason}"))
        };
        parsed.kind = match arguments.find(QUEUE_TYPE) {
            None => QueueKind::Classic,
            Some(value) => match string(value).map_err(|reason| invalid(QUEUE_TYPE, &reason))? {
                "classic" => QueueKind::Classic,
                "quorum" => QueueKind::Quorum,
                "stream" => QueueKind::Stream,
                other => {
                    let reason = format!("\"unsupported queue type '{other}'\"");
                    return Err(invalid(QUEUE_TYPE, &reason));
                }
            },
        };
        let kind = parsed.kind;
        for argument in ARGUMENTS.iter().filter(|a| a.is_of(kind)) {
            if let Some(value) = arguments.find(argument.name) {
                match (argument.read)(&mut parsed, value) {
                    Err(reason) if is_new => return Err(invalid(argument.name, &reason)),
                    _ => {}
                }
            }
        }
        for argument in ARGUMENTS.iter().filter(|a| !a.is_of(kind)) {
            if arguments.find(argument.name).is_some() {
                return Err(caller.precondition_failed(format!(
                    "invalid arg '{}' for {queue} of queue type {}",
                    argument.name,
                    kind.module()
                )));
            }
        }
        parsed.check_flags(caller, queue, flags)?;
        if parsed.segment_bytes_max > Some(SEGMENT_BYTES_MAX) {
            let text = format!("Exceeded max value for {SEGMENT_BYTES}");
            return Err(caller.precondition_failed(text));
        }
        Ok(parsed)
    }

    pub(crate) fn stream_limits(&self) -> StreamLimits {
        StreamLimits {
            bytes_max: self.bytes_max,
            age_max_ms: self.age_max_ms,
            segment_bytes_max: self.segment_bytes_max,
        }
    }

    fn check_flags(
        &self,
        caller: &Caller<'_>,
        queue: Resource<'_>,
        flags: QueueFlags,
    ) -> Result<(), Fault> {
        if self.kind == QueueKind::Classic {
            return Ok(());
        }
        let refused = [
            ("auto-delete", flags.auto_delete),
            ("exclusive-owner", flags.exclusive),
            ("non-durable", !flags.durable),
        ];
        match refused.into_iter().find(|(_, is_so)| *is_so) {
            None => Ok(()),
            Some((name, _)) => {
                Err(caller.precondition_failed(format!("invalid property '{name}' for {queue}")))
            }
        }
    }
}

/// Checks that a declaration of an existing queue equals the first one. The vhost has checked exclusive access before.
pub(crate) fn check_queue_equivalent(
    caller: &Caller<'_>,
    queue: Resource<'_>,
    current: (QueueFlags, Table<'_>),
    received: (QueueFlags, Table<'_>),
) -> Result<(), Fault> {
    let flags = [
        ("durable", current.0.durable, received.0.durable),
        ("auto_delete", current.0.auto_delete, received.0.auto_delete),
    ];
    equivalence::check_flags(caller, queue, &flags)?;
    let (current, received) = (current.1, received.1);
    // An absent type means `classic`.
    let kinds = [current, received].map(|arguments| arguments.find(QUEUE_TYPE));
    let is_classic = kinds.map(|kind| kind.is_none_or(|k| k == Value::LongString(b"classic")));
    let kind = match kinds[0] {
        _ if is_classic[0] => QueueKind::Classic,
        Some(Value::LongString(b"stream")) => QueueKind::Stream,
        _ => QueueKind::Quorum,
    };
    let names = ARGUMENTS.iter().filter(|a| a.is_of(kind)).map(|a| a.name);
    let names = names.filter(|name| *name != QUEUE_TYPE || is_classic != [true, true]);
    equivalence::check_arguments(caller, queue, names, current, received)
}

/// Checks that a queue with these arguments may have a server-generated name.
pub(crate) fn check_server_named(caller: &Caller<'_>, arguments: Table<'_>) -> Result<(), Fault> {
    let module = match arguments.find(QUEUE_TYPE) {
        Some(Value::LongString(b"quorum")) => QueueKind::Quorum.module(),
        Some(Value::LongString(b"stream")) => QueueKind::Stream.module(),
        _ => return Ok(()),
    };
    let text = format!("Cannot declare a server-named queue for type {module}");
    Err(caller.precondition_failed(text))
}

const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";
pub(super) const DEAD_LETTER_STRATEGY: &str = "x-dead-letter-strategy";
pub(super) const OVERFLOW: &str = "x-overflow";
const QUEUE_TYPE: &str = "x-queue-type";
const SEGMENT_BYTES: &str = "x-stream-max-segment-size-bytes";

/// As in RabbitMQ.
const SEGMENT_BYTES_MAX: u64 = 3_000_000_000;

/// Maximum of a timer: ten years, as in RabbitMQ.
const TIME_MAX_MS: u64 = 315_360_000_000;

struct Argument {
    name: &'static str,
    kinds: &'static [QueueKind],
    read: fn(&mut QueueArguments, Value<'_>) -> Result<(), String>,
}

const CLASSIC: &[QueueKind] = &[QueueKind::Classic];
const QUORUM: &[QueueKind] = &[QueueKind::Quorum];
const BOTH: &[QueueKind] = &[QueueKind::Classic, QueueKind::Quorum];
const STREAM: &[QueueKind] = &[QueueKind::Stream];
const QUORUM_AND_STREAM: &[QueueKind] = &[QueueKind::Quorum, QueueKind::Stream];
const ALL: &[QueueKind] = &[QueueKind::Classic, QueueKind::Quorum, QueueKind::Stream];

/// Every argument that RabbitMQ knows, in the order in which it checks them. Other names that begin with `x-` are
/// accepted without effect. Arguments about the place or form of storage are checked, without effect here.
const ARGUMENTS: &[Argument] = &[
    Argument {
        name: "x-expires",
        kinds: BOTH,
        read: |queue, value| {
            queue.expires_ms = Some(match time(value)? {
                0 => return Err("{value_zero,0}".to_owned()),
                milliseconds => milliseconds,
            });
            Ok(())
        },
    },
    Argument {
        name: "x-message-ttl",
        kinds: BOTH,
        read: |queue, value| {
            queue.message_ttl_ms = Some(time(value)?);
            Ok(())
        },
    },
    Argument {
        name: DEAD_LETTER_EXCHANGE,
        kinds: BOTH,
        // Read before all others.
        read: |_, _| Ok(()),
    },
    Argument {
        name: "x-dead-letter-routing-key",
        kinds: BOTH,
        read: |queue, value| {
            let key = string(value)?;
            if queue.dead_letter_exchange.is_none() {
                return Err("routing_key_but_no_dlx_defined".to_owned());
            }
            queue.dead_letter_routing_key = Some(key.into());
            Ok(())
        },
    },
    Argument {
        name: DEAD_LETTER_STRATEGY,
        kinds: QUORUM,
        read: |queue, value| {
            let known = ["at-most-once", "at-least-once"];
            queue.is_at_least_once = value.as_str() == Some(known[1]);
            one_of(value, &known, "invalid_dlx_strategy")
        },
    },
    Argument {
        name: "x-max-length",
        kinds: BOTH,
        read: |queue, value| {
            queue.length_max = Some(natural(value)?);
            Ok(())
        },
    },
    Argument {
        name: "x-max-length-bytes",
        kinds: ALL,
        read: |queue, value| {
            queue.bytes_max = Some(natural(value)?);
            Ok(())
        },
    },
    Argument {
        name: "x-max-in-memory-length",
        kinds: QUORUM,
        read: |_, value| natural(value).map(drop),
    },
    Argument {
        name: "x-max-in-memory-bytes",
        kinds: QUORUM,
        read: |_, value| natural(value).map(drop),
    },
    Argument {
        name: "x-max-priority",
        kinds: CLASSIC,
        read: |queue, value| {
            let max = natural(value)?;
            queue.priority_max =
                u8::try_from(max).map_err(|_| format!("{{max_value_exceeded,{max}}}"))?;
            Ok(())
        },
    },
    Argument {
        name: OVERFLOW,
        kinds: BOTH,
        read: |queue, value| {
            queue.overflow = Overflow::find(string(value)?).ok_or("invalid_overflow")?;
            Ok(())
        },
    },
    Argument {
        name: "x-queue-mode",
        kinds: CLASSIC,
        read: |_, value| match string(value)? {
            "default" | "lazy" => Ok(()),
            other => Err(format!("\"unsupported queue mode '{other}'\"")),
        },
    },
    Argument {
        name: "x-queue-version",
        kinds: CLASSIC,
        read: |_, value| match integer(value)? {
            1 | 2 => Ok(()),
            other => Err(format!("\"unsupported queue version '{other}'\"")),
        },
    },
    Argument {
        name: "x-single-active-consumer",
        kinds: BOTH,
        read: |queue, value| match value {
            Value::Bool(is_so) => {
                queue.is_single_active_consumer = is_so;
                Ok(())
            }
            other => Err(unacceptable(other)),
        },
    },
    Argument {
        name: QUEUE_TYPE,
        kinds: ALL,
        // Read before all others.
        read: |_, _| Ok(()),
    },
    Argument {
        name: "x-queue-master-locator",
        kinds: CLASSIC,
        read: |_, value| {
            let known = ["min-masters", "client-local", "random"];
            // The one argument that RabbitMQ also accepts as bytes.
            let value = match value {
                Value::ByteArray(octets) => Value::LongString(octets),
                value => value,
            };
            one_of(value, &known, "invalid_queue_locator_arg")
        },
    },
    Argument {
        name: "x-quorum-initial-group-size",
        kinds: QUORUM,
        read: |_, value| match natural(value)? {
            0 => Err("{value_zero,0}".to_owned()),
            _ => Ok(()),
        },
    },
    Argument {
        name: "x-queue-leader-locator",
        kinds: QUORUM_AND_STREAM,
        read: |_, value| {
            let known = ["client-local", "random", "least-leaders", "balanced"];
            one_of(value, &known, "invalid_queue_locator_arg")
        },
    },
    Argument {
        name: "x-delivery-limit",
        kinds: QUORUM,
        // RabbitMQ accepts any value here, but counts only to a number.
        read: |queue, value| {
            queue.delivery_limit = value.as_i64().and_then(|limit| limit.try_into().ok());
            Ok(())
        },
    },
    Argument {
        // RabbitMQ has it since 3.12 as a key of policies, and since 4 as an argument.
        name: "x-consumer-timeout",
        kinds: ALL,
        read: |queue, value| {
            queue.consumer_timeout_ms = Some(natural(value)?);
            Ok(())
        },
    },
    Argument {
        name: "x-max-age",
        kinds: STREAM,
        read: |queue, value| {
            let age_ms = age_ms(string(value)?).ok_or("invalid_max_age")?;
            queue.age_max_ms = Some(age_ms);
            Ok(())
        },
    },
    Argument {
        name: "x-initial-cluster-size",
        kinds: STREAM,
        read: |_, value| match natural(value)? {
            0 => Err("{value_zero,0}".to_owned()),
            _ => Ok(()),
        },
    },
    Argument {
        name: "x-stream-filter-size-bytes",
        kinds: STREAM,
        // The size of RabbitMQ's Bloom filters: here each message is judged by its own value.
        read: |_, value| match natural(value)? {
            16..=255 => Ok(()),
            bytes => Err(format!("expected 16 to 255, got {bytes}")),
        },
    },
    Argument {
        name: SEGMENT_BYTES,
        kinds: STREAM,
        // RabbitMQ accepts 0, and such a stream confirms nothing.
        read: |queue, value| match natural(value)? {
            0 => Err("{value_zero,0}".to_owned()),
            bytes => {
                queue.segment_bytes_max = Some(bytes);
                Ok(())
            }
        },
    },
];

impl Argument {
    fn is_of(&self, kind: QueueKind) -> bool {
        self.kinds.contains(&kind)
    }
}

fn time(value: Value<'_>) -> Result<u64, String> {
    match natural(value)? {
        milliseconds @ ..=TIME_MAX_MS => Ok(milliseconds),
        milliseconds => Err(format!("{{value_too_large,{milliseconds}}}")),
    }
}

fn natural(value: Value<'_>) -> Result<u64, String> {
    let integer = integer(value)?;
    integer
        .try_into()
        .map_err(|_| format!("{{value_negative,{integer}}}"))
}

/// Of any width.
pub(crate) fn integer(value: Value<'_>) -> Result<i64, String> {
    value
        .as_i64()
        .ok_or_else(|| format!("\"expected integer, got {}\"", term::kind(value)))
}

fn string(value: Value<'_>) -> Result<&str, String> {
    // RabbitMQ accepts other bytes, too; no entity has such a name.
    value.as_str().ok_or_else(|| unacceptable(value))
}

fn one_of(value: Value<'_>, known: &[&str], reason: &str) -> Result<(), String> {
    match known.contains(&string(value)?) {
        true => Ok(()),
        false => Err(reason.to_owned()),
    }
}

fn unacceptable(value: Value<'_>) -> String {
    format!("{{unacceptable_type,{}}}", term::kind(value))
}

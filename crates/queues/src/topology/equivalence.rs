//! Declaring an existing entity again: the declaration must be equivalent.

use crosstie_amqp::{Table, Value};

use super::term;
use super::{Caller, Resource};
use crate::Fault;

/// Checks that the flags are equal, by RabbitMQ's names for them.
pub(super) fn check_flags(
    caller: &Caller<'_>,
    resource: Resource<'_>,
    flags: &[(&str, bool, bool)],
) -> Result<(), Fault> {
    for (name, current, received) in flags {
        if current != received {
            return Err(inequivalent(
                caller,
                resource,
                name,
                &format!("'{received}'"),
                &format!("'{current}'"),
            ));
        }
    }
    Ok(())
}

/// Checks that two texts are equal.
pub(super) fn check_text(
    caller: &Caller<'_>,
    resource: Resource<'_>,
    name: &str,
    current: &str,
    received: &str,
) -> Result<(), Fault> {
    if current == received {
        return Ok(());
    }
    let (received, current) = (format!("'{received}'"), format!("'{current}'"));
    Err(inequivalent(caller, resource, name, &received, &current))
}

/// Checks that arguments with those names are equal; others do not matter.
pub(super) fn check_arguments(
    caller: &Caller<'_>,
    resource: Resource<'_>,
    names: impl IntoIterator<Item = &'static str>,
    current: Table<'_>,
    received: Table<'_>,
) -> Result<(), Fault> {
    for name in names {
        check_argument(
            caller,
            resource,
            name,
            current.find(name),
            received.find(name),
        )?;
    }
    Ok(())
}

pub(super) fn check_argument(
    caller: &Caller<'_>,
    resource: Resource<'_>,
    name: &str,
    current: Option<Value<'_>>,
    received: Option<Value<'_>>,
) -> Result<(), Fault> {
    let texts = match (current, received) {
        (None, None) => return Ok(()),
        (Some(current), Some(received)) if is_same(current, received) => return Ok(()),
        (Some(current), Some(received)) => (value_text(received), value_text(current)),
        (current, received) => (typed_text(received), typed_text(current)),
    };
    Err(inequivalent(caller, resource, name, &texts.0, &texts.1))
}

/// Compares values regardless of their types, as RabbitMQ does: integers and timestamps of any width, floats of any
/// width, text and bytes.
fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    match (one, other) {
        (
            Value::LongString(one) | Value::ByteArray(one),
            Value::LongString(other) | Value::ByteArray(other),
        ) => one == other,
        (Value::F32(one), Value::F64(other)) | (Value::F64(other), Value::F32(one)) => {
            f64::from(one) == other
        }
        _ => match (whole(one), whole(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
    }
}

fn whole(value: Value<'_>) -> Option<i128> {
    match value {
        Value::Timestamp(seconds) => Some(seconds.into()),
        value => value.as_i64().map(Into::into),
    }
}

fn value_text(value: Value<'_>) -> String {
    match value {
        Value::Void => "none".to_owned(),
        value => format!("'{}'", term::text(value)),
    }
}

fn typed_text(value: Option<Value<'_>>) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) => format!(
            "the value '{}' of type '{}'",
            term::text(value),
            term::kind(value)
        ),
    }
}

fn inequivalent(
    caller: &Caller<'_>,
    resource: Resource<'_>,
    name: &str,
    received: &str,
    current: &str,
) -> Fault {
    caller.precondition_failed(format!(
        "inequivalent arg '{name}' for {resource}: received {received} but current is {current}"
    ))
}

//! Exchanges of type `x-delayed-message`: they route as another type, and a message with a delay later.

use std::sync::Arc;

use crosstie_amqp::{Table, Value};

use super::exchange::ExchangeKind;
use super::{ExchangeKey, Topology};

const DELAYED_TYPE: &str = "x-delayed-type";

/// The header with the delay in milliseconds; negative once it is over.
pub(crate) const X_DELAY: &str = "x-delay";

/// The plugin delays no message for longer, but routes it at once.
const DELAY_MAX_MS: i64 = 0xffff_ffff;

/// The delay that a message's headers request. Text and fractions count as in the plugin; anything else, and a delay
/// that is not positive or too long, is none.
pub(crate) fn delay_ms(headers: Table<'_>) -> Option<u64> {
    let delay = match headers.find(X_DELAY)? {
        Value::LongString(text) => str::from_utf8(text).ok()?.parse().ok()?,
        Value::F32(delay) => f64::from(delay).trunc() as i64,
        Value::F64(delay) => delay.trunc() as i64,
        Value::Timestamp(_) => return None,
        value => value.as_i64()?,
    };
    let delay = Some(delay).filter(|delay| (1..=DELAY_MAX_MS).contains(delay))?;
    u64::try_from(delay).ok()
}

/// The type as which an exchange with these arguments routes; the fault is in RabbitMQ's words.
pub(super) fn delayed_type(arguments: Table<'_>) -> Result<ExchangeKind, String> {
    let kind = arguments.find(DELAYED_TYPE).and_then(|value| match value {
        Value::LongString(name) => ExchangeKind::find(str::from_utf8(name).ok()?),
        _ => None,
    });
    match kind {
        Some(kind) if kind != ExchangeKind::Delayed => Ok(kind),
        _ => Err(format!(
            "Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type"
        )),
    }
}

/// The fault of a declaration with a type that does not exist.
pub(super) fn unknown_delayed_type(arguments: Table<'_>) -> Option<String> {
    let name = arguments.find(DELAYED_TYPE)?.as_str()?;
    let is_unknown = ExchangeKind::find(name).is_none();
    is_unknown.then(|| format!("unknown exchange type '{name}'"))
}

impl Topology {
    /// Whether the last message that was routed is to be delayed by an exchange that it has passed.
    #[cold]
    pub(crate) fn has_passed_delay(&self) -> bool {
        let mut passed = self.passed.iter();
        passed.any(|(_, is_delayed)| *is_delayed)
    }

    /// The exchange with that name, if it delays messages.
    pub(crate) fn delayed_exchange(&self, name: &str) -> Option<ExchangeKey> {
        let key = self.exchange(name)?;
        let exchange = self.exchanges.find(key)?;
        exchange.is_delayed().then_some(key)
    }

    /// The name of an exchange that delays messages, and whether they survive a restart.
    pub(crate) fn delayed_name(&self, key: ExchangeKey) -> Option<(Arc<str>, bool)> {
        let exchange = self.exchanges.find(key)?;
        Some((exchange.name.clone(), exchange.durable))
    }
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::TableBuf;

    use super::*;

    #[test]
    fn a_delay_is_a_number_of_milliseconds_within_bounds() {
        #[track_caller]
        fn check(delay: Value<'_>, expected: Option<u64>) {
            let headers = TableBuf::new().with(X_DELAY, delay);
            assert_eq!(delay_ms(headers.as_table()), expected);
        }
        check(Value::I32(1), Some(1));
        check(Value::LongString(b"1000"), Some(1_000));
        check(Value::F64(1.9), Some(1));
        check(Value::I64(0xffff_ffff), Some(0xffff_ffff));
        for none in [
            Value::I64(0x1_0000_0000),
            Value::I64(i64::MAX),
            Value::I64(i64::MIN),
            Value::I32(-5),
            Value::I8(0),
            Value::F32(0.9),
            Value::F32(-7.5),
            Value::F64(1e300),
            Value::F64(f64::NAN),
            Value::F64(f64::NEG_INFINITY),
            Value::LongString(b""),
            Value::LongString(b"soon"),
            Value::LongString(b"-1000"),
            Value::LongString(b"99999999999999999999"),
            Value::LongString(b"\xff"),
            Value::Timestamp(1_000),
            Value::Bool(true),
            Value::Void,
        ] {
            check(none, None);
        }
    }
}

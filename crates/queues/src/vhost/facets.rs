//! The properties of a message that concern the broker.

use crosstie_amqp::{DeliveryMode, Properties, Table, TableBuf, Value};

use super::replies::REPLY_QUEUE;
use crate::Fault;
use crate::queues::Handling;
use crate::topology::{Caller, kind};

#[derive(Default)]
pub(super) struct Facets<'a> {
    pub(super) headers: Table<'a>,
    pub(super) handling: Handling,
    /// The publisher waits for a reply on its own channel.
    pub(super) wants_reply: bool,
    /// There are further routing keys.
    pub(super) has_copies: bool,
    /// There are routing keys that receivers must not see.
    pub(super) has_blind_copies: bool,
}

impl<'a> Facets<'a> {
    /// Reads the properties of a publication: anything wrong with them is a fault.
    // Its one caller handles every message; inlined, the result need not pass through memory.
    #[inline(always)]
    pub(super) fn of(
        caller: &Caller<'_>,
        is_impersonator: bool,
        properties: Properties<'a>,
        copy_keys_max: usize,
    ) -> Result<Self, Fault> {
        let named = properties.parse_for_broker();
        if let Some(user) = named.user_id
            && user != caller.user
            && !is_impersonator
        {
            return Err(caller.precondition_failed(format!(
                "user_id property set to '{user}' but authenticated user was '{}'",
                caller.user
            )));
        }
        let ttl_ms = match named.expiration {
            None => None,
            Some(text) => Some(expiration_ms(text).map_err(|reason| {
                caller.precondition_failed(format!("invalid expiration '{text}': {reason}"))
            })?),
        };
        let is_persistent = match named.delivery_mode {
            None => false,
            Some(mode) if mode == DeliveryMode::Transient as u8 => false,
            Some(mode) if mode == DeliveryMode::Persistent as u8 => true,
            Some(mode) => {
                let text = format!("invalid message: {{delivery_mode_unknown,{mode}}}");
                return Err(caller.precondition_failed(text));
            }
        };
        let mut facets = Self {
            headers: named.headers.unwrap_or_default(),
            handling: Handling {
                is_persistent,
                ttl_ms,
            },
            wants_reply: named.reply_to == Some(REPLY_QUEUE),
            has_copies: false,
            has_blind_copies: false,
        };
        if !facets.headers.is_empty() {
            facets.find_copies(caller, copy_keys_max)?;
        }
        Ok(facets)
    }

    /// Reads further routing keys from the headers `CC` and `BCC` (RabbitMQ's extension, sender-selected distribution).
    fn find_copies(&mut self, caller: &Caller<'_>, copy_keys_max: usize) -> Result<(), Fault> {
        let mut copy_keys = 0;
        for name in ["CC", "BCC"] {
            match self.headers.find(name) {
                None => {}
                Some(Value::Array(keys)) => {
                    self.has_copies = true;
                    self.has_blind_copies |= name == "BCC";
                    if let Some(key) = keys.iter().find_map(too_long) {
                        return Err(caller.precondition_failed(format!(
                            "invalid message: a routing key in header \"{name}\" has {} bytes; \
                             expected at most {ROUTING_KEY_BYTES_MAX}",
                            key.len()
                        )));
                    }
                    copy_keys += keys.iter().count();
                    check_copy_keys(caller, copy_keys, copy_keys_max)?;
                }
                Some(value) => {
                    return Err(caller.precondition_failed(format!(
                        "invalid message: {{unacceptable_type_in_header,\"{name}\",{}}}",
                        kind(value)
                    )));
                }
            }
        }
        Ok(())
    }

    /// Reads those of a message that was checked when it was published.
    pub(super) fn of_checked(properties: Properties<'a>) -> Self {
        let named = properties.parse_for_broker();
        let ttl_ms = named.expiration.and_then(|text| expiration_ms(text).ok());
        Self {
            headers: named.headers.unwrap_or_default(),
            handling: Handling {
                is_persistent: named.delivery_mode == Some(DeliveryMode::Persistent as u8),
                ttl_ms,
            },
            ..Self::default()
        }
    }
}

/// The protocol's bound on every other routing key.
const ROUTING_KEY_BYTES_MAX: usize = 255;

fn too_long(key: Value<'_>) -> Option<&str> {
    key.as_str().filter(|key| key.len() > ROUTING_KEY_BYTES_MAX)
}

/// Each key is routed like the publication's own, at the price of one message.
#[cold]
fn check_copy_keys(caller: &Caller<'_>, count: usize, max: usize) -> Result<(), Fault> {
    match count > max {
        true => Err(caller.precondition_failed(format!(
            "invalid message: its headers CC and BCC have {count} keys or more, more than \
             copy_keys_max ({max})"
        ))),
        false => Ok(()),
    }
}

pub(super) fn owned(table: Table<'_>) -> TableBuf {
    table.iter().fold(TableBuf::new(), |owned, (name, value)| {
        owned.with(name, value)
    })
}

pub(super) fn without_blind_copies(headers: Table<'_>) -> TableBuf {
    let mut kept = TableBuf::new();
    for (name, value) in headers.iter().filter(|(name, _)| *name != "BCC") {
        kept = kept.with(name, value);
    }
    kept
}

/// The longest time of RabbitMQ's timers: ten years.
const EXPIRATION_MS_MAX: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

/// Digits, perhaps with a sign; the reason in RabbitMQ's words, which are Erlang's terms.
fn expiration_ms(text: &str) -> Result<u64, String> {
    // Mostly a plain number.
    if let Ok(expiration_ms @ ..=EXPIRATION_MS_MAX) = text.parse() {
        return Ok(expiration_ms);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = digits
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() {
        return Err("no_integer".to_owned());
    }
    if !rest.is_empty() {
        return Err(format!("{{leftover_string,{rest:?}}}"));
    }
    let shown = number.trim_start_matches('0');
    match number.parse::<u64>() {
        _ if text.starts_with('-') && !shown.is_empty() => {
            Err(format!("{{value_negative,-{shown}}}"))
        }
        Ok(expiration_ms @ ..=EXPIRATION_MS_MAX) => Ok(expiration_ms),
        _ => Err(format!("{{value_too_large,{shown}}}")),
    }
}

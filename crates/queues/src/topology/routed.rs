//! A message on its way through exchanges.

use crosstie_amqp::{Array, Properties, Table, Value};

/// The parts of a message that routing reads.
#[derive(Clone, Copy)]
pub(crate) struct Routed<'a> {
    pub(crate) routing_key: &'a str,
    /// Those that the publisher sent; the properties may lack some.
    pub(crate) headers: Table<'a>,
    pub(crate) properties: Properties<'a>,
}

#[cfg(test)]
impl<'a> Routed<'a> {
    /// Without properties but headers.
    pub(super) fn plain(routing_key: &'a str, headers: Table<'a>) -> Self {
        Self {
            routing_key,
            headers,
            properties: Properties::EMPTY,
        }
    }
}

/// The routing keys in headers.
pub(crate) fn header_keys<'a>(headers: Table<'a>) -> impl Iterator<Item = &'a str> {
    let [open, blind] = Copies::of(headers).0;
    open.iter().chain(blind.iter()).filter_map(Value::as_str)
}

/// The keys in the headers `CC` and `BCC`, looked up once, however many exchanges a message passes.
#[derive(Default)]
pub(super) struct Copies<'a>([Array<'a>; 2]);

impl<'a> Copies<'a> {
    pub(super) fn of(headers: Table<'a>) -> Self {
        if headers.is_empty() {
            return Self::default();
        }
        Self(["CC", "BCC"].map(|name| match headers.find(name) {
            Some(Value::Array(keys)) => keys,
            _ => Array::default(),
        }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|keys| keys.is_empty())
    }

    /// Shows each key, while all of them together take no more than that many steps; returns these.
    #[cold]
    #[inline(never)]
    pub(super) fn each(&self, steps_max: u64, mut found: impl FnMut(&str) -> u64) -> u64 {
        let mut steps = 0;
        for key in self.iter() {
            steps += 1 + found(key);
            if steps > steps_max {
                break;
            }
        }
        steps
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a str> {
        let [open, blind] = self.0;
        open.iter().chain(blind.iter()).filter_map(Value::as_str)
    }
}

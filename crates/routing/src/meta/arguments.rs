//! The arguments of a meta API call: positional or by keyword.

use std::cell::Cell;

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::uri::{self, UriCheck};
use crosstie_wamp::{Dict, MatchPolicy, Payload, Serializer, Value};

use crate::fault::{Fault, error};

/// Longer arguments are refused unread: they are parsed under the realm's lock.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of ids in one answer.
pub(super) const IDS_MAX: usize = 100_000;

/// The argument of each parameter of a procedure. Null counts as absent.
pub(super) struct Arguments {
    /// The caller's serializer.
    serializer: Serializer,
    names: &'static [&'static str],
    /// Number of positional arguments.
    places: usize,
    values: Vec<Option<Value>>,
    /// Number of list items skipped before the requested part.
    skipped: Cell<usize>,
}

/// A part of a list.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) offset: usize,
    /// `None` means all, up to the bound.
    pub(super) limit: Option<usize>,
    skipped: &'a Cell<usize>,
}

impl Arguments {
    pub(super) fn read(
        payload: &Payload<'_>,
        names: &'static [&'static str],
    ) -> Result<Self, Fault> {
        if payload.len() > ARGUMENTS_BYTES_MAX {
            return Err(invalid(format!(
                "the arguments of this procedure may have {ARGUMENTS_BYTES_MAX} bytes; these \
                 have {}",
                payload.len()
            )));
        }
        let Some(Value::List(given)) = value(payload, payload.args, Value::List(Vec::new())) else {
            return Err(invalid("expected a list of arguments"));
        };
        let Some(Value::Dict(named)) = value(payload, payload.kwargs, Value::Dict(Dict::new()))
        else {
            return Err(invalid("expected a dictionary of keyword arguments"));
        };
        if given.len() > names.len() {
            return Err(invalid(format!(
                "expected at most {} arguments, found {}",
                names.len(),
                given.len()
            )));
        }
        let places = given.len();
        let mut values: Vec<_> = given.into_iter().map(Some).collect();
        values.resize_with(names.len(), || None);
        for (name, value) in named {
            let Some(place) = names.iter().position(|known| *known == name) else {
                return Err(invalid(format!(
                    "no argument is named {name:?}; expected one of: {}",
                    names.join(", ")
                )));
            };
            if values[place].replace(value).is_some() {
                return Err(invalid(format!("{name} is given twice")));
            }
        }
        let values = values.into_iter();
        let values = values.map(|value| value.filter(|value| *value != Value::Null));
        Ok(Self {
            serializer: payload.serializer,
            names,
            places,
            values: values.collect(),
            skipped: Cell::new(0),
        })
    }

    pub(super) fn serializer(&self) -> Serializer {
        self.serializer
    }

    /// Number of positional arguments.
    pub(super) fn places(&self) -> usize {
        self.places
    }

    /// Number of arguments.
    pub(super) fn count(&self) -> usize {
        self.values.iter().flatten().count()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let place = self.names.iter().position(|known| *known == name)?;
        self.values.get(place)?.as_ref()
    }

    pub(super) fn id(&self, name: &str) -> Result<u64, Fault> {
        let id = self.get(name).and_then(Value::as_whole);
        id.ok_or_else(|| self.unlike(name, "an id"))
    }

    pub(super) fn optional_id(&self, name: &str) -> Result<Option<u64>, Fault> {
        self.get(name).map(|_| self.id(name)).transpose()
    }

    pub(super) fn text(&self, name: &str) -> Result<&str, Fault> {
        let text = self.get(name).and_then(Value::as_str);
        text.ok_or_else(|| self.unlike(name, "a text"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&str>, Fault> {
        self.get(name).map(|_| self.text(name)).transpose()
    }

    /// The reason for ending a session or its part in an entry: a URI.
    pub(super) fn optional_reason(&self) -> Result<Option<&str>, Fault> {
        let reason = self.optional_text("reason")?;
        let fault = reason.and_then(|reason| Some((reason, uri::check(reason, UriCheck::Loose)?)));
        match fault {
            None => Ok(reason),
            Some((reason, fault)) => Err(Fault::new(
                error::INVALID_URI,
                format!("reason {reason:?}: {fault}"),
            )),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<&str>>, Fault> {
        let Some(given) = self.get(name) else {
            return Ok(None);
        };
        let texts = match given {
            Value::List(list) => list.iter().map(Value::as_str).collect(),
            _ => None,
        };
        texts
            .map(Some)
            .ok_or_else(|| self.unlike(name, "a list of texts"))
    }

    pub(super) fn optional_list(&self, name: &str) -> Result<Option<&Vec<Value>>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::List(list)) => Ok(Some(list)),
            Some(_) => Err(self.unlike(name, "a list")),
        }
    }

    pub(super) fn optional_dict(&self, name: &str) -> Result<Option<&Dict>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Dict(dict)) => Ok(Some(dict)),
            Some(_) => Err(self.unlike(name, "a dictionary")),
        }
    }

    /// The policy in `options.match`.
    pub(super) fn match_policy(&self) -> Result<MatchPolicy, Fault> {
        self.optional_dict("options")?;
        let options = self.get("options");
        match options.and_then(|options| options.get("match")) {
            None | Some(Value::Null) => Ok(MatchPolicy::Exact),
            Some(Value::String(text)) if text.is_empty() => Ok(MatchPolicy::Exact),
            Some(given) => {
                let all = [
                    MatchPolicy::Exact,
                    MatchPolicy::Prefix,
                    MatchPolicy::Wildcard,
                ];
                let named = |policy: &MatchPolicy| Some(policy.name()) == given.as_str();
                all.into_iter()
                    .find(named)
                    .ok_or_else(|| invalid("options.match: expected exact, prefix or wildcard"))
            }
        }
    }

    /// Number of list items that [`Page::of`] skipped before its part.
    pub(super) fn skipped(&self) -> usize {
        self.skipped.get()
    }

    /// Encodes them as keyword arguments for another node, with another part of a list if one is given.
    pub(super) fn write(&self, page: Option<(usize, Option<usize>)>) -> Vec<u8> {
        let given = self.names.iter().zip(&self.values);
        let mut named: Dict = given
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)))
            .collect();
        if let Some((offset, limit)) = page {
            named.retain(|(name, _)| name != "offset" && name != "limit");
            named.push(("offset".to_owned(), Value::from(offset as u64)));
            let limit = limit.map(|limit| ("limit".to_owned(), Value::from(limit as u64)));
            named.extend(limit);
        }
        let mut bytes = Vec::new();
        let written = codec::encode_value(&Value::Dict(named), Serializer::Cbor, &mut bytes);
        debug_assert!(written.is_ok(), "what was read is written");
        bytes
    }

    pub(super) fn page(&self) -> Result<Page<'_>, Fault> {
        let number = |name: &str| {
            let number = self.optional_id(name)?;
            Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
        };
        let limit = number("limit")?;
        if limit.is_some_and(|limit| limit > IDS_MAX) {
            return Err(invalid(format!("limit: expected at most {IDS_MAX}")));
        }
        Ok(Page {
            offset: number("offset")?.unwrap_or(0),
            limit,
            skipped: &self.skipped,
        })
    }

    fn unlike(&self, name: &str, expected: &str) -> Fault {
        match self.get(name) {
            None => invalid(format!("{name}: expected {expected}, found nothing")),
            Some(_) => invalid(format!("{name}: expected {expected}, found something else")),
        }
    }
}

impl Page<'_> {
    /// The requested part of that many items.
    pub(super) fn of<T>(self, mut all: impl Iterator<Item = T>) -> Result<Vec<T>, Fault> {
        self.skipped.set(all.by_ref().take(self.offset).count());
        let limit = self.limit.unwrap_or(IDS_MAX);
        let part = all.by_ref().take(limit).collect();
        if self.limit.is_none() && all.next().is_some() {
            return Err(too_many());
        }
        Ok(part)
    }
}

/// The fault of a list that is too long for one answer.
pub(super) fn too_many() -> Fault {
    Fault::new(
        error::LIST_IDS_MAX,
        format!(
            "an answer has at most {IDS_MAX} ids, and here are more; ask for parts with \
             the keyword arguments offset and limit"
        ),
    )
}

/// One part of a payload; `absent` if it is empty.
fn value(payload: &Payload<'_>, bytes: &[u8], absent: Value) -> Option<Value> {
    match bytes {
        [] => Some(absent),
        _ => codec::decode_value(payload.serializer, bytes, &Limits::default()).ok(),
    }
}

pub(super) fn invalid(text: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::new(error::INVALID_ARGUMENT, text)
}

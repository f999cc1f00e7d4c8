//! Merges the answers of several nodes into one.

use std::collections::BTreeSet;

use crosstie_wamp::{Dict, Value};

use super::arguments::{IDS_MAX, too_many};
use crate::fault::Fault;

/// How answers are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// One node can know or do it: the first answer counts.
    First,
    /// The same, but null does not count as an answer.
    FirstFound,
    /// Adds numbers, and concatenates lists.
    Together,
    /// Merges lists of ids, and removes duplicates.
    Distinct,
    /// The same for each matching policy.
    ByPolicy,
    /// Descriptions of the same entry: keeps the earliest creation time.
    Earliest,
}

impl Merge {
    /// Adds another node's answer. Malformed parts are left out.
    pub(super) fn add(self, all: &mut Option<Value>, more: Value) -> Result<(), Fault> {
        let Some(all) = all else {
            let is_none = more == Value::Null && self != Self::First;
            *all = (!is_none).then_some(more);
            return Ok(());
        };
        match (self, &mut *all, more) {
            (Self::Together, Value::Integer(all), Value::Integer(more)) => {
                *all = all.saturating_add(more);
            }
            (Self::Together, Value::List(all), Value::List(more)) => all.extend(more),
            (Self::Distinct, Value::List(all), Value::List(more)) => join(all, more),
            (Self::ByPolicy, Value::Dict(all), Value::Dict(more)) => {
                for (policy, more) in more {
                    if let Some(Value::List(all)) = member(all, &policy)
                        && let Value::List(more) = more
                    {
                        join(all, more);
                    }
                }
            }
            (Self::Earliest, Value::Dict(all), more) => {
                let since = more.get("created").and_then(Value::as_str);
                if let (Some(Value::String(all)), Some(since)) = (member(all, "created"), since)
                    && *since < **all
                {
                    since.clone_into(all);
                }
            }
            _ => {}
        }
        match count(all) > IDS_MAX {
            true => Err(too_many()),
            false => Ok(()),
        }
    }
}

fn member<'d>(dict: &'d mut Dict, key: &str) -> Option<&'d mut Value> {
    let mut members = dict.iter_mut();
    let found = members.find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}

fn join(all: &mut Vec<Value>, more: Vec<Value>) {
    let known: BTreeSet<_> = all.iter().filter_map(Value::as_u64).collect();
    let is_new = |id: &Value| id.as_u64().is_some_and(|id| !known.contains(&id));
    all.extend(more.into_iter().filter(is_new));
}

/// Number of ids in an answer.
pub(super) fn count(answer: &Value) -> usize {
    match answer {
        Value::List(ids) => ids.len(),
        Value::Dict(by_policy) => {
            let lists = by_policy.iter().map(|(_, ids)| match ids {
                Value::List(ids) => ids.len(),
                _ => 0,
            });
            lists.sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u64]) -> Value {
        Value::List(ids.iter().copied().map(Value::from).collect())
    }

    fn created(since: &str) -> Value {
        Value::Dict(vec![("created".to_owned(), since.into())])
    }

    #[test]
    fn answers_become_one() {
        use Merge::{ByPolicy, Distinct, Earliest, First, FirstFound, Together};
        let by = |list| Value::Dict(vec![("exact".to_owned(), list)]);
        let number = |number: u64| Value::from(number);
        for (merge, parts, expected) in [
            (Together, vec![number(2), number(3)], number(5)),
            (Together, vec![ids(&[1, 2]), ids(&[3])], ids(&[1, 2, 3])),
            (Together, vec![ids(&[1]), number(7)], ids(&[1])),
            (Distinct, vec![Value::Null, ids(&[1])], ids(&[1])),
            (Distinct, vec![ids(&[1, 2]), ids(&[2, 3])], ids(&[1, 2, 3])),
            (
                ByPolicy,
                vec![by(ids(&[1])), by(ids(&[1, 4]))],
                by(ids(&[1, 4])),
            ),
            (ByPolicy, vec![by(ids(&[1])), ids(&[4])], by(ids(&[1]))),
            (
                Earliest,
                vec![created("2026-02"), created("2026-01")],
                created("2026-01"),
            ),
            (FirstFound, vec![Value::Null, number(4)], number(4)),
            (First, vec![Value::Null, number(4)], Value::Null),
        ] {
            let mut all = None;
            for part in parts.clone() {
                merge.add(&mut all, part).expect("they are few");
            }
            assert_eq!(all, Some(expected), "{merge:?} {parts:?}");
        }
        let mut all = Some(ids(&vec![1; IDS_MAX]));
        let refused = Together.add(&mut all, ids(&[1]));
        assert!(refused.is_err(), "one too many");
    }
}

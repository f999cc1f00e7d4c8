//! One policy: its parts, checked.

use std::cmp::Ordering;
use std::sync::Arc;

use super::keys;
use super::pattern::NamePattern;
use super::value::{PolicyValue, pairs_term, reason_term};

/// A policy, or an operator policy: checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    name: Arc<str>,
    pattern: NamePattern,
    apply_to: ApplyTo,
    /// A number.
    priority: PolicyValue,
    definition: Definition,
}

/// Values by key, sorted.
pub type Definition = Vec<(Arc<str>, PolicyValue)>;

/// The two kinds of policies. An operator policy has keys that bound queues only, and its bounds hold whatever the
/// others say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    User,
    Operator,
}

crosstie_collections::named! {
    /// The objects that a policy is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ApplyTo {
        All = "all",
        Exchanges = "exchanges",
        Queues = "queues",
    }
}

/// The parts of a policy as they were given; absent ones have a default.
#[derive(Clone, Copy, Debug)]
pub struct PolicyParts<'a> {
    pub name: &'a str,
    pub pattern: &'a PolicyValue,
    pub definition: &'a PolicyValue,
    pub priority: Option<&'a PolicyValue>,
    pub apply_to: Option<&'a PolicyValue>,
}

impl Policy {
    /// Checks the parts of a policy. The error is RabbitMQ's text, with all of its lines.
    pub fn parse(kind: PolicyKind, parts: PolicyParts<'_>) -> Result<Self, String> {
        let definition = parse_definition(kind, parts.name, parts.definition);
        let apply_to = parse_apply_to(parts.apply_to);
        let pattern = parse_pattern(parts.pattern);
        let priority = parse_priority(parts.priority);
        let (definition, apply_to, pattern, priority) =
            match (definition, apply_to, pattern, priority) {
                (Ok(definition), Ok(apply_to), Ok(pattern), Ok(priority)) => {
                    (definition, apply_to, pattern, priority)
                }
                (definition, apply_to, pattern, priority) => {
                    let wrong = [
                        definition.err(),
                        apply_to.err(),
                        pattern.err(),
                        priority.err(),
                    ];
                    return Err(refusal(wrong.into_iter().flatten()));
                }
            };
        Ok(Self {
            name: parts.name.into(),
            pattern,
            apply_to,
            priority,
            definition,
        })
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub fn pattern(&self) -> &str {
        self.pattern.text()
    }

    pub fn apply_to(&self) -> ApplyTo {
        self.apply_to
    }

    /// A whole number, or not.
    pub fn priority(&self) -> &PolicyValue {
        &self.priority
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.pattern.matches(name)
    }

    /// The order in which policies are tried: the highest priority first. RabbitMQ's order of equal ones follows from a
    /// hash; here it follows from their names.
    pub(super) fn precedence(&self, other: &Self) -> Ordering {
        let order = match (&self.priority, &other.priority) {
            (PolicyValue::Integer(one), PolicyValue::Integer(other)) => other.cmp(one),
            (one, other) => number(other).total_cmp(&number(one)),
        };
        order.then_with(|| self.name.cmp(&other.name))
    }
}

/// The text that refuses a parameter for these reasons.
fn refusal(reasons: impl Iterator<Item = String>) -> String {
    let mut text = "Validation failed\n\n".to_owned();
    for reason in reasons {
        text.push_str(&reason);
        text.push('\n');
    }
    text
}

fn parse_definition(
    kind: PolicyKind,
    name: &str,
    definition: &PolicyValue,
) -> Result<Definition, String> {
    let entries = match definition {
        PolicyValue::Map(entries) => entries,
        PolicyValue::List(items) if items.is_empty() => return Err("no policy provided".to_owned()),
        PolicyValue::List(_) => {
            return Err(format!("definition must be a dictionary: {definition}"));
        }
        _ => {
            let validator = match kind {
                PolicyKind::User => "policy_validator",
                PolicyKind::Operator => "operator_policy_validator",
            };
            return Err(format!(
                "parse error while reading policy {name}: {definition}. Validator: {validator}."
            ));
        }
    };
    let mut entries: Vec<_> = entries.iter().map(|(key, value)| (&**key, value)).collect();
    if entries.is_empty() {
        return Err("no policy provided".to_owned());
    }
    entries.sort_by_key(|(key, _)| *key);
    if let Some([(key, _), _]) = entries
        .array_windows()
        .find(|[(one, _), (two, _)]| one == two)
    {
        let keys = PolicyValue::List(vec![PolicyValue::from(*key)]);
        return Err(format!("{keys} duplicate keys not allowed"));
    }
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    for (name, value) in &entries {
        match keys::find(kind, name) {
            Some(key) => known.push((key, *value)),
            None => unknown.push((*name, *value)),
        }
    }
    keys::check(&known)?;
    if !unknown.is_empty() {
        let unknown = pairs_term(&unknown);
        return Err(format!("{unknown} are not recognised policy settings"));
    }
    let known = known.into_iter();
    Ok(known
        .map(|(key, value)| (key.name.into(), value.clone()))
        .collect())
}

fn parse_apply_to(given: Option<&PolicyValue>) -> Result<ApplyTo, String> {
    let Some(given) = given else {
        return Ok(ApplyTo::All);
    };
    let all = [ApplyTo::All, ApplyTo::Exchanges, ApplyTo::Queues];
    let mut all = all.into_iter();
    let found = all.find(|apply_to| given.as_text() == Some(apply_to.name()));
    found.ok_or_else(|| {
        let shown = match given {
            PolicyValue::Text(text) => text.clone(),
            other => other.to_string(),
        };
        format!("apply-to '{shown}' unrecognised; should be 'queues', 'exchanges' or 'all'")
    })
}

fn parse_pattern(given: &PolicyValue) -> Result<NamePattern, String> {
    const INVALID: &str = "pattern should be regular expression but is invalid: ";
    let Some(text) = given.as_text() else {
        return Err(format!("pattern should be a binary but was {given}"));
    };
    NamePattern::parse(text).map_err(|wrong| {
        let reason = reason_term(&wrong.reason, wrong.at, INVALID.len());
        format!("{INVALID}{reason}")
    })
}

fn parse_priority(given: Option<&PolicyValue>) -> Result<PolicyValue, String> {
    match given {
        None => Ok(PolicyValue::Integer(0)),
        Some(number @ (PolicyValue::Integer(_) | PolicyValue::Float(_))) => Ok(number.clone()),
        Some(other) => Err(format!("priority should be a number, actually was {other}")),
    }
}

fn number(value: &PolicyValue) -> f64 {
    match value {
        PolicyValue::Integer(integer) => *integer as f64,
        PolicyValue::Float(float) => *float,
        _ => 0.0,
    }
}

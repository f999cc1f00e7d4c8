//! Policies of vhosts: those of the definitions, and what is in force.

use std::sync::Arc;

use crosstie_config::{DefinedPolicy, Definitions, Json, Skipped};
use crosstie_metadata::{Layers, Origin, definition_to_json, policy_value};
use crosstie_queues::policy::{Applied, Policy, PolicyKind, PolicyParts, is_without_effect};

/// The policies that apply to a queue or exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedPolicies {
    pub policy: Option<String>,
    pub operator_policy: Option<String>,
    /// What both set, as a JSON object, without arguments.
    pub definition: Json,
}

/// Adds the policies of definitions to the configuration's entries. Returns those that are refused, with RabbitMQ's
/// text, and the keys that have no effect. Of several policies with one name the last counts.
pub(crate) fn add(layers: &mut Layers, definitions: &Definitions) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    for defined in &definitions.policies {
        let (kind, of_kind) = match defined.is_operator {
            true => (PolicyKind::Operator, &mut layers.operator_policies),
            false => (PolicyKind::User, &mut layers.policies),
        };
        let what = what(defined);
        match parse(kind, defined) {
            Ok(policy) => {
                let unused = policy.definition().iter().map(|(key, _)| key);
                let unused = unused.filter(|key| is_without_effect(key));
                skipped.extend(unused.map(|key| Skipped {
                    what: format!("'{key}' of {what}"),
                    why: "it is about the place or form of storage, and has no effect here".into(),
                    is_wider: false,
                }));
                let key = (defined.vhost.as_str().into(), Arc::clone(policy.name()));
                of_kind.push((key, policy, Origin::Configured("amqp.definitions")));
            }
            Err(text) => skipped.push(Skipped {
                what,
                why: on_one_line(&text),
                is_wider: false,
            }),
        }
    }
    skipped
}

fn what(defined: &DefinedPolicy) -> String {
    let kind = match defined.is_operator {
        true => "operator policy",
        false => "policy",
    };
    format!("{kind} '{}' in vhost '{}'", defined.name, defined.vhost)
}

fn parse(kind: PolicyKind, defined: &DefinedPolicy) -> Result<Policy, String> {
    let (priority, apply_to) = (&defined.priority, &defined.apply_to);
    Policy::parse(
        kind,
        PolicyParts {
            name: &defined.name,
            pattern: &policy_value(&defined.pattern),
            definition: &policy_value(&defined.definition),
            priority: priority.as_ref().map(policy_value).as_ref(),
            apply_to: apply_to.as_ref().map(policy_value).as_ref(),
        },
    )
}

/// RabbitMQ's text has a line for each fault, and a heading.
fn on_one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let heading = lines.next().unwrap_or_default();
    let faults: Vec<_> = lines.map(str::trim_start).collect();
    format!("{heading}: {}", faults.join("; "))
}

/// What applies to a queue or exchange, for a listing.
pub(super) fn shown(applied: Option<&Applied>) -> AppliedPolicies {
    let name = |policy: Option<&Arc<Policy>>| policy.map(|policy| policy.name().to_string());
    AppliedPolicies {
        policy: name(applied.and_then(Applied::policy)),
        operator_policy: name(applied.and_then(Applied::operator_policy)),
        definition: applied.map_or_else(
            || Json::Object(Default::default()),
            |applied| definition_to_json(applied.definition()),
        ),
    }
}

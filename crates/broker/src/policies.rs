//! Policies that are in force.

use std::sync::Arc;

use crosstie_config::Json;
use crosstie_metadata::definition_to_json;
use crosstie_queues::policy::{Applied, Policy};

/// The policies that apply to a queue or exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedPolicies {
    pub policy: Option<String>,
    pub operator_policy: Option<String>,
    /// What both set, as a JSON object, without arguments.
    pub definition: Json,
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

//! Callers that forget a call with its CANCEL.
//!
//! Autobahn|JS drops a call when it sends CANCEL, unless the mode is `kill`. It takes the ERROR that the specification
//! requires, or a later RESULT, for a protocol violation, and closes its session with 3002. Its HELLO names no agent
//! (26.3.1). So it is recognized by its announced features, which are the same in each version.

use crosstie_wamp::{Dict, Value};

use crate::features::lookup;

/// Whether a HELLO is from such a client.
pub(crate) fn is_forgetful(details: &Dict) -> bool {
    match lookup(details, "agent").and_then(Value::as_str) {
        Some(agent) => AGENTS.iter().any(|known| agent.starts_with(known)),
        None => announces_as_autobahn(details),
    }
}

/// Agents of forks of the library, and of applications that set one.
const AGENTS: [&str; 2] = ["AutobahnJS", "Autobahn|JS"];

fn announces_as_autobahn(details: &Dict) -> bool {
    let Some(Value::Dict(roles)) = lookup(details, "roles") else {
        return false;
    };
    roles.len() == FEATURES.len()
        && FEATURES.iter().all(|(role, expected)| {
            let features = lookup(roles, role).and_then(|role| role.get("features"));
            let Some(Value::Dict(features)) = features else {
                return false;
            };
            let is_expected = |(name, is): &(String, Value)| {
                *is == Value::Bool(true) && expected.contains(&name.as_str())
            };
            features.len() == expected.len() && features.iter().all(is_expected)
        })
}

/// The roles in HELLO of Autobahn|JS 26.3.1.
const FEATURES: [(&str, &[&str]); 4] = [
    (
        "caller",
        &[
            "caller_identification",
            "call_canceling",
            "progressive_call_results",
        ],
    ),
    (
        "callee",
        &[
            "caller_identification",
            "pattern_based_registration",
            "shared_registration",
            "progressive_call_results",
            "registration_revocation",
        ],
    ),
    (
        "publisher",
        &[
            "publisher_identification",
            "subscriber_blackwhite_listing",
            "publisher_exclusion",
        ],
    ),
    (
        "subscriber",
        &[
            "publisher_identification",
            "pattern_based_subscription",
            "subscription_revocation",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(change: impl Fn(&str, &mut Dict), agent: Option<&str>) -> Dict {
        let roles = FEATURES.map(|(role, features)| {
            let named = features
                .iter()
                .map(|name| ((*name).to_owned(), Value::Bool(true)));
            let mut features: Dict = named.collect();
            change(role, &mut features);
            let features = vec![("features".to_owned(), Value::Dict(features))];
            (role.to_owned(), Value::Dict(features))
        });
        let mut details = vec![("roles".to_owned(), Value::Dict(roles.into()))];
        details.extend(agent.map(|agent| ("agent".to_owned(), Value::from(agent))));
        details
    }

    #[test]
    fn autobahn_js_is_recognized_by_its_features() {
        let callee_cancels = |role: &str, features: &mut Dict| {
            if role == "callee" {
                features.push(("call_canceling".to_owned(), Value::Bool(true)));
            }
        };
        let no_progress = |role: &str, features: &mut Dict| {
            if role == "caller" {
                features.pop();
            }
        };
        for (details, expected) in [
            (hello(|_, _| {}, None), true),
            (hello(|_, features| features.reverse(), None), true),
            (hello(callee_cancels, None), false),
            (hello(no_progress, None), false),
            (hello(no_progress, Some("AutobahnJS/20.9.2")), true),
            (hello(|_, _| {}, Some("Wampy.js v8.0.2")), false),
            (Dict::new(), false),
        ] {
            assert_eq!(is_forgetful(&details), expected, "{details:?}");
        }
    }
}

//! URIs, patterns and permissions, naively.

use crosstie_routing::{Action, DiscloseMe, Permission, error};
use crosstie_wamp::MatchPolicy;

use super::Model;
use crate::Name;

/// Whether a pattern matches a URI (or, for permissions, another pattern).
pub(super) fn matches(policy: MatchPolicy, pattern: &str, uri: &str) -> bool {
    match policy {
        MatchPolicy::Exact => pattern == uri,
        MatchPolicy::Prefix => uri.starts_with(pattern),
        MatchPolicy::Wildcard => {
            let (pattern, uri) = (components(pattern), components(uri));
            pattern.len() == uri.len()
                && pattern
                    .iter()
                    .zip(&uri)
                    .all(|(named, came)| named.is_empty() || named == came)
        }
    }
}

/// How good a wildcard match is: named components count, the earlier the more.
pub(super) fn wildcard_rank(pattern: &str) -> Vec<bool> {
    components(pattern)
        .iter()
        .map(|component| !component.is_empty())
        .collect()
}

fn components(uri: &str) -> Vec<&str> {
    uri.split('.').collect()
}

fn allows(permission: &Permission, action: Action) -> bool {
    match action {
        Action::Call => permission.allow.call,
        Action::Register => permission.allow.register,
        Action::Publish => permission.allow.publish,
        Action::Subscribe => permission.allow.subscribe,
    }
}

/// What all URIs that a pattern matches begin with.
fn beginning(pattern: &str, policy: MatchPolicy) -> String {
    match policy {
        MatchPolicy::Exact | MatchPolicy::Prefix => pattern.to_owned(),
        MatchPolicy::Wildcard => {
            let named = components(pattern);
            let named: Vec<_> = named.iter().take_while(|part| !part.is_empty()).collect();
            let begun: String = named.iter().map(|part| format!("{part}.")).collect();
            if begun.len() > pattern.len() {
                pattern.to_owned()
            } else {
                begun
            }
        }
    }
}

/// URIs that a pattern matches: all there are with the components that simulations use, and one
/// that they do not.
fn example_uris(pattern: &str, policy: MatchPolicy) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut found = Vec::new();
    for _ in 0..components(pattern).len().max(3) {
        let longer = all.iter().flat_map(|uri| {
            ["a", "b", "c", "d", "z"].map(|part| match uri.as_str() {
                "" => part.to_owned(),
                uri => format!("{uri}.{part}"),
            })
        });
        all = longer.collect();
        found.extend(
            all.iter()
                .filter(|uri| matches(policy, pattern, uri))
                .cloned(),
        );
    }
    found
}

impl Model {
    pub(super) fn check_uri(uri: &str, policy: MatchPolicy) -> Result<(), &'static str> {
        let parts = components(uri);
        let good = match policy {
            MatchPolicy::Exact => parts.iter().all(|part| !part.is_empty()),
            MatchPolicy::Prefix => {
                let all_but_last = &parts[..parts.len() - 1];
                uri.is_empty() || all_but_last.iter().all(|part| !part.is_empty())
            }
            MatchPolicy::Wildcard => true,
        };
        if good {
            Ok(())
        } else {
            Err(error::INVALID_URI)
        }
    }

    pub(super) fn check_reserved(uri: &str) -> Result<(), &'static str> {
        if components(uri)[0] == "wamp" {
            Err(error::INVALID_URI)
        } else {
            Ok(())
        }
    }

    /// The permission that decides, if it allows the action.
    pub(super) fn permission(
        &self,
        from: Name,
        action: Action,
        uri: &str,
        policy: MatchPolicy,
    ) -> Result<&Permission, &'static str> {
        let authrole = &self.member(from).authrole;
        let role = self.config.roles.iter().find(|role| role.name == *authrole);
        let permissions = &role.expect("it could join").permissions;
        let of = |kind: MatchPolicy| {
            permissions.iter().filter(move |permission| {
                permission.match_policy == kind && matches(kind, &permission.uri, uri)
            })
        };
        let exact = of(MatchPolicy::Exact)
            .next()
            .filter(|_| policy == MatchPolicy::Exact);
        let wildcard = of(MatchPolicy::Wildcard)
            .max_by_key(|permission| wildcard_rank(&permission.uri))
            .filter(|_| policy != MatchPolicy::Prefix);
        let prefix = of(MatchPolicy::Prefix).max_by_key(|permission| permission.uri.len());
        let deciding = exact.or(wildcard).or(prefix).ok_or(error::NOT_AUTHORIZED)?;
        let forbidden_within = || {
            let reached = example_uris(uri, policy);
            permissions.iter().any(|permission| {
                let is_broader = permission.match_policy == MatchPolicy::Prefix
                    && beginning(uri, policy).starts_with(&permission.uri);
                let matches = |uri: &String| matches(permission.match_policy, &permission.uri, uri);
                !is_broader && !allows(permission, action) && reached.iter().any(matches)
            })
        };
        if allows(deciding, action) && (policy == MatchPolicy::Exact || !forbidden_within()) {
            Ok(deciding)
        } else {
            Err(error::NOT_AUTHORIZED)
        }
    }

    /// Whether the sender is disclosed.
    pub(super) fn disclosed(
        &self,
        by_permission: bool,
        disclose_me: Option<bool>,
    ) -> Result<bool, &'static str> {
        match (by_permission, disclose_me, self.config.disclose_me) {
            (true, _, _) | (_, Some(true), DiscloseMe::Allow) => Ok(true),
            (false, Some(true), DiscloseMe::Refuse) => Err(error::DISCLOSE_ME_DISALLOWED),
            _ => Ok(false),
        }
    }
}

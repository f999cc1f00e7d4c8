//! URIs, patterns and permissions, naively.

use crosstie_routing::{Action, Disclose, DiscloseMe, Permission, Role, RoleMatch, error};
use crosstie_wamp::MatchPolicy;

use super::Model;
use super::decisions::Asker;
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

/// The beginning that all URIs matching a pattern have in common.
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
    /// The disclosure of a session that may act, and its trust level; or why it may not.
    pub(super) fn authorize(
        &mut self,
        from: Name,
        action: Action,
        uri: &str,
        policy: MatchPolicy,
    ) -> Result<(Disclose, Option<u16>), &'static str> {
        let member = self.members.iter().find(|member| member.name == from);
        let member = member.expect("it is in the realm");
        let mut roles = self.config.roles.iter();
        let role = roles.find(|role| role.name == member.authrole);
        let role = role.expect("it could join");
        if let Some(authorizer) = &role.authorizer {
            let asker = Asker {
                name: from,
                authid: &member.authid,
                authrole: &member.authrole,
            };
            let subject = (action, uri, policy);
            let decision = self
                .decisions
                .ask(self.now_ms, &asker, authorizer, subject)?;
            let disclose = Disclose {
                caller: decision.disclose,
                publisher: decision.disclose,
                callee: decision.disclose,
            };
            return Ok((disclose, decision.trustlevel.or(role.trustlevel)));
        }
        let permission = match role.role_match {
            RoleMatch::Specific => Self::permission(role, action, uri, policy),
            RoleMatch::Crossbar => crossbar_permission(role, uri),
        };
        let allowed = permission.filter(|permission| allows(permission, action));
        let permission = allowed.ok_or(error::NOT_AUTHORIZED)?;
        Ok((
            permission.disclose,
            permission.trustlevel.or(role.trustlevel),
        ))
    }

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

    /// The permission that decides, unless a part of the pattern's reach is forbidden.
    fn permission<'r>(
        role: &'r Role,
        action: Action,
        uri: &str,
        policy: MatchPolicy,
    ) -> Option<&'r Permission> {
        let permissions = &role.permissions;
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
        let deciding = exact.or(wildcard).or(prefix)?;
        let forbidden_within = || {
            let reached = example_uris(uri, policy);
            permissions.iter().any(|permission| {
                let is_broader = permission.match_policy == MatchPolicy::Prefix
                    && beginning(uri, policy).starts_with(&permission.uri);
                let matches = |uri: &String| matches(permission.match_policy, &permission.uri, uri);
                !is_broader && !allows(permission, action) && reached.iter().any(matches)
            })
        };
        let is_whole = policy == MatchPolicy::Exact || !forbidden_within();
        is_whole.then_some(deciding)
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

/// The permission that Crossbar.io finds.
fn crossbar_permission<'r>(role: &'r Role, uri: &str) -> Option<&'r Permission> {
    let (wild, plain): (Vec<_>, Vec<_>) = role
        .permissions
        .iter()
        .partition(|permission| permission.uri.contains(".."));
    let beginning = |permission: &Permission| {
        let end = permission.uri.find("..").unwrap_or(permission.uri.len());
        permission.uri[..end].to_owned()
    };
    let longest = |of: Vec<&'r Permission>| {
        let begins = of
            .into_iter()
            .filter(|permission| uri.starts_with(&beginning(permission)));
        begins.max_by_key(|permission| beginning(permission).len())
    };
    let plain = longest(plain).filter(|permission| {
        permission.match_policy == MatchPolicy::Prefix || permission.uri == uri
    });
    if plain.is_some_and(|permission| permission.match_policy == MatchPolicy::Exact) {
        return plain;
    }
    let wild = longest(wild).filter(|permission| !beginning(permission).is_empty());
    let has_all = !uri.split('.').any(str::is_empty);
    let wild = wild.filter(|permission| {
        let (policy, pattern) = (permission.match_policy, &permission.uri);
        has_all && matches(policy, pattern, uri)
    });
    wild.or(plain)
}

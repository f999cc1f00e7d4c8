//! Realms, roles and permissions.

use crosstie_routing::{Authorizer, CacheOptions, CacheScope, Resumption, WILDCARD_COMPONENTS_MAX};

use super::session_limits::{realm_limits, session_limits};
use super::{Builder, Names};
use crate::model::{Allow, Disclose, MatchPolicy, Permission, Realm, Role, RoleMatch};
use crate::plain::{Plain, Section, Word};
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    pub(super) fn realms(&mut self, worker: View<'_>) -> Vec<Realm> {
        let mut names = Names::new("the realm", "");
        let given = worker
            .objects("realms")
            .flat_map(|realm| realm.objects("rlinks"));
        self.rlink_ids = Names::new("the link id", "rlink").of(given);
        let realms = worker.objects("realms");
        let realms = realms.map(|realm| {
            let name = realm.text("name").unwrap_or_default();
            names.take(name, realm.span_of("name"), self.problems);
            self.realm(realm)
        });
        realms.collect()
    }

    pub(crate) fn realm(&mut self, realm: View<'_>) -> Realm {
        let options = realm.section("options");
        let meta_api = options.boolean("enable_meta_api");
        if options.boolean("bridge_meta_api") && !meta_api {
            self.note_without_effect(
                options,
                "bridge_meta_api",
                "where \"enable_meta_api\" is false",
            );
        }
        let roles = self.roles(realm);
        Realm {
            name: realm.text("name").unwrap_or_default().to_owned(),
            is_meta_api_bridged: meta_api && options.boolean("bridge_meta_api"),
            is_call_timeout_unit_given: options.given("call_timeout_unit").is_some(),
            fabric: realm.object("fabric").map(|fabric| self.fabric(fabric)),
            history: self.history(realm),
            event_store: self.event_store(realm),
            mqtt_store: self.mqtt_store(realm),
            retention: self.retention(realm),
            call_queues: self.call_queues(realm),
            resumption: self.resumption(realm),
            limits: realm_limits(realm.section("limits")),
            rlinks: self.rlinks(realm, &roles),
            roles,
            ..Realm::read(options)
        }
    }

    /// Session resumption. A realm on several nodes cannot have it: a session's state is on one node, and its client
    /// may return to another.
    fn resumption(&mut self, realm: View<'_>) -> Option<Resumption> {
        let object = realm.object("resumption")?;
        if realm.object("fabric").is_some() {
            let text = "sessions of a realm on several nodes are not resumed: what waits for one is on its node";
            self.error(realm, "resumption", text);
        }
        Some(Resumption::read(object))
    }

    fn roles(&mut self, realm: View<'_>) -> Vec<Role> {
        let mut names = Names::new("the role", "");
        let roles = realm.objects("roles");
        let roles = roles.map(|role| {
            let name = role.text("name").unwrap_or_default();
            names.take(name, role.span_of("name"), self.problems);
            self.role(role)
        });
        roles.collect()
    }

    pub(crate) fn role(&mut self, role: View<'_>) -> Role {
        let name = role.text("name").unwrap_or_default();
        let others = ["permissions", "authorizer"];
        let decides = others.into_iter().find(|key| role.given(key).is_some());
        if others.into_iter().all(|key| role.given(key).is_some()) {
            let message = "a role has \"permissions\" or an \"authorizer\", not both";
            self.error(role, "authorizer", message);
        }
        if role.boolean("allow-by-default") {
            let Some(decides) = decides else {
                return Role {
                    limits: session_limits(role.section("limits")),
                    trustlevel: trustlevel(role),
                    may_forward: role.boolean("forward_for"),
                    ..Role::everything(name)
                };
            };
            self.note_without_effect(
                role,
                "allow-by-default",
                &format!("in a role with {decides:?}"),
            );
        }
        let authorizer = role.text("authorizer").map(|uri| authorizer(role, uri));
        for key in AUTHORIZER_KEYS {
            if authorizer.is_none() && role.given(key).is_some() {
                self.note_without_effect(role, key, "without \"authorizer\"");
            }
        }
        Role {
            role_match: RoleMatch::read(role, "role_match"),
            authorizer,
            limits: session_limits(role.section("limits")),
            trustlevel: trustlevel(role),
            may_forward: role.boolean("forward_for"),
            ..Role::new(name, self.permissions(role))
        }
    }

    fn note_without_effect(&mut self, role: View<'_>, key: &str, why: &str) {
        let message = format!("{} has no effect {why}", quoted(key));
        self.warn(role, key, message);
    }

    /// As in Crossbar.io, a permission replaces an earlier one for the same pattern; Crosstie warns of it.
    fn permissions(&mut self, role: View<'_>) -> Vec<Permission> {
        let mut permissions: Vec<Permission> = Vec::new();
        for object in role.objects("permissions") {
            let permission = self.permission(object);
            let same = permissions.iter_mut().find(|earlier| {
                (&earlier.uri, earlier.match_policy) == (&permission.uri, permission.match_policy)
            });
            match same {
                None => permissions.push(permission),
                Some(earlier) => {
                    let message = format!(
                        "the permission for {} replaces an earlier one for the same pattern",
                        quoted(object.text("uri").unwrap_or_default())
                    );
                    self.warn(object, "uri", message);
                    *earlier = permission;
                }
            }
        }
        permissions
    }

    fn permission(&mut self, object: View<'_>) -> Permission {
        let written = object.text("uri").unwrap_or_default();
        let given = object.text("match").and_then(MatchPolicy::of);
        let (uri, match_policy) = match given {
            Some(policy) => (written.to_owned(), policy),
            None => unstarred(written),
        };
        let at = object.span_of("uri");
        if given.is_some() && uri.contains('*') {
            let message = format!(
                "the star in {} stands for itself, because \"match\" is given",
                quoted(&uri)
            );
            self.problems.push(Problem::warning(at, message));
        }
        if uri.is_empty() && match_policy == MatchPolicy::Exact {
            let message = "the empty URI matches nothing; \"*\" matches every URI".into();
            self.problems.push(Problem::warning(at, message));
        }
        if match_policy == MatchPolicy::Wildcard
            && uri.split('.').nth(WILDCARD_COMPONENTS_MAX).is_some()
        {
            let message =
                format!("a wildcard pattern may have {WILDCARD_COMPONENTS_MAX} components");
            self.problems.push(Problem::error(at, message));
        }
        Permission {
            uri,
            match_policy,
            allow: Allow::read(object.section("allow")),
            disclose: Disclose::read(object.section("disclose")),
            cache: object.boolean("cache"),
            trustlevel: trustlevel(object),
        }
    }
}

/// The trust level of a role or a permission.
fn trustlevel(object: View<'_>) -> Option<u16> {
    Option::read(object, "trustlevel")
}

const AUTHORIZER_KEYS: [&str; 5] = [
    "authorizer_timeout_ms",
    "authorizer_cache",
    "authorizer_cache_ms",
    "authorizer_cache_entries_max",
    "authorizer_cache_bytes_max",
];

fn authorizer(role: View<'_>, procedure: &str) -> Authorizer {
    Authorizer {
        procedure: procedure.to_owned(),
        timeout_ms: u64::read(role, "authorizer_timeout_ms"),
        cache: CacheOptions {
            scope: CacheScope::read(role, "authorizer_cache"),
            expiry_ms: u64::read(role, "authorizer_cache_ms"),
            entries_max: usize::read(role, "authorizer_cache_entries_max"),
            bytes_max: usize::read(role, "authorizer_cache_bytes_max"),
        },
    }
}

/// Converts stars to WAMP's matching policies: one star at the end is a prefix, any others are wildcards.
fn unstarred(written: &str) -> (String, MatchPolicy) {
    if !written.contains('*') {
        return (written.to_owned(), MatchPolicy::Exact);
    }
    match written.strip_suffix('*') {
        Some(prefix) if !prefix.contains('*') => (prefix.to_owned(), MatchPolicy::Prefix),
        _ => (written.replace('*', ""), MatchPolicy::Wildcard),
    }
}

//! Realms, roles and permissions.

use crosstie_routing::{Authorizer, CacheOptions, CacheScope, Resumption, WILDCARD_COMPONENTS_MAX};

use super::session_limits::{realm_limits, session_limits};
use super::{Builder, Names, size};
use crate::model::{
    Allow, CallTimeoutUnit, CancelAnswers, Disclose, DiscloseMe, EmptyEligible, LoneSurrogates,
    MatchPolicy, OnLeave, Permission, Realm, RequestIdCheck, Role, RoleMatch, UnreadableValues,
    UriCheck,
};
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
            uri_check: match options.text("uri_check") {
                Some("strict") => UriCheck::Strict,
                _ => UriCheck::Loose,
            },
            request_id_check: match options.text("request_id_check") {
                Some("strict") => RequestIdCheck::Strict,
                _ => RequestIdCheck::Loose,
            },
            disclose_me: match options.text("disclose_me") {
                Some("refuse") => DiscloseMe::Refuse,
                _ => DiscloseMe::Allow,
            },
            call_timeout_unit: match options.text("call_timeout_unit") {
                Some("seconds") => CallTimeoutUnit::Seconds,
                _ => CallTimeoutUnit::Milliseconds,
            },
            lone_surrogates: match options.text("lone_surrogates") {
                Some("refuse") => LoneSurrogates::Refuse,
                _ => LoneSurrogates::Replace,
            },
            unreadable_values: match options.text("unreadable_values") {
                Some("convert") => UnreadableValues::Convert,
                Some("pass") => UnreadableValues::Pass,
                _ => UnreadableValues::Refuse,
            },
            empty_eligible: match options.text("empty_eligible") {
                Some("everybody") => EmptyEligible::Everybody,
                _ => EmptyEligible::Nobody,
            },
            cancel_answers: match options.text("cancel_answers") {
                Some("always") => CancelAnswers::Always,
                Some("kill_only") => CancelAnswers::KillOnly,
                _ => CancelAnswers::ByClient,
            },
            on_leave: match options.text("on_leave") {
                Some("specified") => OnLeave::Specified,
                _ => OnLeave::Crossbar,
            },
            discloses_router: options.boolean("disclose_router"),
            meta_api,
            is_meta_api_bridged: meta_api && options.boolean("bridge_meta_api"),
            is_call_timeout_unit_given: options.given("call_timeout_unit").is_some(),
            fabric: realm.object("fabric").map(|fabric| self.fabric(fabric)),
            history: self.history(realm),
            event_store: self.event_store(realm),
            retention: self.retention(realm),
            call_queues: self.call_queues(realm),
            resumption: self.resumption(realm),
            limits: realm_limits(realm.section("limits")),
            rlinks: self.rlinks(realm, &roles),
            roles,
        }
    }

    /// What a session holds is on one node, and its client may come back to any.
    fn resumption(&mut self, realm: View<'_>) -> Option<Resumption> {
        let object = realm.object("resumption")?;
        if realm.object("fabric").is_some() {
            let text = "sessions of a realm on several nodes are not resumed: what waits for one is on its node";
            let at = realm.span_of("resumption");
            self.problems.push(Problem::error(at, text.to_owned()));
        }
        let window_ms = object.integer("window_ms").unwrap_or(0);
        Some(Resumption {
            window_ms: u64::try_from(window_ms).unwrap_or(0),
            sessions_max: size(object.integer("sessions_max").unwrap_or(0)),
        })
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
            let message = "a role has \"permissions\" or an \"authorizer\", not both".into();
            let at = role.span_of("authorizer");
            self.problems.push(Problem::error(at, message));
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
            role_match: match role.text("role_match") {
                Some("crossbar") => RoleMatch::Crossbar,
                _ => RoleMatch::Specific,
            },
            authorizer,
            limits: session_limits(role.section("limits")),
            trustlevel: trustlevel(role),
            may_forward: role.boolean("forward_for"),
            ..Role::new(name, self.permissions(role))
        }
    }

    fn note_without_effect(&mut self, role: View<'_>, key: &str, why: &str) {
        let message = format!("{} has no effect {why}", quoted(key));
        let at = role.span_of(key);
        self.problems.push(Problem::warning(at, message));
    }

    /// Crossbar.io lets a permission replace an earlier one for the same pattern; so do we, and
    /// say so.
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
                    let at = object.span_of("uri");
                    self.problems.push(Problem::warning(at, message));
                    *earlier = permission;
                }
            }
        }
        permissions
    }

    fn permission(&mut self, object: View<'_>) -> Permission {
        let written = object.text("uri").unwrap_or_default();
        let given = match object.text("match") {
            Some("prefix") => Some(MatchPolicy::Prefix),
            Some("wildcard") => Some(MatchPolicy::Wildcard),
            Some(_) => Some(MatchPolicy::Exact),
            None => None,
        };
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
        let allow = object.section("allow");
        let disclose = object.section("disclose");
        Permission {
            uri,
            match_policy,
            allow: Allow {
                call: allow.boolean("call"),
                register: allow.boolean("register"),
                publish: allow.boolean("publish"),
                subscribe: allow.boolean("subscribe"),
            },
            disclose: Disclose {
                caller: disclose.boolean("caller"),
                publisher: disclose.boolean("publisher"),
                callee: disclose.boolean("callee"),
            },
            cache: object.boolean("cache"),
            trustlevel: trustlevel(object),
        }
    }
}

/// That of a role or a permission. The catalogue bounds it.
fn trustlevel(object: View<'_>) -> Option<u16> {
    let given = object.integer("trustlevel");
    given.and_then(|level| u16::try_from(level).ok())
}

const AUTHORIZER_KEYS: [&str; 5] = [
    "authorizer_timeout_ms",
    "authorizer_cache",
    "authorizer_cache_ms",
    "authorizer_cache_entries_max",
    "authorizer_cache_bytes_max",
];

fn authorizer(role: View<'_>, procedure: &str) -> Authorizer {
    let number = |key| {
        let number = role.integer(key);
        number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
    };
    let bound = |key| role.integer(key).map_or(0, size);
    Authorizer {
        procedure: procedure.to_owned(),
        timeout_ms: number("authorizer_timeout_ms"),
        cache: CacheOptions {
            scope: match role.text("authorizer_cache") {
                Some("authid") => CacheScope::Authid,
                Some("session") => CacheScope::Session,
                Some("uri") => CacheScope::Uri,
                _ => CacheScope::Role,
            },
            expiry_ms: number("authorizer_cache_ms"),
            entries_max: bound("authorizer_cache_entries_max"),
            bytes_max: bound("authorizer_cache_bytes_max"),
        },
    }
}

/// The starred form in WAMP's own: one star at the end is a prefix, any others are wildcards.
fn unstarred(written: &str) -> (String, MatchPolicy) {
    if !written.contains('*') {
        return (written.to_owned(), MatchPolicy::Exact);
    }
    match written.strip_suffix('*') {
        Some(prefix) if !prefix.contains('*') => (prefix.to_owned(), MatchPolicy::Prefix),
        _ => (written.replace('*', ""), MatchPolicy::Wildcard),
    }
}

//! Roles and permissions: what a session may do with which URI.
//!
//! The form is that of Crossbar.io's static permissions, whose files load unchanged. Of several permissions that match
//! a URI one alone decides: the exact one, else the best wildcard, else the longest prefix. A URI without a match is
//! forbidden. A role may use Crossbar.io's look-up order instead, or an authorizer: a procedure that decides.

mod authorizer;
mod cache;
mod caches;
mod crossbar_order;
mod figures;
mod levels;
mod permission;
mod question;
mod role;
mod role_limits;
mod verdict;

pub(crate) use self::authorizer::Judged;
pub use self::caches::Decisions;
pub use self::permission::{Action, Allow, Disclose, Permission};
pub(crate) use self::question::{Asker, Subject};
pub use self::question::{Authorizer, CacheOptions, CacheScope, Question};
pub use self::role::{Role, RoleMatch};
pub use self::role_limits::{RoleLimit, RoleLimits, SlowConsumer};
pub use self::verdict::{Decision, RefusalCause, Verdict};

use std::sync::Arc;

use crosstie_collections::Histogram;
use crosstie_wamp::MatchPolicy;
use slab::Slab;

use self::authorizer::Asked;
use self::cache::Cache;
use self::caches::Caches;
use self::crossbar_order::CrossbarOrder;
use self::levels::Levels;
use self::permission::Grant;
use self::question::Given;
use self::role_limits::Limited;
use crate::Time;
use crate::identity::Identity;
use crate::join_error::JoinError;
use crate::overlap::{common_beginning, overlap};
use crate::pattern::PatternMap;
use crate::random::Random;
use crate::session::Sessions;

/// The index of a session's role. The slot of a stopped role is reused only after its last session has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleIndex(u32);

/// All roles of a realm, prepared for look-ups.
#[derive(Debug)]
pub(crate) struct Roles {
    rules: Slab<Rules>,
    /// Bounds of the realm that hold for all roles.
    everybody: Option<Box<Limited>>,
    /// The authorizer's answer about the present message.
    given: Option<Box<Given>>,
    /// Cached decisions of authorizers.
    caches: Caches,
    /// Whether a role or an authorizer gives trust levels. Never reset.
    give_trustlevels: bool,
}

#[derive(Debug)]
struct Rules {
    name: Box<str>,
    /// Stopped: no session joins with it any more.
    is_stopped: bool,
    /// Number of sessions with the role.
    sessions: usize,
    /// Number of sessions that left with the role and have testaments to be published.
    keepers: usize,
    /// Removed: kept only for those sessions and testaments.
    is_over: bool,
    /// The only permission, if it is for every URI: the answer needs no look-up.
    universal: Option<Grant>,
    by_uri: PatternMap<Grant>,
    /// The same permissions, in a list that is walked for the patterns that clients request.
    permissions: Vec<Permission>,
    /// The rule that applies if no permission decides.
    otherwise: Option<Otherwise>,
    limited: Option<Box<Limited>>,
    /// The trust level if the deciding permission has none.
    trustlevel: Option<u16>,
    levels: Option<Box<Levels>>,
    may_forward: bool,
    /// Microseconds from a CALL of the role to its answer.
    answered: Histogram,
}

/// A rule beside the permissions.
#[derive(Debug)]
enum Otherwise {
    Crossbar(Box<CrossbarOrder>),
    Asked(Box<Asked>),
}

impl Roles {
    pub(crate) fn new(roles: &[Role], everybody: RoleLimits, random: &mut Random) -> Self {
        let mut all = Self {
            rules: Slab::with_capacity(roles.len()),
            everybody: Limited::of(everybody, random),
            given: None,
            caches: Caches::default(),
            give_trustlevels: false,
        };
        for role in roles {
            all.insert(role, random);
        }
        all
    }

    pub(crate) fn insert(&mut self, role: &Role, random: &mut Random) {
        let rules = Rules::new(role, &mut self.caches, random);
        self.give_trustlevels |= role.gives_trustlevels();
        self.rules.insert(rules);
    }

    /// Gives a role that was found by name other rules. Its sessions keep it, and its cached decisions are forgotten.
    pub(crate) fn change<H>(
        &mut self,
        index: RoleIndex,
        role: &Role,
        sessions: &Sessions<H>,
        random: &mut Random,
    ) {
        // First, so that the roles of one authorizer go on sharing their cache.
        let mut rules = Rules::new(role, &mut self.caches, random);
        self.give_trustlevels |= role.gives_trustlevels();
        let former = &self.rules[index.0 as usize];
        (rules.sessions, rules.keepers) = (former.sessions, former.keepers);
        rules.answered = former.answered;
        if let Some(limited) = rules
            .limited
            .as_mut()
            .filter(|limited| limited.counted().is_some())
        {
            let of_role = sessions.joined().filter(|(_, s)| s.role == index);
            of_role.for_each(|(_, session)| limited.joined(&session.identity.authid));
        }
        let former = std::mem::replace(&mut self.rules[index.0 as usize], rules);
        if let Some(Otherwise::Asked(asked)) = former.otherwise {
            self.caches.end(asked.cache);
        }
    }

    /// Stops a role: it is not found by name any more. Sessions that have it keep it.
    pub(crate) fn stop(&mut self, role: RoleIndex) {
        self.rules[role.0 as usize].is_stopped = true;
    }

    /// Forgets a role without sessions, now or when its last testament is published.
    pub(crate) fn remove(&mut self, role: RoleIndex) {
        match self.rules[role.0 as usize].keepers {
            0 => self.forget(role),
            _ => self.rules[role.0 as usize].is_over = true,
        }
    }

    /// Keeps the role, even if it is removed, until it is released.
    pub(crate) fn keep(&mut self, role: RoleIndex) {
        self.rules[role.0 as usize].keepers += 1;
    }

    /// Releases a role that was kept.
    pub(crate) fn release(&mut self, role: RoleIndex) {
        let rules = &mut self.rules[role.0 as usize];
        rules.keepers -= 1;
        if rules.keepers == 0 && rules.is_over {
            self.forget(role);
        }
    }

    fn forget(&mut self, role: RoleIndex) {
        let rules = self.rules.remove(role.0 as usize);
        if let Some(Otherwise::Asked(asked)) = rules.otherwise {
            self.caches.end(asked.cache);
        }
    }

    /// Counts a session that joined with the role.
    pub(crate) fn joined(&mut self, role: RoleIndex, identity: &Identity) {
        let rules = &mut self.rules[role.0 as usize];
        rules.sessions += 1;
        if let Some(limited) = &mut rules.limited {
            limited.joined(&identity.authid);
        }
        if let Some(everybody) = &mut self.everybody {
            everybody.joined(&identity.authid);
        }
    }

    /// Counts a session with the role that has left.
    pub(crate) fn left(&mut self, role: RoleIndex, identity: &Identity) {
        let rules = &mut self.rules[role.0 as usize];
        rules.sessions -= 1;
        if let Some(limited) = &mut rules.limited {
            limited.left(&identity.authid);
        }
        if let Some(everybody) = &mut self.everybody {
            everybody.left(&identity.authid);
        }
    }

    /// Whether one more session may join with the role.
    pub(crate) fn check_room(&self, role: RoleIndex, who: &Identity) -> Result<(), JoinError> {
        let rules = &self.rules[role.0 as usize];
        let limits = [&rules.limited, &self.everybody];
        let mut limits = limits.into_iter().flatten();
        limits.try_for_each(|limited| limited.check_room(rules.sessions, who))
    }

    /// The bounds of a role, combined with those of the realm.
    pub(crate) fn limits(&self, role: RoleIndex) -> RoleLimits {
        let limits = |limited: &Option<Box<Limited>>| {
            let limited = limited.as_ref();
            limited.map(|limited| limited.limits).unwrap_or_default()
        };
        limits(&self.rules[role.0 as usize].limited).least(limits(&self.everybody))
    }

    /// Asserts that the session counts are right. Walks everything.
    pub(crate) fn check_invariants<H>(&self, sessions: &Sessions<H>) {
        for (index, rules) in &self.rules {
            let role = RoleIndex(index as u32);
            let of_role = sessions.joined().filter(|(_, s)| s.role == role);
            assert_eq!(of_role.count(), rules.sessions, "{}", rules.name);
            if let Some(counted) = rules.limited.as_ref().and_then(|limited| limited.counted()) {
                assert_eq!(counted, rules.sessions, "{}", rules.name);
            }
            let keepers = sessions
                .iter()
                .filter(|(_, s)| s.role == role && s.keeps_role());
            assert_eq!(keepers.count(), rules.keepers, "{}", rules.name);
        }
        let roles = self.rules.iter().map(|(_, rules)| rules);
        let caches = roles.filter_map(|rules| rules.asked().map(|asked| asked.cache));
        self.caches.check_invariants(&caches.collect::<Vec<_>>());
    }

    pub(crate) fn find(&self, name: &str) -> Option<RoleIndex> {
        let is_meant = |rules: &Rules| &*rules.name == name && !rules.is_stopped;
        let (index, _) = self.rules.iter().find(|(_, rules)| is_meant(rules))?;
        Some(RoleIndex(index as u32))
    }

    /// Returns the grant if `role` may do `action` with `uri`, a pattern unless `policy` is exact; the grant tells
    /// whether the permission discloses the session.
    ///
    /// A pattern reaches more URIs than its own text, so that a permission of a narrower kind does not cover it: an
    /// exact permission on `com.app` does not allow a subscription to all topics that begin with `com.app`. The pattern
    /// is also refused if another permission forbids a part of it.
    // Inlined up to the look-up: `action` and `policy` are constants at its call sites.
    #[inline(always)]
    pub(crate) fn judge(
        &self,
        role: RoleIndex,
        action: Action,
        uri: &str,
        policy: MatchPolicy,
    ) -> Option<Disclose> {
        let rules = &self.rules[role.0 as usize];
        match &rules.universal {
            // No other permission could forbid a part of it.
            Some(grant) => action.is_in(grant.allow).then_some(grant.disclose),
            None => rules.judge(action, uri, policy),
        }
    }

    /// The same for an action that [`Roles::judge`] does not allow: the role may have another rule.
    #[inline(never)]
    pub(crate) fn judge_otherwise(
        &mut self,
        now: Time,
        role: RoleIndex,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
    ) -> Judged {
        let rules = &mut self.rules[role.0 as usize];
        match rules.otherwise.as_mut() {
            None => Judged::Refused(RefusalCause::Permissions),
            Some(Otherwise::Crossbar(order)) => match order.grant(subject.uri) {
                Some(grant) if subject.action.is_in(grant.allow) => Judged::Allowed(grant.disclose),
                _ => Judged::Refused(RefusalCause::Permissions),
            },
            Some(Otherwise::Asked(asked)) => {
                let given = self.given.as_deref();
                asked.judge(now, asker, subject, given, &mut self.caches)
            }
        }
    }

    /// Whether a role may do something, as far as that is known without asking its authorizer.
    pub(crate) fn may(
        &self,
        now: Time,
        role: RoleIndex,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
    ) -> bool {
        let Subject {
            action,
            uri,
            match_policy,
        } = *subject;
        if self.judge(role, action, uri, match_policy).is_some() {
            return true;
        }
        match &self.rules[role.0 as usize].otherwise {
            None => false,
            Some(Otherwise::Crossbar(order)) => order
                .grant(uri)
                .is_some_and(|grant| action.is_in(grant.allow)),
            Some(Otherwise::Asked(asked)) => {
                let given = self.given.as_deref();
                let decision = asked.decision(now, asker, subject, given, &self.caches);
                decision.is_some_and(|decision| decision.allow)
            }
        }
    }

    /// Whether any trust levels are given.
    #[inline]
    pub(crate) fn give_trustlevels(&self) -> bool {
        self.give_trustlevels
    }

    /// The trust level of a session's action, if the action is allowed and the level is given.
    pub(crate) fn trustlevel(
        &mut self,
        now: Time,
        role: RoleIndex,
        asker: &Asker<'_>,
        subject: &Subject<'_>,
    ) -> Option<u16> {
        let rules = &mut self.rules[role.0 as usize];
        let of_action = match rules.otherwise.as_mut() {
            None => rules
                .levels
                .as_ref()
                .and_then(|levels| levels.of(subject.uri)),
            Some(Otherwise::Crossbar(order)) => order.trustlevel(subject.uri),
            Some(Otherwise::Asked(asked)) => {
                let given = self.given.as_deref();
                let decision = asked.decision(now, asker, subject, given, &self.caches);
                decision.and_then(|decision| decision.trustlevel)
            }
        };
        of_action.or(rules.trustlevel)
    }

    /// Whether sessions of a role may set `forward_for`.
    pub(crate) fn may_forward(&self, role: RoleIndex) -> bool {
        self.rules[role.0 as usize].may_forward
    }

    /// Sets the answer to a question while a message is handled.
    pub(crate) fn give(&mut self, question: Question, verdict: Verdict) {
        if let Verdict::Decided(decision) = &verdict {
            self.give_trustlevels |= decision.trustlevel.is_some();
        }
        self.given = Some(Box::new(Given { question, verdict }));
    }

    /// Clears it: the message has been handled.
    pub(crate) fn take_given(&mut self) {
        self.given = None;
    }

    /// The authorizer's procedure, if the role has one.
    pub(crate) fn authorizer(&self, role: RoleIndex) -> Option<&Arc<str>> {
        let asked = self.rules[role.0 as usize].asked()?;
        Some(&asked.procedure)
    }

    /// Invalidates cached decisions: of a role or all, for a URI or all, for an authid or all. Returns how many were
    /// removed and how many were examined; `None` if no role of that name has an authorizer.
    pub(crate) fn forget_decisions(
        &mut self,
        role: Option<&str>,
        uri: Option<&str>,
        authid: Option<&str>,
    ) -> Option<(usize, usize)> {
        let mut found = role.is_none().then_some((0, 0));
        for (_, rules) in &self.rules {
            if role.is_none_or(|name| &*rules.name == name)
                && let Some(asked) = rules.asked()
            {
                let (forgotten, seen) = found.get_or_insert_default();
                *seen += self.caches.len(asked.cache);
                let forget = |cache: &mut Cache| cache.forget(uri, authid);
                *forgotten += self.caches.change(asked.cache, forget);
            }
        }
        found
    }

    /// Counts of cached decisions.
    pub(crate) fn decisions(&self) -> Decisions {
        self.caches.decisions()
    }

    /// Approximate bytes of cached decisions.
    pub(crate) fn decision_bytes(&self) -> usize {
        self.caches.bytes()
    }
}

impl Rules {
    fn new(role: &Role, caches: &mut Caches, random: &mut Random) -> Self {
        let mut by_uri = PatternMap::new(random.hash_keys());
        let otherwise = match (&role.authorizer, role.role_match) {
            (Some(authorizer), _) => {
                let asked = Asked::new(authorizer, caches, random);
                Some(Otherwise::Asked(Box::new(asked)))
            }
            (None, RoleMatch::Crossbar) => {
                let order = CrossbarOrder::new(&role.permissions, random);
                Some(Otherwise::Crossbar(Box::new(order)))
            }
            (None, RoleMatch::Specific) => None,
        };
        let permissions = match otherwise {
            Some(_) => &[][..],
            None => &role.permissions,
        };
        for permission in permissions {
            by_uri.insert(
                permission.match_policy,
                permission.uri.as_str().into(),
                Grant::of(permission),
            );
        }
        let universal = match by_uri.len() {
            1 => by_uri.value(MatchPolicy::Prefix, ""),
            _ => None,
        };
        Self {
            name: role.name.as_str().into(),
            is_stopped: false,
            sessions: 0,
            keepers: 0,
            is_over: false,
            universal,
            by_uri,
            permissions: permissions.to_vec(),
            otherwise,
            limited: Limited::of(role.limits, random),
            trustlevel: role.trustlevel,
            levels: Levels::of_permissions(permissions, random),
            may_forward: role.may_forward,
            answered: Histogram::default(),
        }
    }

    /// The authorizer, if the role has one.
    fn asked(&self) -> Option<&Asked> {
        match self.otherwise.as_ref()? {
            Otherwise::Asked(asked) => Some(asked),
            Otherwise::Crossbar(_) => None,
        }
    }

    /// [`Roles::judge`] for a URI that has to be looked up.
    #[inline(never)]
    fn judge(&self, action: Action, uri: &str, policy: MatchPolicy) -> Option<Disclose> {
        let grant = self.grant(uri, policy)?;
        let allowed = action.is_in(grant.allow)
            && (policy == MatchPolicy::Exact || !self.forbids_part(action, uri, policy));
        allowed.then_some(grant.disclose)
    }

    /// Whether a permission for some of the URIs that `pattern` matches does not allow `action`. Broader prefixes are
    /// left out: the permission that decides about the pattern itself precedes them.
    fn forbids_part(&self, action: Action, pattern: &str, policy: MatchPolicy) -> bool {
        let beginning = common_beginning(policy, pattern);
        self.permissions.iter().any(|permission| {
            let kind = permission.match_policy;
            let is_broader = kind == MatchPolicy::Prefix && beginning.starts_with(&permission.uri);
            !is_broader
                && !action.is_in(permission.allow)
                && overlap((kind, &permission.uri), (policy, pattern))
        })
    }

    fn grant(&self, uri: &str, policy: MatchPolicy) -> Option<Grant> {
        let covers = |grant: &Grant| match policy {
            MatchPolicy::Exact => true,
            MatchPolicy::Prefix => grant.match_policy == MatchPolicy::Prefix,
            MatchPolicy::Wildcard => grant.match_policy != MatchPolicy::Exact,
        };
        self.by_uri
            .exact(uri)
            .filter(covers)
            .or_else(|| self.by_uri.best_wildcard(uri, &mut 0).filter(covers))
            .or_else(|| self.by_uri.longest_prefix(uri))
    }
}

//! Roles and permissions: what a session may do with which URI.
//!
//! The form is that of Crossbar.io's static permissions, whose files load unchanged. Of several
//! permissions that match a URI one alone decides: the exact one, else the best wildcard, else
//! the longest prefix. What none matches is forbidden.

use crosstie_wamp::MatchPolicy;
use slab::Slab;

use crate::overlap::{common_beginning, overlap};
use crate::pattern::PatternMap;
use crate::random::Random;
use crate::session::Sessions;

/// A role of a realm (`realms[].roles[]` of the configuration).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    pub permissions: Vec<Permission>,
}

impl Role {
    /// The role that every realm has, configured or not, as in Crossbar.io.
    pub const TRUSTED: &str = "trusted";

    /// A role that may do everything, and is always disclosed.
    pub(crate) fn trusted() -> Self {
        let mut role = Self::everything(Self::TRUSTED);
        for permission in &mut role.permissions {
            permission.disclose.caller = true;
            permission.disclose.publisher = true;
        }
        role
    }

    /// A role that may do everything, and whose disclosure is left to itself.
    pub fn everything(name: &str) -> Self {
        let allow = Allow {
            call: true,
            register: true,
            publish: true,
            subscribe: true,
        };
        Self {
            name: name.to_owned(),
            permissions: vec![Permission {
                uri: String::new(),
                match_policy: MatchPolicy::Prefix,
                allow,
                disclose: Disclose::default(),
                cache: true,
            }],
        }
    }
}

/// What is allowed on the URIs that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    pub uri: String,
    pub match_policy: MatchPolicy,
    pub allow: Allow,
    pub disclose: Disclose,
    /// Whether the decision may be kept. A static one always is; kept for the configuration.
    pub cache: bool,
}

/// The four actions, each allowed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    pub call: bool,
    pub register: bool,
    pub publish: bool,
    pub subscribe: bool,
}

/// Whose identity is disclosed whether they ask for it or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disclose {
    pub caller: bool,
    pub publisher: bool,
    /// Whoever registers is disclosed to those whom it answers.
    pub callee: bool,
}

/// What a session wants to do with a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Call,
    Register,
    Publish,
    Subscribe,
}

impl Action {
    /// As it is called in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Register => "register",
            Self::Publish => "publish",
            Self::Subscribe => "subscribe",
        }
    }

    /// What is done, in front of the URI.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Call => "call procedure",
            Self::Register => "register procedure",
            Self::Publish => "publish to topic",
            Self::Subscribe => "subscribe to topic",
        }
    }

    fn is_in(self, allow: Allow) -> bool {
        match self {
            Self::Call => allow.call,
            Self::Register => allow.register,
            Self::Publish => allow.publish,
            Self::Subscribe => allow.subscribe,
        }
    }
}

/// The role of a session, by its place among the roles. The place of a role that ended is taken
/// by another one only when no session has it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleIndex(u32);

/// All roles of a realm, made ready for questions.
#[derive(Debug)]
pub(crate) struct Roles(Slab<Rules>);

#[derive(Debug)]
struct Rules {
    name: Box<str>,
    /// Nobody joins with it any more.
    is_stopped: bool,
    /// How many sessions have the role.
    sessions: usize,
    /// How many have left with it whose testaments are to be published.
    keepers: usize,
    /// No session has it any more but these.
    is_over: bool,
    /// The only permission, when it is for every URI: the answer needs no look at the URI.
    universal: Option<Grant>,
    by_uri: PatternMap<Grant>,
    /// The same once more, to be walked for the patterns that clients ask for.
    permissions: Vec<Permission>,
}

/// What one permission says.
#[derive(Clone, Copy, Debug)]
struct Grant {
    allow: Allow,
    disclose: Disclose,
    match_policy: MatchPolicy,
}

impl Roles {
    pub(crate) fn new(roles: &[Role], random: &mut Random) -> Self {
        let mut rules = Slab::with_capacity(roles.len());
        for role in roles {
            rules.insert(Rules::new(role, random));
        }
        Self(rules)
    }

    pub(crate) fn insert(&mut self, role: &Role, random: &mut Random) {
        self.0.insert(Rules::new(role, random));
    }

    /// Has nobody find a role any more; sessions that have it keep it.
    pub(crate) fn stop(&mut self, role: RoleIndex) {
        self.0[role.0 as usize].is_stopped = true;
    }

    /// Forgets a role that no session has any more, now or when nobody needs to know of it.
    pub(crate) fn remove(&mut self, role: RoleIndex) {
        match self.0[role.0 as usize].keepers {
            0 => drop(self.0.remove(role.0 as usize)),
            _ => self.0[role.0 as usize].is_over = true,
        }
    }

    /// The role is needed after it was removed, if it is.
    pub(crate) fn keep(&mut self, role: RoleIndex) {
        self.0[role.0 as usize].keepers += 1;
    }

    /// The same is over.
    pub(crate) fn release(&mut self, role: RoleIndex) {
        let rules = &mut self.0[role.0 as usize];
        rules.keepers -= 1;
        if rules.keepers == 0 && rules.is_over {
            self.0.remove(role.0 as usize);
        }
    }

    /// A session that has the role has joined.
    pub(crate) fn joined(&mut self, role: RoleIndex) {
        self.0[role.0 as usize].sessions += 1;
    }

    /// A session that has the role has left.
    pub(crate) fn left(&mut self, role: RoleIndex) {
        self.0[role.0 as usize].sessions -= 1;
    }

    /// How many sessions have the role.
    pub(crate) fn sessions(&self, role: RoleIndex) -> usize {
        self.0[role.0 as usize].sessions
    }

    /// How many sessions have a role of one of those names.
    pub(crate) fn sessions_of(&self, names: &[&str]) -> usize {
        let meant = self.0.iter().filter(|(_, r)| names.contains(&&*r.name));
        meant.map(|(_, rules)| rules.sessions).sum()
    }

    /// Asserts that sessions are counted right. Walks everything.
    pub(crate) fn check_invariants<H>(&self, sessions: &Sessions<H>) {
        for (index, rules) in &self.0 {
            let role = RoleIndex(index as u32);
            let of_role = sessions.joined().filter(|(_, s)| s.role == role);
            assert_eq!(of_role.count(), rules.sessions, "{}", rules.name);
            let keepers = sessions
                .iter()
                .filter(|(_, s)| s.role == role && s.keeps_role());
            assert_eq!(keepers.count(), rules.keepers, "{}", rules.name);
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<RoleIndex> {
        let is_meant = |rules: &Rules| &*rules.name == name && !rules.is_stopped;
        let (index, _) = self.0.iter().find(|(_, rules)| is_meant(rules))?;
        Some(RoleIndex(index as u32))
    }

    /// Whether `role` may do `action` with `uri`, which is a pattern unless `policy` is exact;
    /// and if so, whether the permission discloses whoever does it.
    ///
    /// A pattern reaches more than itself, so that a permission of a narrower kind does not
    /// cover it: an exact permission on `com.app` is not one to subscribe to all that begins
    /// with `com.app`. Nor may a part of what it reaches be forbidden by a permission of its own.
    // Inlined up to the look-up: `action` and `policy` are constants where it is called.
    #[inline]
    pub(crate) fn judge(
        &self,
        role: RoleIndex,
        action: Action,
        uri: &str,
        policy: MatchPolicy,
    ) -> Option<Disclose> {
        let rules = &self.0[role.0 as usize];
        match &rules.universal {
            // It has no other permission beside it that could forbid a part.
            Some(grant) => action.is_in(grant.allow).then_some(grant.disclose),
            None => rules.judge(action, uri, policy),
        }
    }
}

impl Rules {
    fn new(role: &Role, random: &mut Random) -> Self {
        let mut by_uri = PatternMap::new(random.hash_keys());
        for permission in &role.permissions {
            let grant = Grant {
                allow: permission.allow,
                disclose: permission.disclose,
                match_policy: permission.match_policy,
            };
            by_uri.insert(
                permission.match_policy,
                permission.uri.as_str().into(),
                grant,
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
            permissions: role.permissions.clone(),
        }
    }

    /// The same as [`Roles::judge`], where the URI has to be looked up.
    #[inline(never)]
    fn judge(&self, action: Action, uri: &str, policy: MatchPolicy) -> Option<Disclose> {
        let grant = self.grant(uri, policy)?;
        let allowed = action.is_in(grant.allow)
            && (policy == MatchPolicy::Exact || !self.forbids_part(action, uri, policy));
        allowed.then_some(grant.disclose)
    }

    /// Whether a permission that decides about some of the URIs which `pattern` matches does not
    /// allow `action` there. Broader prefixes are left out: what decides about the pattern itself
    /// decides before them.
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

//! A role of a realm, as its operator describes it.

use crosstie_wamp::MatchPolicy;

use super::{Allow, Authorizer, Disclose, Permission, RoleLimits};

/// A role of a realm (`realms[].roles[]` of the configuration).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    pub permissions: Vec<Permission>,
    pub role_match: RoleMatch,
    /// If set, the authorizer decides, and the permissions do not apply.
    pub authorizer: Option<Authorizer>,
    pub limits: RoleLimits,
    /// Trust level of its sessions' calls and publications, unless a permission gives another.
    pub trustlevel: Option<u16>,
    /// Whether its sessions may set `forward_for` in publications and calls.
    pub may_forward: bool,
}

/// Which of several permissions that match a URI decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoleMatch {
    /// The exact one, else the best wildcard, else the longest prefix.
    #[default]
    Specific,
    /// The one that Crossbar.io finds.
    Crossbar,
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

    /// A role that may do everything, and chooses its own disclosure.
    pub fn everything(name: &str) -> Self {
        let allow = Allow {
            call: true,
            register: true,
            publish: true,
            subscribe: true,
        };
        let permission = Permission {
            uri: String::new(),
            match_policy: MatchPolicy::Prefix,
            allow,
            disclose: Disclose::default(),
            cache: true,
            trustlevel: None,
        };
        Self::new(name, vec![permission])
    }

    /// A role with these permissions.
    pub fn new(name: &str, permissions: Vec<Permission>) -> Self {
        Self {
            name: name.to_owned(),
            permissions,
            role_match: RoleMatch::default(),
            authorizer: None,
            limits: RoleLimits::default(),
            trustlevel: None,
            may_forward: true,
        }
    }

    /// Whether the role or a permission of it gives trust levels. An authorizer may give them, too.
    pub fn gives_trustlevels(&self) -> bool {
        let mut permissions = self.permissions.iter();
        self.trustlevel.is_some() || permissions.any(|permission| permission.trustlevel.is_some())
    }

    /// A role with an authorizer.
    pub fn asking(name: &str, authorizer: Authorizer) -> Self {
        Self {
            authorizer: Some(authorizer),
            ..Self::new(name, Vec::new())
        }
    }
}

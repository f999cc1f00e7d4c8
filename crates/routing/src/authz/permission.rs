//! The actions that permissions allow.

use crosstie_wamp::MatchPolicy;

/// The effect of a permission on the URIs that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    pub uri: String,
    pub match_policy: MatchPolicy,
    pub allow: Allow,
    pub disclose: Disclose,
    /// Whether the decision may be cached. A static one always may; kept for the configuration.
    pub cache: bool,
    /// Trust level of calls and publications, in place of the role's.
    pub trustlevel: Option<u16>,
}

/// The four actions, each allowed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    pub call: bool,
    pub register: bool,
    pub publish: bool,
    pub subscribe: bool,
}

/// Roles whose identity is disclosed without a request for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disclose {
    pub caller: bool,
    pub publisher: bool,
    /// The callee is disclosed to its callers.
    pub callee: bool,
}

crosstie_collections::named! {
    /// An action of a session on a URI.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Action {
        Call = "call",
        Register = "register",
        Publish = "publish",
        Subscribe = "subscribe",
    }
}

impl Action {
    /// The action as a phrase before the URI.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Call => "call procedure",
            Self::Register => "register procedure",
            Self::Publish => "publish to topic",
            Self::Subscribe => "subscribe to topic",
        }
    }

    /// The failed action as a phrase before the URI, in Crossbar.io's words.
    pub(crate) fn failure_phrase(self) -> &'static str {
        match self {
            Self::Call => "calling procedure",
            Self::Register => "registering procedure",
            Self::Publish => "publishing to topic URI",
            Self::Subscribe => "subscribing to topic URI",
        }
    }

    pub(super) fn is_in(self, allow: Allow) -> bool {
        match self {
            Self::Call => allow.call,
            Self::Register => allow.register,
            Self::Publish => allow.publish,
            Self::Subscribe => allow.subscribe,
        }
    }
}

/// The decision of one permission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) allow: Allow,
    pub(super) disclose: Disclose,
    pub(super) match_policy: MatchPolicy,
}

impl Grant {
    pub(super) fn of(permission: &Permission) -> Self {
        Self {
            allow: permission.allow,
            disclose: permission.disclose,
            match_policy: permission.match_policy,
        }
    }
}

//! What is permitted, and to do what.

use crosstie_wamp::MatchPolicy;

/// What is allowed on the URIs that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    pub uri: String,
    pub match_policy: MatchPolicy,
    pub allow: Allow,
    pub disclose: Disclose,
    /// Whether the decision may be kept. A static one always is; kept for the configuration.
    pub cache: bool,
    /// How far what is called or published is to be trusted, where that is not as for the role.
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

/// Whose identity is disclosed whether they ask for it or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disclose {
    pub caller: bool,
    pub publisher: bool,
    /// Whoever registers is disclosed to those whom it answers.
    pub callee: bool,
}

/// What a session wants to do with a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// What could not be done, in front of the URI, in Crossbar.io's words.
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

/// What one permission says.
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

//! Errors caused by a peer: violations end its session, faults are answered with ERROR.

use std::borrow::Cow;
use std::fmt;

use crosstie_wamp::MessageType;

/// The error URIs that a realm sends (WAMP basic profile, "Basic Profile URIs"; advanced profile,
/// "Advanced Profile URIs"). Those of `crosstie.error` name the limit that was reached, for which
/// the specification has no URI.
pub mod error {
    /// Crossbar.io's, for which the specification has none.
    pub const AUTHORIZATION_FAILED: &str = "wamp.error.authorization_failed";
    pub const CALLS_MAX: &str = "crosstie.error.calls_max";
    pub const CALL_OPTIONS_BYTES_MAX: &str = "crosstie.error.call_options_bytes_max";
    pub const CANCELED: &str = "wamp.error.canceled";
    pub const DISCLOSE_ME_DISALLOWED: &str = "wamp.error.option_disallowed.disclose_me";
    pub const FEATURE_NOT_SUPPORTED: &str = "wamp.error.feature_not_supported";
    /// Crossbar.io's, for which the specification has none.
    pub const HISTORY_UNAVAILABLE: &str = "wamp.error.history_unavailable";
    pub const INVALID_ARGUMENT: &str = "wamp.error.invalid_argument";
    pub const INVALID_URI: &str = "wamp.error.invalid_uri";
    pub const KEPT_CALLS_BYTES_MAX: &str = "crosstie.error.kept_calls_bytes_max";
    pub const KEPT_CALL_BYTES_MAX: &str = "crosstie.error.kept_call_bytes_max";
    pub const LIST_IDS_MAX: &str = "crosstie.error.list_ids_max";
    /// Crossbar.io's, for which the specification has none.
    pub const MAX_CONCURRENCY_REACHED: &str = "crossbar.error.max_concurrency_reached";
    pub const NETWORK_FAILURE: &str = "wamp.error.network_failure";
    pub const NO_AVAILABLE_CALLEE: &str = "wamp.error.no_available_callee";
    pub const NO_SUCH_PROCEDURE: &str = "wamp.error.no_such_procedure";
    pub const NO_SUCH_REGISTRATION: &str = "wamp.error.no_such_registration";
    pub const NO_SUCH_ROLE: &str = "wamp.error.no_such_role";
    pub const NO_SUCH_SESSION: &str = "wamp.error.no_such_session";
    pub const NO_SUCH_SUBSCRIPTION: &str = "wamp.error.no_such_subscription";
    pub const NOT_RECORDED: &str = "crosstie.error.not_recorded";
    pub const NOT_AUTHORIZED: &str = "wamp.error.not_authorized";
    pub const OPTION_NOT_ALLOWED: &str = "wamp.error.option_not_allowed";
    pub const PAYLOAD_SIZE_EXCEEDED: &str = "wamp.error.payload_size_exceeded";
    pub const PROCEDURE_ALREADY_EXISTS: &str = "wamp.error.procedure_already_exists";
    /// Not in the specification, which forbids the second registration without naming an error. Clients of Crossbar.io
    /// know this one.
    pub const PROCEDURE_EXISTS_WITH_DIFFERENT_POLICY: &str =
        "wamp.error.procedure_exists_with_different_invocation_policy";
    pub const PROTOCOL_VIOLATION: &str = "wamp.error.protocol_violation";
    pub const REALM_CALLS_MAX: &str = "crosstie.error.realm_calls_max";
    pub const REALM_DEFINITIONS_MAX: &str = "crosstie.error.realm_definitions_max";
    pub const DEFINITIONS_MAX: &str = "crosstie.error.definitions_max";
    pub const DEFINITIONS_BYTES_MAX: &str = "crosstie.error.definitions_bytes_max";
    pub const REALM_REGISTRATIONS_MAX: &str = "crosstie.error.realm_registrations_max";
    pub const REALM_SUBSCRIPTIONS_MAX: &str = "crosstie.error.realm_subscriptions_max";
    pub const REGISTRATIONS_MAX: &str = "crosstie.error.registrations_max";
    pub const RETAINED_EVENT_BYTES_MAX: &str = "crosstie.error.retained_event_bytes_max";
    pub const SESSIONS_MAX: &str = "crosstie.error.sessions_max";
    pub const ROLE_SESSIONS_MAX: &str = "crosstie.error.role_sessions_max";
    pub const AUTHID_SESSIONS_MAX: &str = "crosstie.error.authid_sessions_max";
    pub const SUBSCRIPTIONS_MAX: &str = "crosstie.error.subscriptions_max";
    pub const TESTAMENTS_BYTES_MAX: &str = "crosstie.error.testaments_bytes_max";
    pub const TESTAMENTS_MAX: &str = "crosstie.error.testaments_max";
    /// Crossbar.io's, for which the specification has none.
    pub const TESTAMENT_ERROR: &str = "wamp.error.testament_error";
    pub const TIMEOUT: &str = "wamp.error.timeout";
    /// A callee's error: another callee is to be tried.
    pub const UNAVAILABLE: &str = "wamp.error.unavailable";
    pub const WILDCARD_SHAPES_MAX: &str = "crosstie.error.wildcard_shapes_max";
    /// Not an error: the reason of a revoked registration, in Crossbar.io's words.
    pub const UNREGISTERED: &str = "wamp.error.unregistered";
}

/// A peer broke the protocol (WAMP basic profile, "Protocol Errors"): its owner sends ABORT with
/// [`error::PROTOCOL_VIOLATION`] as the reason and `message` in the details, and leaves.
///
/// Two words, so that a result with it is returned in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub message: Box<str>,
}

impl Violation {
    pub(crate) fn new(message: String) -> Self {
        Self {
            message: message.into_boxed_str(),
        }
    }

    /// The violation of a message that a client may not send in an established session.
    pub(crate) fn unexpected(kind: MessageType) -> Self {
        Self::new(format!(
            "received {} message in an established session",
            kind.name()
        ))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", error::PROTOCOL_VIOLATION, self.message)
    }
}

impl std::error::Error for Violation {}

/// A request that cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) uri: &'static str,
    /// For humans: what was expected and what came.
    pub(crate) text: Cow<'static, str>,
}

impl Fault {
    /// Not a fault, and no answer yet: an authorizer is asked, and the message will be handled again.
    pub(crate) const ASKED: Self = Self {
        uri: "",
        text: Cow::Borrowed(""),
    };

    pub(crate) fn is_asked(&self) -> bool {
        self.uri.is_empty()
    }

    pub(crate) fn new(uri: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            uri,
            text: text.into(),
        }
    }

    /// The arguments of the ERROR, as JSON: one text.
    pub(crate) fn arguments(&self) -> String {
        let mut json = String::with_capacity(self.text.len() + 4);
        json.push_str("[\"");
        for character in self.text.chars() {
            match character {
                '"' => json.push_str("\\\""),
                '\\' => json.push_str("\\\\"),
                control if (control as u32) < 0x20 => {
                    json.push_str(&format!("\\u{:04x}", control as u32));
                }
                other => json.push(other),
            }
        }
        json.push_str("\"]");
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_json() {
        for (text, json) in [
            ("plain", r#"["plain"]"#),
            ("a \"b\" \\ c", r#"["a \"b\" \\ c"]"#),
            ("line\nbreak", r#"["line\u000abreak"]"#),
            ("ü", r#"["ü"]"#),
        ] {
            assert_eq!(Fault::new(error::INVALID_URI, text).arguments(), json);
        }
    }
}

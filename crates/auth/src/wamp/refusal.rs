//! Why somebody is not let in: what is said to the client, and what to the operator.

use std::borrow::Cow;

/// An ABORT, and its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A URI.
    pub reason: Cow<'static, str>,
    /// For the client.
    pub text: String,
    pub cause: Cause,
}

/// What a client is told of why it is not let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorTexts {
    /// The same whether there is such a principal or not.
    #[default]
    Neutral,
    /// Crossbar.io's words, by which anybody can find out who there is.
    Crossbar,
}

/// Why, for the operator alone: a client must not learn which principals there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No method that it offers is configured.
    NoMethod,
    /// It does not say who it is.
    NoAuthid,
    /// The authid is nobody's.
    UnknownPrincipal,
    WrongTicket,
    WrongSignature,
    /// The key is nobody's, or not the principal's.
    UnknownKey,
    /// It has shown no certificate.
    NoCertificate,
    /// Its certificate is nobody's.
    UnknownCertificate,
    /// Several principals have the key or the certificate, and the client does not say which it is.
    AmbiguousKey,
    /// The channel has no id of the kind that the client asks for.
    NoChannelBinding,
    /// A token that is none, or by an algorithm that is not taken.
    MalformedToken,
    ExpiredToken,
    /// A token whose time has not come.
    EarlyToken,
    /// A token of another issuer, for others, or without what it has to say.
    WrongClaims,
    /// What it says in HELLO for its method is not what the method needs.
    MalformedExtra,
    /// The authenticator has answered with an error.
    AuthenticatorDenied,
    /// The authenticator could not be called, did not answer, or answered with nonsense.
    AuthenticatorFailed,
    /// Such sessions may not join that realm.
    RealmNotAllowed,
    NoSuchRealm,
    NoSuchRole,
    /// As many of its origin or for its authid have failed as may at a time.
    TooManyFailures,
    /// It has not answered CHALLENGE in time.
    ChallengeTimeout,
}

impl Cause {
    pub const ALL: [Self; 22] = [
        Self::NoMethod,
        Self::NoAuthid,
        Self::UnknownPrincipal,
        Self::WrongTicket,
        Self::WrongSignature,
        Self::UnknownKey,
        Self::NoCertificate,
        Self::UnknownCertificate,
        Self::AmbiguousKey,
        Self::NoChannelBinding,
        Self::MalformedToken,
        Self::ExpiredToken,
        Self::EarlyToken,
        Self::WrongClaims,
        Self::MalformedExtra,
        Self::AuthenticatorDenied,
        Self::AuthenticatorFailed,
        Self::RealmNotAllowed,
        Self::NoSuchRealm,
        Self::NoSuchRole,
        Self::TooManyFailures,
        Self::ChallengeTimeout,
    ];

    /// As logs and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoMethod => "no_method",
            Self::NoAuthid => "no_authid",
            Self::UnknownPrincipal => "unknown_principal",
            Self::WrongTicket => "wrong_ticket",
            Self::WrongSignature => "wrong_signature",
            Self::UnknownKey => "unknown_key",
            Self::NoCertificate => "no_certificate",
            Self::UnknownCertificate => "unknown_certificate",
            Self::AmbiguousKey => "ambiguous_key",
            Self::NoChannelBinding => "no_channel_binding",
            Self::MalformedToken => "malformed_token",
            Self::ExpiredToken => "expired_token",
            Self::EarlyToken => "early_token",
            Self::WrongClaims => "wrong_claims",
            Self::MalformedExtra => "malformed_extra",
            Self::AuthenticatorDenied => "authenticator_denied",
            Self::AuthenticatorFailed => "authenticator_failed",
            Self::RealmNotAllowed => "realm_not_allowed",
            Self::NoSuchRealm => "no_such_realm",
            Self::NoSuchRole => "no_such_role",
            Self::TooManyFailures => "too_many_failures",
            Self::ChallengeTimeout => "challenge_timeout",
        }
    }

    /// Whether it may be one of many guesses, each of which makes the next answers come later.
    pub fn is_guess(self) -> bool {
        matches!(
            self,
            Self::UnknownPrincipal
                | Self::WrongTicket
                | Self::WrongSignature
                | Self::UnknownKey
                | Self::MalformedToken
                | Self::WrongClaims
                | Self::AuthenticatorDenied
        )
    }
}

/// Crossbar.io's default reason. The specification leaves the reason to the router.
pub(super) const NOT_AUTHORIZED: &str = "wamp.error.not_authorized";
pub(super) const AUTHENTICATION_FAILED: &str = "wamp.error.authentication_failed";
pub(super) const NO_SUCH_ROLE: &str = "wamp.error.no_such_role";

/// What is said of credentials whatever is wrong with them.
const NOT_VALID: &str = "the authid or its credentials are not valid";

impl Refusal {
    pub fn new(reason: impl Into<Cow<'static, str>>, text: String, cause: Cause) -> Self {
        Self {
            reason: reason.into(),
            text,
            cause,
        }
    }

    /// Of credentials, in words that say nothing about who there is; or in others.
    pub(super) fn of_credentials(cause: Cause, in_other_words: Option<String>) -> Self {
        let text = in_other_words.unwrap_or_else(|| NOT_VALID.to_owned());
        Self::new(NOT_AUTHORIZED, text, cause)
    }

    /// Of a principal whose credentials were right when its handshake began, and are not any more.
    pub fn revoked() -> Self {
        Self::of_credentials(Cause::UnknownPrincipal, None)
    }

    /// An authenticator that did not do its work.
    pub(super) fn of_authenticator(text: String) -> Self {
        Self::new(AUTHENTICATION_FAILED, text, Cause::AuthenticatorFailed)
    }
}

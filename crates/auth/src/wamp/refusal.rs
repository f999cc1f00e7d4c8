//! The reason for a refusal: a text for the client, a cause for the operator.

use std::borrow::Cow;

/// An ABORT and its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A URI.
    pub reason: Cow<'static, str>,
    /// For the client.
    pub text: String,
    pub cause: Cause,
}

/// The kind of error texts that clients get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorTexts {
    /// The same whether the principal exists or not.
    #[default]
    Neutral,
    /// Crossbar.io's texts, from which any client can find out which principals exist.
    Crossbar,
}

/// The cause of a refusal, for the operator alone: a client must not learn which principals exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// None of the client's methods is configured.
    NoMethod,
    /// The client sends no authid.
    NoAuthid,
    /// No principal has the authid.
    UnknownPrincipal,
    WrongTicket,
    WrongSignature,
    /// No principal has the key, or not the one of the authid.
    UnknownKey,
    /// The client sent no certificate.
    NoCertificate,
    /// No principal has the certificate.
    UnknownCertificate,
    /// Several principals have the key or the certificate, and the client does not name one of them.
    AmbiguousKey,
    /// The channel has no id of the kind that the client asks for.
    NoChannelBinding,
    /// A malformed token, or one with an algorithm that is not accepted.
    MalformedToken,
    ExpiredToken,
    /// A token that is not valid yet.
    EarlyToken,
    /// A token of another issuer, for another audience, or without a required claim.
    WrongClaims,
    /// The options in HELLO are not what the method needs.
    MalformedExtra,
    /// The authenticator answered with an error.
    AuthenticatorDenied,
    /// The authenticator could not be called, did not answer, or sent a malformed answer.
    AuthenticatorFailed,
    /// Sessions without credentials may not join that realm.
    RealmNotAllowed,
    NoSuchRealm,
    NoSuchRole,
    /// The origin or the authid has the maximum number of failed logins whose answers are delayed.
    TooManyFailures,
    /// The client did not answer CHALLENGE in time.
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

    /// As in logs and metrics.
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

    /// Whether the attempt may be a guess; guesses delay the answers to further ones.
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

/// The text for wrong credentials of any kind.
const NOT_VALID: &str = "the authid or its credentials are not valid";

impl Refusal {
    pub fn new(reason: impl Into<Cow<'static, str>>, text: String, cause: Cause) -> Self {
        Self {
            reason: reason.into(),
            text,
            cause,
        }
    }

    /// The refusal of credentials, with a text that does not reveal which principals exist, or with another one.
    pub(super) fn of_credentials(cause: Cause, in_other_words: Option<String>) -> Self {
        let text = in_other_words.unwrap_or_else(|| NOT_VALID.to_owned());
        Self::new(NOT_AUTHORIZED, text, cause)
    }

    /// The refusal of a principal that was removed or changed during its handshake.
    pub fn revoked() -> Self {
        Self::of_credentials(Cause::UnknownPrincipal, None)
    }

    /// The refusal of a client because its authenticator failed.
    pub(super) fn of_authenticator(text: String) -> Self {
        Self::new(AUTHENTICATION_FAILED, text, Cause::AuthenticatorFailed)
    }
}

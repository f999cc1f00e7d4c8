//! The configured methods of a transport.

use super::client::Client;
use super::next::Outcome;
use super::source::{Configured, Source};
use super::{
    Anonymous, Authenticator, Channel, Cryptosign, ErrorTexts, Jwt, Method, PrincipalsFile,
    Refusal, Scram, Ticket, Tls, WampCra,
};

/// The methods that a transport accepts. An absent method is not accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Methods {
    pub anonymous: Option<Anonymous>,
    pub ticket: Option<Ticket>,
    pub wampcra: Option<WampCra>,
    pub scram: Option<Scram>,
    pub cryptosign: Option<Cryptosign>,
    pub jwt: Option<Jwt>,
    pub tls: Option<Tls>,
    /// Whether clients that logged in by another method are recognized by their cookie.
    pub cookie: bool,
    /// Whether the sessions of a principal end when its entry in its file is removed or changed.
    pub ends_revoked: bool,
    pub error_texts: ErrorTexts,
    /// Files of principals that have not been read yet.
    pub files: Vec<PrincipalsFile>,
}

impl Methods {
    /// Whether the method is configured.
    pub fn has(&self, method: Method) -> bool {
        match method {
            Method::Anonymous => self.anonymous.is_some(),
            Method::Ticket => self.ticket.is_some(),
            Method::WampCra => self.wampcra.is_some(),
            Method::Scram | Method::WampScram => self.scram.is_some(),
            Method::Cryptosign => self.cryptosign.is_some(),
            Method::Jwt => self.jwt.is_some(),
            Method::Tls => self.tls.is_some(),
        }
    }

    /// Whether no method is configured.
    pub fn is_empty(&self) -> bool {
        !self.cookie && !Method::ALL.into_iter().any(|method| self.has(method))
    }

    /// The authenticators of all methods.
    pub fn authenticators(&self) -> impl Iterator<Item = &Authenticator> {
        let anonymous = self.anonymous.as_ref().and_then(Anonymous::authenticator);
        let ticket = self.ticket.as_ref().and_then(Source::authenticator);
        let wampcra = self.wampcra.as_ref().and_then(Source::authenticator);
        let scram = self.scram.as_ref().and_then(Source::authenticator);
        let cryptosign = self.cryptosign.as_ref().and_then(Source::authenticator);
        let tls = self.tls.as_ref().and_then(Source::authenticator);
        let all = [anonymous, ticket, wampcra, scram, cryptosign, tls];
        all.into_iter().flatten()
    }

    /// The roles that the configuration assigns to authenticated clients.
    pub fn roles(&self) -> impl Iterator<Item = (Method, &str)> {
        // Another name of `Scram`, with the same principals.
        let methods = Method::ALL.into_iter().filter(|m| *m != Method::WampScram);
        methods.flat_map(|method| {
            let roles = self.roles_of(method).into_iter();
            roles.map(move |role| (method, role))
        })
    }

    fn roles_of(&self, method: Method) -> Vec<&str> {
        if method == Method::Jwt {
            return self.jwt.iter().flat_map(Jwt::roles).collect();
        }
        let Some((principals, default_role)) = self.configured(method) else {
            return Vec::new();
        };
        let roles = principals.entries().filter_map(|(_, role)| role);
        roles.chain(default_role.map(|role| &**role)).collect()
    }

    /// The role of a method's configured principals without one of their own.
    pub fn default_role(&self, method: Method) -> Option<&str> {
        let (_, default_role) = self.configured(method)?;
        default_role.map(|role| &**role)
    }

    pub(super) fn configured(&self, method: Method) -> Option<Configured<'_>> {
        match method {
            Method::Anonymous | Method::Jwt => None,
            Method::Ticket => self.ticket.as_ref()?.configured(),
            Method::WampCra => self.wampcra.as_ref()?.configured(),
            Method::Scram | Method::WampScram => self.scram.as_ref()?.configured(),
            Method::Cryptosign => self.cryptosign.as_ref()?.configured(),
            Method::Tls => self.tls.as_ref()?.configured(),
        }
    }

    /// Handles HELLO by the client's method.
    pub(super) fn begin(&self, client: &mut Client, channel: &Channel<'_>) -> Outcome {
        let begun = match client.method {
            Method::Anonymous => {
                let authenticator = self.anonymous.as_ref().and_then(Anonymous::authenticator);
                authenticator.map(|a| Ok(Anonymous::begin(a, client)))
            }
            Method::Ticket => self.ticket.as_ref().map(|ticket| ticket.begin(client)),
            Method::WampCra => self
                .wampcra
                .as_ref()
                .map(|wampcra| wampcra.begin(client, channel)),
            Method::Scram | Method::WampScram => self
                .scram
                .as_ref()
                .map(|scram| scram.begin(client, channel)),
            Method::Cryptosign => {
                let cryptosign = self.cryptosign.as_ref();
                cryptosign.map(|cryptosign| cryptosign.begin(client, channel))
            }
            Method::Jwt => self.jwt.as_ref().map(Jwt::begin),
            Method::Tls => self.tls.as_ref().map(|tls| tls.begin(client, channel)),
        };
        let unconfigured = || {
            Err(Refusal::of_authenticator(
                "the method is not configured".to_owned(),
            ))
        };
        begun.unwrap_or_else(unconfigured)
    }
}

//! Authentication of sessions.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::wamp::scram::{Credential, Principals};
use crosstie_auth::wamp::{
    Anonymous, Authenticator, ErrorTexts, Method, Methods, Provider, Salted, Scram, Secret, Ticket,
    TicketHash, Tickets, Users, WampCra,
};

use super::Builder;
use super::functions::REALM as FUNCTIONS_REALM;
use crate::files::Files;
use crate::model::{Realm, Role};
use crate::plain::Plain;
use crate::problem::Problem;
use crate::tree::{Span, quoted};
use crate::view::View;

impl Builder<'_> {
    /// The authentication methods of a listener, in a worker with these realms, if they are known.
    pub(super) fn auth(&mut self, object: View<'_>, realms: Option<&[Realm]>) -> Methods {
        let auth = object.section("auth");
        let anonymous = auth
            .object("anonymous")
            .map(|object| match self.asked(object) {
                Some(authenticator) => Anonymous::Dynamic(authenticator),
                None => anonymous(object),
            });
        let mut methods = Methods {
            anonymous,
            ticket: auth.object("ticket").map(|ticket| self.ticket(ticket)),
            wampcra: auth.object("wampcra").map(|wampcra| self.wampcra(wampcra)),
            scram: auth.object("scram").map(|scram| self.scram(scram)),
            cryptosign: auth.object("cryptosign").map(|c| self.cryptosign(c)),
            jwt: auth.object("jwt").map(|jwt| self.jwt(jwt)),
            tls: auth.object("tls").map(|tls| self.certificates(tls)),
            cookie: auth.given("cookie").is_some(),
            ends_revoked: auth.boolean("end_revoked_sessions"),
            error_texts: ErrorTexts::read(auth, "error_texts"),
            files: self.principals_files(auth),
        };
        if !methods.files.is_empty() {
            let roles = realms.map(|realms| {
                let roles = realms.iter().flat_map(|realm| &realm.roles);
                roles.map(|role| role.name.clone()).collect()
            });
            let methods = Box::new(methods.clone());
            self.names(auth.span, Files::Principals { methods, roles });
        }
        if methods.is_empty() {
            methods.anonymous = Some(standard());
        }
        if let Some(realms) = realms {
            self.check_roles(&methods, auth, object.span, realms);
        }
        methods
    }

    pub(super) fn ticket(&mut self, ticket: View<'_>) -> Ticket {
        if let Some(authenticator) = self.asked(ticket) {
            return Ticket::Dynamic(authenticator);
        }
        let default_role = shared(ticket, "default-role");
        let mut principals = Tickets::default();
        for (authid, principal) in ticket.map("principals") {
            let role = principal.text("role");
            match (principal.text("ticket"), principal.text("ticket_hash")) {
                (Some(ticket), None) => principals.insert(authid, ticket, role),
                (None, Some(hash)) => match TicketHash::parse(hash) {
                    Ok(hash) => principals.insert_hash(authid, hash, role),
                    Err(e) => {
                        self.error(principal, "ticket_hash", e.to_string());
                    }
                },
                _ => {
                    let message = "a principal needs \"ticket\" or \"ticket_hash\", and not both";
                    self.problems
                        .push(Problem::error(principal.span, message.to_owned()));
                }
            }
            self.check_has_role(authid, principal, default_role.as_ref());
        }
        Ticket::Static {
            principals: Arc::new(principals),
            default_role,
        }
    }

    pub(super) fn wampcra(&mut self, wampcra: View<'_>) -> WampCra {
        if let Some(authenticator) = self.asked(wampcra) {
            return WampCra::Dynamic(authenticator);
        }
        let default_role = shared(wampcra, "default-role");
        let mut users = Users::default();
        for (authid, user) in wampcra.map("users") {
            let number = |key| user.integer(key).and_then(|n| u32::try_from(n).ok());
            let salted = user.text("salt").map(|salt| Salted {
                salt: salt.to_owned(),
                iterations: number("iterations").unwrap_or(Salted::ITERATIONS),
                key_bytes: number("keylen").unwrap_or(Salted::KEY_BYTES),
            });
            for key in ["iterations", "keylen"] {
                if salted.is_none() && user.given(key).is_some() {
                    let message = format!("{} has no effect without \"salt\"", quoted(key));
                    self.problems
                        .push(Problem::warning(user.span_of(key), message));
                }
            }
            let secret = Secret::new(user.text("secret").unwrap_or_default(), salted);
            match secret {
                Ok(secret) => users.insert(authid, secret, user.text("role")),
                // The tables have the same bounds.
                Err(e) => self.problems.push(Problem::error(user.span, e.to_string())),
            }
            self.check_has_role(authid, user, default_role.as_ref());
        }
        WampCra::Static {
            principals: Arc::new(users),
            default_role,
        }
    }

    pub(super) fn scram(&mut self, scram: View<'_>) -> Scram {
        if let Some(authenticator) = self.asked(scram) {
            return Scram::Dynamic(authenticator);
        }
        let default_role = shared(scram, "default-role");
        let mut principals = Principals::default();
        for (authid, principal) in scram.map("principals") {
            let number = |key| principal.integer(key).and_then(|n| u32::try_from(n).ok());
            let text = |key| principal.text(key).unwrap_or_default();
            let credential = Credential::parse(
                text("kdf"),
                number("iterations").unwrap_or_default(),
                number("memory"),
                ["salt", "stored-key", "server-key"].map(text),
            );
            match credential {
                Ok(credential) => principals.insert(authid, credential, principal.text("role")),
                Err(e) => {
                    let problem = Problem::error(principal.span, e.to_string());
                    self.problems.push(problem);
                }
            }
            self.check_has_role(authid, principal, default_role.as_ref());
        }
        Scram::Static {
            principals: Arc::new(principals),
            default_role,
        }
    }

    /// Checks the authenticator's realm: without the realm no session could log in.
    fn check_authenticators(&mut self, methods: &Methods, auth: View<'_>, realms: &[Realm]) {
        // A method that has two names is configured by the first.
        let names = Method::ALL.map(Method::name).into_iter();
        for name in names.filter(|name| auth.has(name)) {
            let Some(view) = auth.object(name).filter(|view| is_dynamic(*view)) else {
                continue;
            };
            let named = view.text("authenticator-realm");
            if let Some(name) = named
                && realms.iter().all(|realm| realm.name != name)
            {
                let message = format!("this router worker has no realm {}", quoted(name));
                self.error(view, "authenticator-realm", message);
                continue;
            }
            let role = view.text("authenticator-role").unwrap_or_default();
            if !is_somewhere(role, named, realms) {
                let message = format!(
                    "no realm in which it could be asked has the role {}: everybody will be refused",
                    quoted(role)
                );
                self.warn(view, "authenticator-role", message);
            }
        }
        for authenticator in methods.authenticators() {
            if let Some(role) = &authenticator.default_role
                && !is_somewhere(role, None, realms)
            {
                let message = format!(
                    "no realm that can be joined here has the role {}: whoever gets it will be refused",
                    quoted(role)
                );
                self.problems.push(Problem::warning(auth.span, message));
            }
        }
    }

    pub(super) fn check_has_role(
        &mut self,
        authid: &str,
        of: View<'_>,
        default_role: Option<&Arc<str>>,
    ) {
        if of.text("role").is_none() && default_role.is_none() {
            let message = format!(
                "{} has no \"role\", and there is no \"default-role\": its sessions will be refused",
                quoted(authid)
            );
            self.problems.push(Problem::warning(of.span, message));
        }
    }

    /// Warns of roles that no realm has: their principals cannot join. Crossbar.io accepts such a file, and a realm
    /// may be meant for another transport, so only a named realm must exist.
    fn check_roles(&mut self, methods: &Methods, auth: View<'_>, at: Span, realms: &[Realm]) {
        if let Some(Anonymous::Static { role, realm, .. }) = &methods.anonymous {
            let at = auth.object("anonymous").map_or(at, |a| a.span);
            let named = realm.as_deref();
            if let Some(name) = named
                && realms.iter().all(|realm| realm.name != name)
            {
                let message = format!("this router worker has no realm {}", quoted(name));
                self.problems.push(Problem::error(at, message));
            } else if !is_somewhere(role, named, realms) {
                let message = format!(
                    "no realm that can be joined here has the role {}: everybody will be refused",
                    quoted(role)
                );
                self.problems.push(Problem::warning(at, message));
            }
        }
        self.check_authenticators(methods, auth, realms);
        if let Some(cryptosign) = auth.object("cryptosign") {
            self.check_realms(cryptosign, realms);
        }
        let named = methods.roles().map(|(method, role)| (method.name(), role));
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        named.dedup();
        for (method, role) in named {
            if !is_somewhere(role, None, realms) {
                let message = format!(
                    "no realm that can be joined here has the role {}: whoever gets it will be refused",
                    quoted(role)
                );
                self.warn(auth, method, message);
            }
        }
    }
}

impl Builder<'_> {
    /// The authenticator of a method without principals of its own.
    pub(super) fn asked(&mut self, method: View<'_>) -> Option<Authenticator> {
        match method.text("type") {
            Some("dynamic") => Some(Authenticator {
                procedure: method.text("authenticator").unwrap_or_default().to_owned(),
                authprovider: Provider::Dynamic,
                realm: method.text("authenticator-realm").map(str::to_owned),
                role: method.text("authenticator-role").unwrap_or_default().into(),
                default_role: shared(method, "default-role"),
                timeout: Duration::read(method, "authenticator_timeout_ms"),
            }),
            Some("function") => Some(Authenticator {
                procedure: self.host_function(method),
                authprovider: Provider::Function,
                realm: Some(FUNCTIONS_REALM.to_owned()),
                role: Role::TRUSTED.into(),
                default_role: shared(method, "default-role"),
                timeout: Duration::read(method, "authenticator_timeout_ms"),
            }),
            _ => None,
        }
    }
}

fn is_dynamic(method: View<'_>) -> bool {
    method.text("type") == Some("dynamic")
}

fn anonymous(anonymous: View<'_>) -> Anonymous {
    Anonymous::Static {
        role: anonymous.text("role").unwrap_or_default().into(),
        realm: anonymous.text("realm").map(str::to_owned),
        authid: anonymous.text("authid").map(str::to_owned),
    }
}

/// Authentication of a listener without `auth`.
fn standard() -> Anonymous {
    Anonymous::Static {
        role: "anonymous".into(),
        realm: None,
        authid: None,
    }
}

pub(super) fn shared(object: View<'_>, key: &str) -> Option<Arc<str>> {
    object.text(key).map(Into::into)
}

/// Whether a realm of that name, or any realm, has the role.
fn is_somewhere(role: &str, realm: Option<&str>, realms: &[Realm]) -> bool {
    if role == Role::TRUSTED {
        return true;
    }
    let mut open = realms
        .iter()
        .filter(|open| realm.is_none_or(|name| open.name == name));
    open.any(|open| open.roles.iter().any(|r| r.name == role))
}

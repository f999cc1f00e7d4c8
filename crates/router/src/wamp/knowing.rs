//! Cookies in a session's life: who is known again at HELLO, remembered at WELCOME, forgotten with a logout.

use std::sync::Arc;

use crosstie_auth::wamp::cookie::Remembered;
use crosstie_auth::wamp::{Hello, Method, Methods, Principal, Provider, Refusal, offers_cookie};

use crate::cause::Cause;
use crate::cookies::Jar;
use crate::report;
use crate::wamp::pending::Pending;
use crate::wamp::session::Session;

impl Session {
    /// The cookies of the endpoint that the session came by, where they say who somebody is.
    pub(super) fn cookies(&self) -> Option<&Jar> {
        let mut endpoints = self.listening.websockets.iter();
        let own = endpoints.find(|endpoint| Arc::ptr_eq(&endpoint.auth, &self.auth))?;
        own.cookies.as_deref().filter(|_| own.options.auth.cookie)
    }

    /// Who has logged in before. A client that does not want to be known by its cookie is not any more, as with
    /// Crossbar.io.
    pub(super) fn remembered(&self, hello: Hello<'_>) -> Option<Remembered> {
        let jar = self.cookies()?;
        let connection = &self.peer.connection;
        let who = jar.find(connection)?;
        // A principal may be gone from the configuration since, or have another secret.
        if offers_cookie(hello.authmethods) && self.auth.now().vouches_for(&who) {
            return Some(who);
        }
        jar.forget(connection);
        None
    }

    /// The principal that a cookie is to stand for, with its stamp by the methods that it has logged in with. Anonymous
    /// principals, of which there may be any number, and those known by a cookie have none.
    pub(super) fn to_remember(
        &self,
        principal: &Principal,
        methods: &Methods,
    ) -> Option<Remembered> {
        self.cookies()?;
        let is_login =
            principal.authmethod != Method::Anonymous && principal.authprovider != Provider::Cookie;
        is_login.then(|| Remembered {
            realm: principal.realm.clone(),
            authid: principal.authid.clone(),
            authrole: Arc::clone(&principal.authrole),
            authmethod: principal.authmethod,
            authextra: principal.authextra.clone(),
            stamp: methods.stamp(principal.authmethod, &principal.authid),
        })
    }

    /// Whether the entry of a principal was removed from its file, or got another secret, while the principal logged in
    /// with the former one; only if its sessions are to end then.
    pub(super) fn revoked_meanwhile(
        &self,
        pending: &Pending,
        principal: &Principal,
    ) -> Option<Refusal> {
        let now = self.auth.now();
        let is_static = principal.authprovider == Provider::Static;
        if !now.ends_revoked || !is_static || Arc::ptr_eq(&now, &pending.methods) {
            return None;
        }
        let (method, authid) = (principal.authmethod, principal.authid.as_str());
        let is_changed = pending.methods.stamp(method, authid) != now.stamp(method, authid);
        is_changed.then(Refusal::revoked)
    }

    /// The cookie stands for nobody from now on, and who came by it is out.
    pub(super) fn log_out(&self) {
        let Some(jar) = self.cookies() else {
            return;
        };
        for other in jar.forget(&self.peer.connection) {
            let text = Cause::CookieLogout.text();
            report::session_closed(&other.connection, Cause::CookieLogout, text);
            other.say_last("wamp.close.logout", text);
            other.connection.flush();
            other.connection.close();
        }
    }
}

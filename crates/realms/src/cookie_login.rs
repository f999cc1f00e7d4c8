//! Login cookies: recognized at HELLO, stored at WELCOME, forgotten at logout.

use std::sync::Arc;

use crosstie_auth::wamp::cookie::Remembered;
use crosstie_auth::wamp::{Hello, Method, Methods, Principal, Provider, Refusal, offers_cookie};
use crosstie_front::cause::Cause;
use crosstie_front::report;

use crate::cookies::Jar;
use crate::pending_handshake::Pending;
use crate::session::Session;

impl Session {
    /// The cookie jar of the session's endpoint, if the endpoint accepts cookies as logins.
    pub(super) fn cookies(&self) -> Option<&Jar> {
        let mut endpoints = self.entrance.websockets.iter();
        let own = endpoints.find(|endpoint| Arc::ptr_eq(&endpoint.auth, &self.auth))?;
        own.cookies.as_deref().filter(|_| own.options.auth.cookie)
    }

    /// The principal of an earlier login. A client that does not offer the cookie method is forgotten, as with
    /// Crossbar.io.
    pub(super) fn remembered(&self, hello: Hello<'_>) -> Option<Remembered> {
        let jar = self.cookies()?;
        let connection = &self.peer.connection;
        let who = jar.find(connection)?;
        // The principal may have been removed from the configuration since, or have another secret.
        if offers_cookie(hello.authmethods) && self.auth.now().vouches_for(&who) {
            return Some(who);
        }
        jar.forget(connection);
        None
    }

    /// The principal to store with a cookie, stamped by the methods of its login. Anonymous principals, of which any
    /// number may exist, and those that a cookie has authenticated are not stored.
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

    /// Whether the principal's entry was removed or changed during this login, and that ends sessions: always if the
    /// configuration has lost the entry.
    pub(super) fn revoked_meanwhile(
        &self,
        pending: &Pending,
        principal: &Principal,
    ) -> Option<Refusal> {
        let now = self.auth.now();
        let is_static = principal.authprovider == Provider::Static;
        if !is_static || Arc::ptr_eq(&now, &pending.methods) {
            return None;
        }
        let (method, authid) = (principal.authmethod, principal.authid.as_str());
        let is = now.stamp(method, authid);
        let is_changed = pending.methods.stamp(method, authid) != is;
        let is_ended = now.ends_revoked || (is.is_none() && self.auth.is_replaced());
        (is_changed && is_ended).then(Refusal::revoked)
    }

    /// Invalidates the cookie, and ends the other sessions that used it.
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

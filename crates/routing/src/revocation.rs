//! Forgets principals before their next login: cached decisions of authorizers, and detached sessions. The realm's
//! owner keeps the cookies, and is notified.

use std::collections::BTreeMap;

use crate::meta::Kill;
use crate::outbox::LoggedOut;
use crate::session::Session;
use crate::{Outbox, Realm, Time};

/// Principals that a configuration has removed, or principals credentials it has changed.
#[derive(Clone, Debug, Default)]
pub struct Revocation {
    /// Authentication methods by authid.
    principals: BTreeMap<String, Vec<&'static str>>,
    /// Whether their sessions end now, rather than with their connections.
    pub(crate) ends_sessions: bool,
}

/// With more principals all decisions are invalidated: searching those of each costs more than asking again.
const LOOKED_FOR_MAX: usize = 16;

impl Revocation {
    pub fn new(ends_sessions: bool) -> Self {
        Self {
            ends_sessions,
            ..Self::default()
        }
    }

    pub fn insert(&mut self, authmethod: &'static str, authid: &str) {
        let methods = self.principals.entry(authid.to_owned()).or_default();
        methods.push(authmethod);
    }

    /// Whether a session belongs to one of them. Sessions of dynamic authenticators are not affected.
    pub(crate) fn is_of<H>(&self, session: &Session<H>) -> bool {
        let identity = &session.identity;
        let methods = self.principals.get(&*identity.authid);
        matches!(&*identity.authprovider, "static" | "cookie")
            && methods.is_some_and(|methods| methods.contains(&&*identity.authmethod))
    }
}

impl<H> Realm<H> {
    /// Forgets principals: invalidates decisions at once, and ends their resumable sessions in turns. Connected
    /// sessions end if the revocation has `ends_sessions`.
    pub fn revoke(&mut self, now: Time, revocation: Revocation, out: &mut dyn Outbox<H>) {
        match revocation.principals.len() > LOOKED_FOR_MAX {
            true => self.forget_decisions_of(None, None, out),
            false => {
                for authid in revocation.principals.keys() {
                    self.forget_decisions_of(None, Some(authid), out);
                }
            }
        }
        self.kills.push_back(Kill::of_revoked(revocation));
        self.work(now, self.steps_at_once_max, out);
    }

    /// Logs sessions out for a caller, and forgets their principals.
    pub(crate) fn log_out(&mut self, principals: LoggedOut<'_>, out: &mut dyn Outbox<H>) {
        match principals {
            LoggedOut::Authid(authid) => self.forget_decisions_of(None, Some(authid), out),
            LoggedOut::Authrole(role) => self.forget_decisions_of(Some(role), None, out),
            LoggedOut::All => self.forget_decisions_of(None, None, out),
        }
        out.logged_out(principals);
    }

    fn forget_decisions_of(
        &mut self,
        role: Option<&str>,
        authid: Option<&str>,
        out: &mut dyn Outbox<H>,
    ) {
        let forgotten = self.roles.forget_decisions(role, None, authid);
        let (_, seen) = forgotten.unwrap_or_default();
        self.steps = self
            .steps
            .saturating_add(u32::try_from(seen / 8).unwrap_or(u32::MAX));
        out.keep(self.roles.decision_bytes());
    }
}

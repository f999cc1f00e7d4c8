//! Ends the memory of principals before their next login: cached decisions of authorizers, and sessions that wait for
//! their clients. Cookies are kept by the realm's owner, which gets a notice.

use std::collections::BTreeMap;

use crate::meta::Killing;
use crate::outbox::LoggedOut;
use crate::session::Session;
use crate::{Outbox, Realm, Time};

/// Principals that were removed from a configuration, or have other credentials there.
#[derive(Clone, Debug, Default)]
pub struct Revocation {
    /// The methods of authentication, by the authid.
    principals: BTreeMap<String, Vec<&'static str>>,
    /// Whether their sessions end at once, or with their connections.
    pub(crate) ends_sessions: bool,
}

/// With more principals all decisions are forgotten: to look for those of each costs more than to ask again.
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

    /// Whether a session is of one of them. A procedure that lets sessions in by the same method answers for its own.
    pub(crate) fn is_of<H>(&self, session: &Session<H>) -> bool {
        let identity = &session.identity;
        let methods = self.principals.get(&*identity.authid);
        matches!(&*identity.authprovider, "static" | "cookie")
            && methods.is_some_and(|methods| methods.contains(&&*identity.authmethod))
    }
}

impl<H> Realm<H> {
    /// Ends the memory of principals: decisions at once, and in turns their sessions that may be resumed. Connected
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
        self.killings.push_back(Killing::of_revoked(revocation));
        self.work(now, self.steps_at_once_max, out);
    }

    /// A caller ends sessions as by a logout, with all that is remembered of their principals.
    pub(crate) fn log_out(&mut self, whose: LoggedOut<'_>, out: &mut dyn Outbox<H>) {
        match whose {
            LoggedOut::Authid(authid) => self.forget_decisions_of(None, Some(authid), out),
            LoggedOut::Authrole(role) => self.forget_decisions_of(Some(role), None, out),
            LoggedOut::All => self.forget_decisions_of(None, None, out),
        }
        out.logged_out(whose);
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

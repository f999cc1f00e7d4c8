//! Clients that have authenticated and may not join the realm.

use std::ops::ControlFlow;
use std::sync::Arc;

use crosstie_auth::wamp::{Cause, Principal, Refusal};
use crosstie_front::counters::{Counter, counters};
use crosstie_front::report::Refused;
use crosstie_routing::{JoinError, error};

use crate::pending_handshake::refused;
use crate::realm::{DETACHED, NotJoined};
use crate::session::Session;

impl Session {
    /// Whether the listener allows one more session of that authid.
    pub(super) fn enter_by_authid(&self, authid: &Arc<str>) -> Result<(), JoinError> {
        match &self.entrance.authids {
            Some(authids) if !authids.enter(authid) => Err(JoinError::AuthidSessionsMax {
                sessions_max: authids.max(),
            }),
            _ => Ok(()),
        }
    }

    /// Uncounts a session that was allowed to join and has not.
    pub(super) fn leave_by_authid(&self, authid: &Arc<str>) {
        if let Some(authids) = &self.entrance.authids {
            authids.give_back(authid);
        }
    }

    pub(super) fn refuse_not_joined(
        &mut self,
        why: &NotJoined,
        principal: &Principal,
    ) -> ControlFlow<()> {
        match why {
            NotJoined::Stopped => self.turn_back_from(principal),
            NotJoined::Detached => self.refuse(&Refused {
                who: &principal.authid,
                place: &principal.realm,
                method: principal.authmethod.name(),
                ..Refused::new(error::NETWORK_FAILURE, DETACHED)
            }),
            NotJoined::Refused(e) => self.refuse_join(e, principal),
        }
    }

    pub(super) fn refuse_join(&mut self, e: &JoinError, principal: &Principal) -> ControlFlow<()> {
        let refusal = Refusal::new(e.uri(), e.to_string(), Cause::NoSuchRole);
        count_refused(e);
        if matches!(e, JoinError::NoSuchRole { .. }) {
            let method = Some(principal.authmethod);
            self.note_refused(
                &refusal,
                (&principal.authid, None),
                &principal.realm,
                method,
            );
        }
        self.refuse(&Refused {
            who: &principal.authid,
            place: &principal.realm,
            method: principal.authmethod.name(),
            ..Refused::new(&refusal.reason, &refusal.text)
        })
    }

    /// Refuses a client whose realm does not exist.
    pub(super) fn refuse_unknown(&mut self, principal: &Principal) -> ControlFlow<()> {
        let Principal { realm, authid, .. } = principal;
        if self.entrance.realms.has_stopped_realm(realm) {
            return self.turn_back_from(principal);
        }
        let refusal = no_realm(realm);
        self.note_refused(&refusal, (authid, None), realm, Some(principal.authmethod));
        self.refuse(&told(&refusal, principal))
    }

    /// Closes a client whose realm has stopped and may start again.
    fn turn_back_from(&mut self, principal: &Principal) -> ControlFlow<()> {
        let refusal = no_realm(&principal.realm);
        self.turn_back(&told(&refusal, principal))
    }
}

/// Counts a session refused at a limit of its role or its authid.
fn count_refused(why: &JoinError) {
    match why {
        JoinError::RoleSessionsMax { .. } => counters().count(Counter::RoleSessionsRefused),
        JoinError::AuthidSessionsMax { .. } => counters().count(Counter::AuthidSessionsRefused),
        _ => {}
    }
}

/// The report of a refused principal.
fn told<'r>(refusal: &'r Refusal, principal: &'r Principal) -> Refused<'r> {
    let method = Some(principal.authmethod);
    refused(refusal, &principal.authid, &principal.realm, method)
}

fn no_realm(name: &str) -> Refusal {
    let text = match name {
        "" => "no realm was asked for, and none assigned".to_owned(),
        name => format!("no realm {name:?} exists on this router"),
    };
    Refusal::new("wamp.error.no_such_realm", text, Cause::NoSuchRealm)
}

//! Who has proven who he is, and is not let into the realm all the same.

use std::ops::ControlFlow;
use std::sync::Arc;

use crosstie_auth::wamp::{Cause, Principal, Refusal};
use crosstie_routing::{JoinError, error};

use crate::counters::counters;
use crate::wamp::realm::{DETACHED, NotJoined};
use crate::wamp::session::Session;

impl Session {
    /// Whether the listener lets one more session of that authid join.
    pub(super) fn enter_by_authid(&self, authid: &Arc<str>) -> Result<(), JoinError> {
        match &self.listening.authids {
            Some(authids) if !authids.enter(authid) => Err(JoinError::AuthidSessionsMax {
                sessions_max: authids.max(),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn refuse_not_joined(
        &mut self,
        why: &NotJoined,
        principal: &Principal,
    ) -> ControlFlow<()> {
        match why {
            NotJoined::Stopped => self.refuse_unknown_realm(&principal.realm),
            NotJoined::Detached => self.refuse(error::NETWORK_FAILURE, DETACHED),
            NotJoined::Refused(e) => self.refuse_join(e, principal),
        }
    }

    pub(super) fn refuse_join(&mut self, e: &JoinError, principal: &Principal) -> ControlFlow<()> {
        let refusal = Refusal::new(e.uri(), e.to_string(), Cause::NoSuchRole);
        counters().refused(e);
        if matches!(e, JoinError::NoSuchRole { .. }) {
            let method = Some(principal.authmethod);
            self.note_refused(
                &refusal,
                (&principal.authid, None),
                &principal.realm,
                method,
            );
        }
        self.refuse(&refusal.reason, &refusal.text)
    }

    /// Refuses somebody who asks for a realm that is not there.
    pub(super) fn refuse_unknown(&mut self, principal: &Principal) -> ControlFlow<()> {
        let Principal { realm, authid, .. } = principal;
        let refusal = no_realm(realm);
        self.note_refused(&refusal, (authid, None), realm, Some(principal.authmethod));
        self.refuse(&refusal.reason, &refusal.text)
    }

    fn refuse_unknown_realm(&mut self, realm: &str) -> ControlFlow<()> {
        let refusal = no_realm(realm);
        self.refuse(&refusal.reason, &refusal.text)
    }
}

fn no_realm(name: &str) -> Refusal {
    let text = match name {
        "" => "no realm was asked for, and none assigned".to_owned(),
        name => format!("no realm {name:?} exists on this router"),
    };
    Refusal::new("wamp.error.no_such_realm", text, Cause::NoSuchRealm)
}

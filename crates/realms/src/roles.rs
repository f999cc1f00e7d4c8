//! Operators' actions on a realm: starting and stopping roles, and stopping the realm.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use crosstie_front::end_reason::EndReason;
use crosstie_routing::{Role, SessionRemoval};
use crosstie_wamp::Payload;

use crate::farewell::{Farewell, close_for_return, say_goodbye};
use crate::payload_encodings::PayloadEncodings;
use crate::peer::Peer;
use crate::realm::SharedRealm;
use crate::started_role::StartedRole;

/// Maximum number of table entries whose sessions are ended under one lock: about a millisecond.
const ENDED_MAX: usize = 1_024;

impl SharedRealm {
    /// Refuses new sessions, and ends all others: with GOODBYE, or closed so that their clients return.
    pub fn stop(&self, says_goodbye: bool) -> Vec<Peer> {
        let removal = {
            let mut realm = self.realm.lock();
            self.stopped.store(true, Ordering::Relaxed);
            realm.end()
        };
        let farewell = says_goodbye.then_some(&Farewell::CLOSE_REALM);
        let ended = self.take_out(removal, EndReason::RealmStopped, farewell);
        self.timer.wake();
        if let Some(port) = &self.port {
            drop(port.stop());
        }
        ended
    }

    /// Adds a role. Returns whether its name is new.
    pub fn start_role(&self, role: &Role) -> bool {
        let mut roles = self.roles.lock();
        let is_new = self.realm.lock().start_role(role);
        if is_new {
            roles.push(StartedRole {
                role: role.clone(),
                started: SystemTime::now(),
            });
            self.note_trustlevels(&roles);
        }
        drop(roles);
        if let Some(router) = self.router() {
            router.comings.send_replace(());
        }
        is_new
    }

    /// Gives a role other permissions, bounds or another authorizer, from each session's next message on. Returns whether
    /// there is one of that name.
    pub fn change_role(&self, role: &Role) -> bool {
        let mut roles = self.roles.lock();
        let Some(started) = roles
            .iter_mut()
            .find(|started| started.role.name == role.name)
        else {
            return false;
        };
        started.role = role.clone();
        self.note_trustlevels(&roles);
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, EndReason::Killed, |realm, outbox| {
            realm.change_role(role, outbox)
        })
    }

    /// Removes a role, and ends its sessions with GOODBYE; `None` if the role does not exist.
    pub fn stop_role(&self, name: &str) -> Option<Vec<Peer>> {
        let mut roles = self.roles.lock();
        // The built-in role of every realm was not started, and is not stopped.
        if roles.iter().all(|started| started.role.name != name) {
            return None;
        }
        roles.retain(|started| started.role.name != name);
        self.note_trustlevels(&roles);
        let removal = self.realm.lock().stop_role(name)?;
        let farewell = Some(&Farewell::STOP_ROLE);
        Some(self.take_out(removal, EndReason::RoleStopped, farewell))
    }

    /// Updates the feature that WELCOME announces.
    fn note_trustlevels(&self, roles: &[StartedRole]) {
        let given = roles.iter().any(|of| of.role.gives_trustlevels());
        self.gives_trustlevels.store(given, Ordering::Relaxed);
    }

    /// Ends sessions, with GOODBYE or closed so that they return, holding the lock no longer than a turn.
    fn take_out(
        &self,
        mut removal: SessionRemoval,
        why: EndReason,
        farewell: Option<&Farewell<'_>>,
    ) -> Vec<Peer> {
        let now = self.now();
        let mut all = Vec::new();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        while let Some(ended) = self.enter_in_turn(&mut encodings, why, |realm, outbox| {
            let ended = realm.take_out(now, &mut removal, ENDED_MAX, outbox)?;
            ended.iter().for_each(|peer| match farewell {
                Some(farewell) => say_goodbye(&self.session_messages, peer, farewell),
                None => close_for_return(peer),
            });
            Some(ended)
        }) {
            all.extend(ended);
        }
        all
    }

    /// The roles, each with its number of sessions.
    pub fn roles(&self) -> Vec<(StartedRole, usize)> {
        let roles = self.roles.lock();
        let realm = self.realm.lock();
        let sessions = |started: &StartedRole| realm.role_sessions(&started.role.name);
        let counted = roles.iter().map(|s| (s.clone(), sessions(s).unwrap_or(0)));
        counted.collect()
    }

    /// Whether an authorizer judges the sessions of a role.
    pub(crate) fn asks_about(&self, authrole: &str) -> bool {
        let roles = self.roles.lock();
        let mut roles = roles.iter().map(|started| &started.role);
        roles.any(|role| role.authorizer.is_some() && role.name == authrole)
    }
}

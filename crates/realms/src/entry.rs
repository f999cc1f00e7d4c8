//! The end of a handshake: a session enters its realm and gets WELCOME.

use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use crosstie_auth::wamp::{Methods, Principal};
use crosstie_front::counters::{Counter, counters};
use crosstie_front::end_reason::EndReason;
use crosstie_routing::{Identity, JoinError, Refused as Unsent, error};
use crosstie_wamp::{Dict, MessageType, SessionId};

use crate::farewell::{Farewell, close_for_return, say_goodbye};
use crate::logins;
use crate::message_counts::Direction;
use crate::pending_handshake::Wishes;
use crate::realm::SharedRealm;
use crate::session::{Kind, Session, State};
use crate::welcome::Welcome;

impl Session {
    /// Joins the assigned realm, with the methods used for the login.
    pub fn join(
        &mut self,
        mut principal: Principal,
        wishes: Wishes,
        id: Option<SessionId>,
        methods: &Methods,
    ) -> ControlFlow<()> {
        let router = Arc::clone(&self.entrance.realms);
        let Some(realm) = router.realm(&principal.realm) else {
            return self.refuse_unknown(&principal);
        };
        let identity = logins::identity(&principal);
        if let Some(flow) = self.conclude_early(&principal, (&realm, &identity), id) {
            return flow;
        }
        if let Err(full) = self.enter_by_authid(&identity.authid) {
            return self.refuse_join(&full, &principal);
        }
        let to_remember = self.to_remember(&principal, methods);
        let extra = mem::take(&mut principal.authextra);
        let shown = shown(extra.clone());
        let kept = realm.asks_about(&identity.authrole).then(|| extra.clone());
        let own = realm
            .discloses_router
            .then_some((&*router.node, &*router.worker));
        let told = match self.resume_or_tell(&realm, &identity, wishes, (&extra, own)) {
            Ok(told) => told,
            Err(flow) => return flow,
        };
        let mut welcomed = Ok(());
        let mut joined_as = SessionId(0);
        let welcome = |session| {
            joined_as = session;
            let welcome = Welcome {
                session,
                realm: &realm,
                identity: &identity,
                extra: &extra,
                own,
                resumption: told.as_ref(),
            };
            welcomed = self.welcome(&welcome);
            welcomed.is_ok()
        };
        match realm.join(
            self.peer.clone(),
            identity.clone(),
            wishes.0,
            (id, &shown),
            welcome,
        ) {
            Ok(key) => {
                realm.log.session_joined(&self.peer, joined_as, &identity);
                self.begin((&realm, key), &identity, told.as_ref());
                if let Some(extra) = kept {
                    self.keep_extra(&realm, key, extra);
                }
                self.state = State::Joined { realm, key };
                if let Some((jar, who)) = self.cookies().zip(to_remember) {
                    jar.remember(&self.peer.connection, who);
                }
                self.refusals = 0;
            }
            Err(not_joined) => {
                self.leave_by_authid(&identity.authid);
                return self.refuse_not_joined(&not_joined, &principal);
            }
        }
        self.conclude(welcomed)
    }

    /// Ends a login that joins no realm: one that the listener does not admit, or a check.
    fn conclude_early(
        &mut self,
        principal: &Principal,
        (realm, identity): (&SharedRealm, &Identity),
        id: Option<SessionId>,
    ) -> Option<ControlFlow<()>> {
        let refused = self.refuse_unadmitted(principal, identity);
        if refused.is_some() || self.kind != Kind::Check {
            return refused;
        }
        let welcomed = self.welcome(&Welcome {
            // The checked login has no session. WELCOME needs an identifier all the same.
            session: id.unwrap_or(SessionId(1)),
            realm,
            identity,
            extra: &principal.authextra,
            own: None,
            resumption: None,
        });
        Some(self.conclude(welcomed))
    }

    /// Refuses a realm or a role that the listener does not admit.
    fn refuse_unadmitted(
        &mut self,
        principal: &Principal,
        identity: &Identity,
    ) -> Option<ControlFlow<()>> {
        let admits = self.entrance.admits.as_ref()?;
        match admits.get(&principal.realm) {
            None => Some(self.refuse_unknown(principal)),
            Some(roles) if !roles.contains(&*identity.authrole) => {
                let authrole = identity.authrole.to_string();
                Some(self.refuse_join(&JoinError::NoSuchRole { authrole }, principal))
            }
            Some(_) => None,
        }
    }

    pub(super) fn welcome(&self, welcome: &Welcome<'_>) -> Result<(), Unsent> {
        let sent = welcome.send(&self.peer);
        match sent {
            Ok(()) => {
                let messages = &self.entrance.realms.session_messages;
                messages.count(Direction::Sent, MessageType::Welcome);
            }
            Err(_) => counters().count(Counter::MessagesRefused),
        }
        sent
    }

    /// The session has joined; WELCOME was queued, or could not be.
    pub(super) fn conclude(&mut self, welcomed: Result<(), Unsent>) -> ControlFlow<()> {
        match welcomed {
            // The session joined while all clients were being closed.
            Ok(()) if self.entrance.is_stopping() => {
                match self.entrance.realms.says_goodbye {
                    true => {
                        let messages = &self.entrance.realms.session_messages;
                        say_goodbye(messages, &self.peer, &Farewell::SHUTDOWN);
                    }
                    false => close_for_return(&self.peer),
                }
                ControlFlow::Continue(())
            }
            Ok(()) => ControlFlow::Continue(()),
            Err(Unsent::TooLong) => self.abort(
                error::PAYLOAD_SIZE_EXCEEDED,
                "WELCOME is longer than you take",
            ),
            // A session without WELCOME cannot continue.
            Err(_) => {
                self.leave(EndReason::Closed);
                ControlFlow::Break(())
            }
        }
    }
}

/// The part of a session's `authextra` for other sessions, without values that only its own client needs.
fn shown(mut extra: Dict) -> Dict {
    extra.retain(|(key, _)| key != "verifier" && key != "scram_server_signature");
    extra
}

//! Sessions that outlive their connections for a while, and are resumed on new ones (wamp-proto's draft of "Session
//! Resumption", which the specification does not contain any more).
//!
//! A resumable session is *detached* when its connection ends: it keeps its subscriptions and registrations. Messages
//! to it are refused, except events that it has to acknowledge: these wait in its line. When it is resumed, it gets a
//! new handle, and its line is sent from the beginning.

use crosstie_wamp::SessionId;

use crate::detached::{LOOK_US, Resumable, ResumeBytes};
use crate::identity::SessionIndex;
use crate::{ClientFeatures, Identity, Outbox, Realm, SessionKey, Time};

impl<H> Realm<H> {
    /// Makes a session resumable by a client that shows this token.
    pub fn keep_resumable(&mut self, session: SessionKey, token: ResumeBytes) {
        if let Some(index) = self.sessions.find(session) {
            let rare = self.sessions[index].rare.get_or_insert_default();
            rare.resumable = Some(Box::new(Resumable {
                token,
                until: None,
                is_resumed: false,
            }));
        }
    }

    /// Handles the end of a session's connection; returns whether the session waits for another one. Its key is invalid
    /// from now on.
    pub fn detach(&mut self, now: Time, session: SessionKey, out: &mut dyn Outbox<H>) -> bool {
        let Some(resumption) = &self.config.resumption else {
            return false;
        };
        let Some(index) = self.sessions.find(session) else {
            return false;
        };
        let until = Time(
            now.0
                .saturating_add(resumption.window_ms.saturating_mul(1_000)),
        );
        let rare = self.sessions[index].rare.as_mut();
        let Some(resumable) = rare.and_then(|rare| rare.resumable.as_mut()) else {
            return false;
        };
        resumable.until = Some(until);
        self.sessions.rename(index);
        if self.detached.line.is_empty() {
            self.detached.next_look = Time(now.0.saturating_add(LOOK_US));
        }
        self.detached.line.insert((until, index));
        self.work(now, self.steps_at_once_max, out);
        true
    }

    /// Moves a resumable session to another connection, if `is_token` accepts its token and the principal is the same;
    /// returns its new key and its identity. A connection that still has the session is closed. The owner then sends
    /// WELCOME, and calls [`Realm::deliver_again`].
    pub fn resume(
        &mut self,
        session: SessionId,
        (identity, features): (&Identity, ClientFeatures),
        handle: H,
        is_token: impl Fn(&ResumeBytes) -> bool,
        out: &mut dyn Outbox<H>,
    ) -> Option<(SessionKey, Identity)> {
        let index = self.sessions.find_id(session);
        let resumable = index.and_then(|index| {
            let rare = self.sessions[index].rare.as_ref()?;
            rare.resumable.as_deref()
        });
        // If there is no such session, a token is compared all the same, for equal timing.
        let is_token = is_token(&resumable.map_or([0; 32], |resumable| resumable.token));
        let index = index.filter(|_| resumable.is_some() && is_token)?;
        let session = &mut self.sessions[index];
        if !is_same(&session.identity, identity) || session.closing {
            return None;
        }
        let rare = session.rare.as_mut()?;
        if let Some(resumable) = &mut rare.resumable {
            resumable.is_resumed = true;
            if let Some(until) = resumable.until.take() {
                self.detached.line.remove(&(until, index));
            }
        }
        if let Some(deliveries) = &mut rare.deliveries {
            deliveries.send_again();
        }
        session.features = features;
        let before = std::mem::replace(&mut session.handle, handle);
        out.resumed(&before, &session.handle);
        let identity = session.identity.clone();
        Some((self.sessions.rename(index), identity))
    }

    /// Makes a session not resumable; returns whether it was waiting for its client.
    pub(crate) fn forget_resumable(&mut self, index: SessionIndex) -> bool {
        let rare = self.sessions[index].rare.as_mut();
        let resumable = rare.map(|rare| &mut rare.resumable);
        let is_waiting = |resumable: &Resumable| resumable.until.is_some();
        match resumable {
            Some(Some(resumable)) if is_waiting(resumable) => true,
            Some(resumable) => {
                *resumable = None;
                false
            }
            None => false,
        }
    }

    /// Sends a resumed session its unacknowledged events.
    pub fn deliver_again(&mut self, now: Time, session: SessionKey, out: &mut dyn Outbox<H>) {
        let Some(index) = self.sessions.find(session) else {
            return;
        };
        let (broker, _, mut context) = self.split(now, out);
        broker.deliver_again(&mut context, index);
        self.remove_closed(now, out);
    }

    /// Whether the realm's sessions may be resumed.
    pub fn is_resumable(&self) -> bool {
        self.config.resumption.is_some()
    }

    /// Ends detached sessions that expired, or for which there is no room.
    pub(crate) fn give_up_detached(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let sessions_max = match &self.config.resumption {
            Some(resumption) => resumption.sessions_max,
            None => return,
        };
        let mut looks = now >= self.detached.next_look;
        while let Some((until, index)) = self.detached.line.first().copied() {
            let is_over = until <= now || self.detached.line.len() > sessions_max;
            if !(is_over || looks && out.is_short()) {
                break;
            }
            // Its holdings are removed later: ending one was enough for now.
            looks = looks && is_over;
            self.begin_leave(index, out);
        }
        if now >= self.detached.next_look {
            self.detached.next_look = Time(now.0.saturating_add(LOOK_US));
        }
    }

    /// Asserts that the line has exactly the waiting sessions.
    pub(crate) fn check_detached(&self) {
        let joined = self.sessions.joined();
        let waiting = joined.filter_map(|(index, session)| {
            let rare = session.rare.as_ref()?;
            Some((rare.resumable.as_ref()?.until?, index))
        });
        assert_eq!(self.detached.line, waiting.collect());
    }
}

/// Whether a session belongs to the same principal. Anonymous clients have another authid each time, and only the
/// token.
fn is_same(known: &Identity, came: &Identity) -> bool {
    known.authrole == came.authrole
        && known.authmethod == came.authmethod
        && (known.authid == came.authid || &*known.authmethod == ANONYMOUS)
}

const ANONYMOUS: &str = "anonymous";

//! Administrative inputs: starting, changing and stopping roles, and taking sessions out, in turns.

use crosstie_wamp::SessionId;

use crate::authz::RoleIndex;
use crate::session::Session;
use crate::{Outbox, Realm, Role, Time};

/// The progress of taking sessions out ([`Realm::take_out`]).
#[derive(Debug)]
pub struct SessionRemoval {
    /// The sessions with this role; `None` means all.
    role: Option<RoleIndex>,
    place_next: usize,
}

impl<H> Realm<H> {
    /// Adds a role; returns whether there was none of that name.
    pub fn start_role(&mut self, role: &Role) -> bool {
        let is_new = self.roles.find(&role.name).is_none();
        if is_new {
            self.roles.insert(role, &mut self.random);
        }
        is_new
    }

    /// Gives a role other permissions, bounds or another authorizer; returns whether there is one of that name. They
    /// hold from each session's next message on. Subscriptions and registrations stay.
    pub fn change_role(&mut self, role: &Role, out: &mut dyn Outbox<H>) -> bool {
        let Some(index) = self.roles.find(&role.name) else {
            return false;
        };
        self.roles
            .change(index, role, &self.sessions, &mut self.random);
        out.keep(self.roles.decision_bytes());
        true
    }

    /// Stops a role: no session joins with it any more. [`Realm::take_out`] takes its sessions out. `None` if there is
    /// no such role.
    pub fn stop_role(&mut self, name: &str) -> Option<SessionRemoval> {
        let role = self.roles.find(name)?;
        self.roles.stop(role);
        Some(SessionRemoval {
            role: Some(role),
            place_next: 0,
        })
    }

    /// Begins to take every session out by [`Realm::take_out`]; a session that joins in the meantime may stay.
    pub fn end(&mut self) -> SessionRemoval {
        SessionRemoval {
            role: None,
            place_next: 0,
        }
    }

    /// Takes out the sessions at that many places of the table, so that other inputs have their turns between such
    /// parts. These sessions are sent nothing more. `None` if all are out.
    ///
    /// The remaining sessions are told of the ends, including those that are taken out in a later part.
    pub fn take_out(
        &mut self,
        now: Time,
        removal: &mut SessionRemoval,
        places_max: usize,
        out: &mut dyn Outbox<H>,
    ) -> Option<Vec<H>>
    where
        H: Clone,
    {
        let first = removal.place_next;
        if first >= self.sessions.places() {
            removal.place_next = usize::MAX;
            if let Some(role) = removal.role.take() {
                self.roles.remove(role);
                out.keep(self.roles.decision_bytes());
            }
            return None;
        }
        removal.place_next = first.saturating_add(places_max);
        let is_meant = |s: &Session<H>| removal.role.is_none_or(|role| s.role == role);
        let places = first..removal.place_next.min(self.sessions.places());
        let meant = places.filter_map(|place| {
            let (index, session) = self.sessions.at(place)?;
            is_meant(session).then(|| (index, session.handle.clone()))
        });
        let meant: Vec<_> = meant.collect();
        let handles = meant.into_iter().map(|(index, handle)| {
            self.begin_leave(index, out);
            handle
        });
        let handles = handles.collect();
        self.work(now, self.steps_at_once_max, out);
        Some(handles)
    }

    /// Removes the session with that id, which is sent nothing more; `None` if there is none.
    pub fn end_session(&mut self, now: Time, id: SessionId, out: &mut dyn Outbox<H>) -> Option<H>
    where
        H: Clone,
    {
        let index = self.sessions.find_id(id)?;
        let handle = self.sessions[index].handle.clone();
        self.begin_leave(index, out);
        self.work(now, self.steps_at_once_max, out);
        Some(handle)
    }
}

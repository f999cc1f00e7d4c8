//! What whoever runs a realm does to it: roles come and go, and sessions are taken out, in turns.

use crosstie_wamp::SessionId;

use crate::authz::RoleIndex;
use crate::session::Session;
use crate::{Outbox, Realm, Role, Time};

/// Sessions that are being taken out, and how far that has come ([`Realm::take_out`]).
#[derive(Debug)]
pub struct TakingOut {
    /// Those who have it; `None` for all.
    role: Option<RoleIndex>,
    place_next: usize,
}

impl<H> Realm<H> {
    /// Adds a role; whether there was none of that name.
    pub fn start_role(&mut self, role: &Role) -> bool {
        let is_new = self.roles.find(&role.name).is_none();
        if is_new {
            self.roles.insert(role, &mut self.random);
        }
        is_new
    }

    /// Stops a role: nobody joins with it any more, and those who have it are to be taken out by
    /// [`Realm::take_out`]. `None` if there is no such role.
    pub fn stop_role(&mut self, name: &str) -> Option<TakingOut> {
        let role = self.roles.find(name)?;
        self.roles.stop(role);
        Some(TakingOut {
            role: Some(role),
            place_next: 0,
        })
    }

    /// Every session is to be taken out by [`Realm::take_out`]; whoever joins meanwhile may stay.
    pub fn end(&mut self) -> TakingOut {
        TakingOut {
            role: None,
            place_next: 0,
        }
    }

    /// Takes sessions out, none of which is sent anything more: those at so many places of the table,
    /// so that others have their turns between such parts. `None` if all are out.
    ///
    /// What one of them leaves open is told to those who stay, and to those who go in a later part.
    pub fn take_out(
        &mut self,
        now: Time,
        taking_out: &mut TakingOut,
        places_max: usize,
        out: &mut dyn Outbox<H>,
    ) -> Option<Vec<H>>
    where
        H: Clone,
    {
        let first = taking_out.place_next;
        if first >= self.sessions.places() {
            taking_out.place_next = usize::MAX;
            if let Some(role) = taking_out.role.take() {
                self.roles.remove(role);
                out.keep(self.roles.decision_bytes());
            }
            return None;
        }
        taking_out.place_next = first.saturating_add(places_max);
        let is_meant = |s: &Session<H>| taking_out.role.is_none_or(|role| s.role == role);
        let places = first..taking_out.place_next.min(self.sessions.places());
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

    /// Removes the session of that id, which is sent nothing more; `None` if there is none.
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

//! Removes a session's part in a registration, and with the last part the registration.

use super::{CALLEE_BYTES, Registrations};
use crate::across::EndTold;
use crate::context::Context;
use crate::events::REGISTRATION;
use crate::identity::SessionIndex;
use crate::keys::RegistrationKey;

impl Registrations {
    pub(super) fn remove_callee<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        session: SessionIndex,
    ) {
        let told = self.remove_quietly(context, session, key);
        self.tell_others(context, key, told);
        if !self[key].is_own() && self[key].across.is_none() {
            self.delete(key);
        }
    }

    /// Removes a session's part, after which the registration may have no callees; returns whether its end is
    /// announced.
    pub(super) fn remove_quietly<H>(
        &mut self,
        context: &mut Context<'_, H>,
        session: SessionIndex,
        key: RegistrationKey,
    ) -> EndTold {
        context.sessions[session].registrations.remove(&key);
        let registration = &mut self.slab[key.0 as usize];
        let parts = registration.across.as_deref();
        let untold = parts.and_then(|parts| parts.untold);
        let is_pending = registration.forget_pending(session);
        registration.callees.leave(session);
        let is_payer = registration.payer == Some(session);
        if is_payer {
            registration.payer = None;
        }
        let bytes = registration.bytes();
        let is_gone = registration.callees.is_empty();
        let what = (registration.id.0, &*registration.procedure);
        let mut told = EndTold::Yes;
        if !is_pending {
            let id = context.sessions[session].id;
            let is_deleted = is_gone && registration.is_last();
            context.events.exited(&REGISTRATION, id, what, is_deleted);
            if is_gone && !is_deleted {
                told = EndTold::No(id);
                if let Some(parts) = &mut registration.across {
                    parts.untold = Some(id);
                }
            }
        } else if is_gone {
            // An earlier end may not have been announced yet.
            told = untold.map_or(EndTold::NothingBegun, EndTold::No);
            if registration.across.is_none()
                && let Some(session) = untold
            {
                context.events.ended_elsewhere(&REGISTRATION, session, what);
            }
        }
        if is_gone && !is_pending {
            self.note_gone(context, key);
        }
        self.refund(context, session, is_payer.then_some(bytes));
        told
    }

    /// Releases the memory of a session's part, and of the registration if it was on the session's account.
    pub(super) fn refund<H>(
        &mut self,
        context: &mut Context<'_, H>,
        session: SessionIndex,
        paid: Option<isize>,
    ) {
        self.held -= 1;
        context.hold(session, -(CALLEE_BYTES + paid.unwrap_or(0)));
    }
}

//! Revokes registrations from their callees.

use std::mem;

use crosstie_wamp::{Message, RegistrationId, RequestId, Revoked};

use super::super::callees::Callees;
use super::Registrations;
use crate::ClientFeature;
use crate::across::{Crossing, EndTold};
use crate::context::Context;
use crate::events::REGISTRATION;
use crate::fault::error;
use crate::identity::SessionIndex;
use crate::keys::RegistrationKey;

impl Registrations {
    /// Removes a registration from all callees of this node without telling them; returns those that had been sent
    /// REGISTERED. The registration is gone then, unless other nodes have callees.
    pub(in super::super) fn take_from_all<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
    ) -> Vec<SessionIndex> {
        let pending = self[key].pending().iter().map(|callee| callee.session);
        let mut told = EndTold::NothingBegun;
        for session in pending.collect::<Vec<_>>() {
            told = self.remove_quietly(context, session, key);
        }
        let registration = &mut self.slab[key.0 as usize];
        let none = Callees::new(registration.callees.policy());
        let callees = mem::replace(&mut registration.callees, none);
        let (payer, bytes) = (registration.payer.take(), registration.bytes());
        let mut left = callees.len();
        for callee in callees.iter() {
            left -= 1;
            let registration = &self.slab[key.0 as usize];
            let what = (registration.id.0, &*registration.procedure);
            let id = context.sessions[callee.session].id;
            context.events.exited(&REGISTRATION, id, what, left == 0);
            context.sessions[callee.session].registrations.remove(&key);
            self.refund(
                context,
                callee.session,
                (payer == Some(callee.session)).then_some(bytes),
            );
        }
        if !callees.is_empty() {
            self.note_gone(context, key);
        }
        context.spend(callees.len() as u32);
        if !callees.is_empty() {
            told = EndTold::Yes;
        }
        self.tell_others(context, key, told);
        if self[key].across.is_none() {
            self.delete(key);
        }
        callees.iter().map(|callee| callee.session).collect()
    }

    /// This node's last callee has gone: queued calls look for another.
    pub(super) fn note_gone<H>(&mut self, context: &mut Context<'_, H>, key: RegistrationKey) {
        self.own_count -= 1;
        let registration = &mut self.slab[key.0 as usize];
        if let Some(parts) = registration.across.as_deref_mut()
            && mem::take(&mut parts.is_leased)
        {
            registration.tidy();
            context.out.give_up(registration.pattern());
        }
        if registration.calls_wait_max > 0 {
            self.ended.push(registration.id);
        }
    }

    /// Revokes a registration from all its callees, on all nodes. Those that support revocation are told. Its open
    /// calls stay open until they are answered.
    pub(super) fn revoke<H>(&mut self, context: &mut Context<'_, H>, key: RegistrationKey) {
        let nodes: Vec<_> = self[key].elsewhere().iter().map(|part| part.node).collect();
        for node in nodes {
            let _ = context.cross(node.into(), &Crossing::Revoke(self[key].pattern()));
        }
        self.revoke_here(context, key);
    }

    /// Revokes it from the callees of this node: a session of another node takes it over.
    pub(in super::super) fn revoke_here<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
    ) {
        let id = self[key].id;
        for session in self.take_from_all(context, key) {
            tell_revoked(context, session, id, Some(error::UNREGISTERED));
        }
    }

    /// Removes a registration from one of its callees, as its own UNREGISTER would; returns whether it was one.
    pub(in super::super) fn revoke_from<H>(
        &mut self,
        context: &mut Context<'_, H>,
        registration: RegistrationId,
        callee: SessionIndex,
        reason: Option<&str>,
    ) -> bool {
        let was_there = self.remove(context, callee, registration);
        if was_there {
            tell_revoked(context, callee, registration, reason);
        }
        was_there
    }
}

/// Tells a callee which registration it lost, if it supports revocation: another client would take the message for a
/// violation.
pub(in super::super) fn tell_revoked<H>(
    context: &mut Context<'_, H>,
    callee: SessionIndex,
    registration: RegistrationId,
    reason: Option<&str>,
) {
    let features = context.sessions[callee].features;
    if !features.has(ClientFeature::CalleeRegistrationRevocation) {
        return;
    }
    let unregistered = Message::Unregistered {
        request: RequestId(0),
        revoked: Some(Revoked {
            id: registration,
            reason: reason.map(Into::into),
        }),
    };
    let _ = context.reply(callee, &unregistered);
}

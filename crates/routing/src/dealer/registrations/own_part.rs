//! This node's part in a registration: how it begins, and how pending callees are let in.

use crosstie_wamp::{InvocationPolicy, MatchPolicy, RegisterOptions, RegistrationId};

use super::super::callees::{Callee, Callees};
use super::super::parts::is_conflict;
use super::{Registration, Registrations};
use crate::context::Context;
use crate::events::REGISTRATION;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::keys::RegistrationKey;
use crate::rendezvous::{check_key, shared_id};

impl Registrations {
    /// Lets a callee in: it may be called from now on.
    pub(super) fn let_in<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        callee: Callee,
    ) {
        let registration = &mut self.slab[key.0 as usize];
        let is_new = registration.callees.is_empty();
        registration.callees.enter(callee);
        if let Some(parts) = &mut registration.across {
            (parts.is_told, parts.untold) = (false, None);
        }
        self.own_count += usize::from(is_new);
        let registration = &self.slab[key.0 as usize];
        let session = context.sessions[callee.session].id;
        let is_created = is_new && registration.is_first(self.own);
        context
            .events
            .entered(&REGISTRATION, session, &registration.entry(), is_created);
    }

    /// Refuses sticky registrations in a cluster: a node does not know which callees another node's callers were
    /// assigned.
    pub(super) fn check_sharing(&self, options: &RegisterOptions) -> Result<(), Fault> {
        if let Some(nkey) = options.nkey.as_deref() {
            check_key("nkey", nkey)?;
        }
        if options.invoke != InvocationPolicy::Sticky || !self.has_nodes() {
            return Ok(());
        }
        let text = "invoke \"x_sticky\" is not served in a realm of several nodes";
        Err(Fault::new(error::OPTION_NOT_ALLOWED, text))
    }

    /// Returns the id of a new registration: the same on all nodes of a cluster, else the next number.
    pub(super) fn new_id(&mut self, policy: MatchPolicy, procedure: &str) -> RegistrationId {
        if self.has_nodes() {
            let is_free = |id| !self.by_id.contains_key(&RegistrationId(id));
            if let Some(id) = shared_id(self.scope, policy, procedure, is_free) {
                return RegistrationId(id);
            }
        }
        loop {
            self.id_last += 1;
            let id = RegistrationId(self.id_last);
            if !self.has_nodes() || !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    pub(in super::super) fn has_nodes(&self) -> bool {
        self.own != 0
    }

    /// Lets a pending callee in; returns whether the session is a callee.
    pub(in super::super) fn let_pending_in<H>(
        &mut self,
        context: &mut Context<'_, H>,
        session: SessionIndex,
        (id, number): (RegistrationId, u64),
    ) -> bool {
        let Some(key) = self.of_id(id) else {
            return false;
        };
        if !context.sessions[session].registrations.contains(&key) {
            return false;
        }
        let registration = &mut self.slab[key.0 as usize];
        let of_session = |callee: &Callee| callee.session == session && callee.number == number;
        if let Some(parts) = &mut registration.across
            && let Some(place) = parts.pending.iter().position(of_session)
        {
            let callee = parts.pending.remove(place);
            registration.tidy();
            self.let_in(context, key, callee);
            return true;
        }
        registration.callees.iter().any(of_session)
    }

    /// Notes that the callee is the only one while its node's lease lasts.
    pub(in super::super) fn note_leased(&mut self, id: RegistrationId) {
        if let Some(key) = self.of_id(id) {
            self[key].across.get_or_insert_default().is_leased = true;
        }
    }

    /// All registrations with callees of this node or another one.
    pub(in super::super) fn all_served(&self) -> impl Iterator<Item = &Registration> {
        let all = self.slab.iter().map(|(_, registration)| registration);
        all.filter(|registration| registration.is_served())
    }

    /// Whether the registration still exists.
    pub(in super::super) fn holds(&self, key: RegistrationKey) -> bool {
        self.slab.contains(key.0 as usize)
    }

    /// Size of the table: every registration's place is below it.
    pub(in super::super) fn places(&self) -> u32 {
        self.slab.capacity() as u32
    }

    pub(in super::super) fn at(&self, place: u32) -> Option<&Registration> {
        self.slab.get(place as usize)
    }

    /// Whether all callees of a registration have left; then it is removed, too.
    #[cold]
    pub(in super::super) fn is_left<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
    ) -> bool {
        let has_left = |callee: &Callee| context.sessions[callee.session].closing;
        if self[key].callees.is_empty() || !self[key].callees.iter().all(has_left) {
            return false;
        }
        self.take_from_all(context, key);
        !self.holds(key)
    }
}

impl Registration {
    /// Whether the registration began here: no compatible part of another node precedes this one.
    fn is_first(&self, own: u64) -> bool {
        let policy = self.callees.policy();
        !self.elsewhere().iter().any(|part| {
            let is_before = (part.claim, part.incarnation) < (self.claim, own);
            is_before && !is_conflict(part.policy, policy)
        })
    }

    /// Whether the registration ends with this node's last callee: no compatible part of another node remains.
    pub(super) fn is_last(&self) -> bool {
        let policy = self.callees.policy();
        let mut elsewhere = self.elsewhere().iter();
        elsewhere.all(|part| is_conflict(part.policy, policy))
    }

    /// Begins this node's part with its first callee.
    pub(super) fn begin(&mut self, policy: InvocationPolicy, number: u64) {
        self.callees = Callees::new(policy);
        // A part that takes over by force precedes the others.
        let first = self.elsewhere().iter().map(|part| part.claim).min();
        self.claim = first.map_or(number, |first| match may_be_beside(self, policy) {
            true => number,
            false => first.min(number) - 1,
        });
    }

    /// Replaces the options of a session's callee; returns its number, if it is pending.
    pub(super) fn replace(&mut self, callee: Callee) -> Option<u64> {
        let of_session = |known: &&mut Callee| known.session == callee.session;
        let parts = self.across.as_deref_mut();
        if let Some(known) = parts.and_then(|parts| parts.pending.iter_mut().find(of_session)) {
            *known = Callee {
                number: known.number,
                ..callee
            };
            return Some(known.number);
        }
        self.callees.enter(callee);
        None
    }

    /// The number of a session's callee.
    pub(super) fn number_of(&self, session: SessionIndex) -> Option<u64> {
        let mut all = self.callees.iter().chain(self.pending());
        let found = all.find(|callee| callee.session == session);
        found.map(|callee| callee.number)
    }

    /// Removes a session's pending callee; returns whether there was one.
    pub(super) fn forget_pending(&mut self, session: SessionIndex) -> bool {
        let Some(parts) = &mut self.across else {
            return false;
        };
        let of_session = |callee: &Callee| callee.session == session;
        let Some(place) = parts.pending.iter().position(of_session) else {
            return false;
        };
        let callee = parts.pending.remove(place);
        self.callees.set_node_key(callee.number, None);
        self.tidy();
        true
    }
}

/// Whether callees with that policy are compatible with those of other nodes.
fn may_be_beside(registration: &Registration, policy: InvocationPolicy) -> bool {
    let mut elsewhere = registration.elsewhere().iter();
    elsewhere.all(|part| !is_conflict(part.policy, policy))
}

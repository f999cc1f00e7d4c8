//! The sessions of a realm: their identity and their holdings.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops;

use crosstie_collections::{PlaceMap, mix};
use crosstie_wamp::{Disclosed, ID_MAX, RequestId, SessionId};
use slab::Slab;

use crate::authz::RoleIndex;
use crate::broker::SubscriptionKey;
use crate::call_table::CallTable;
use crate::companions::Companions;
use crate::deliveries::Deliveries;
use crate::detached::Resumable;
use crate::identity::{Identity, SessionIndex, SessionKey};
use crate::keys::{CallKey, RegistrationKey};
use crate::neighbours::Neighbours;
use crate::party::Party;
use crate::random::Random;
use crate::rare_set::RareSet;
use crate::room::Room;
use crate::testaments::Testaments;
use crate::{ClientFeature, ClientFeatures, RequestIdCheck, RoleLimits, Time, Violation};

/// One session in the realm.
#[derive(Debug)]
pub(crate) struct Session<H> {
    pub(crate) handle: H,
    pub(crate) id: SessionId,
    pub(crate) identity: Identity,
    pub(crate) role: RoleIndex,
    pub(crate) features: ClientFeatures,
    pub(crate) joined: Time,
    /// 0 once it has left: its key is invalid, and its holdings are removed later.
    generation: u32,
    /// Closed or left: it is sent nothing more.
    pub(crate) closing: bool,
    /// Whether it is a client's session that has been announced: its end will be, too. The router's own sessions are
    /// not announced.
    pub(crate) is_welcomed: bool,
    /// The last request id that the session used, which is also the highest; with [`RequestIdCheck::Loose`] the
    /// highest.
    request_last: u64,
    /// The last invocation id that it was sent.
    pub(crate) invocation_last: u64,
    /// Maximum number of its open calls: the realm's bound, or its role's.
    pub(crate) calls_max: u32,
    /// Open calls that it made.
    pub(crate) calls: CallTable,
    /// Open calls that it serves.
    pub(crate) invocations: CallTable,
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) subscriptions: RareSet<SubscriptionKey>,
    pub(crate) registrations: RareSet<RegistrationKey>,
}

/// State that few sessions have; one word for the others.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// Its progressive calls that ended before their last CALL arrived, oldest first.
    #[expect(clippy::box_collection, reason = "few sessions have one")]
    pub(crate) unfinished: Option<Box<VecDeque<RequestId>>>,
    /// Publications for the time when it has left.
    pub(crate) testaments: Testaments,
    /// The `authextra` of its authentication, in CBOR; empty if there was none.
    pub(crate) authextra: Box<[u8]>,
    /// Its bounds by its listener.
    pub(crate) limits: Option<Box<RoleLimits>>,
    pub(crate) companions: Companions,
    /// Events that it has to acknowledge.
    pub(crate) deliveries: Option<Box<Deliveries>>,
    /// Set if it may be resumed.
    pub(crate) resumable: Option<Box<Resumable>>,
}

impl<H> Session<H> {
    /// Drops empty state.
    pub(crate) fn tidy(&mut self) {
        let is_empty = |rare: &mut Box<Rare>| {
            let Rare {
                unfinished,
                testaments,
                authextra,
                limits,
                companions,
                deliveries,
                resumable,
            } = &**rare;
            let is_free = limits.is_none() && authextra.is_empty();
            is_free
                && unfinished.is_none()
                && testaments.is_empty()
                && companions.is_empty()
                && deliveries.is_none()
                && resumable.is_none()
        };
        self.rare.take_if(is_empty);
    }

    /// Its bounds: those of its role, and those of its listener.
    pub(crate) fn limits(&self, of_role: RoleLimits) -> RoleLimits {
        let own = self.rare.as_ref().and_then(|rare| rare.limits.as_deref());
        own.map_or(of_role, |own| of_role.least(*own))
    }

    /// Bytes that are kept until it is gone: its authentication's, and its assigned callees'.
    pub(crate) fn kept_bytes(&self) -> usize {
        let rare = self.rare.as_deref();
        rare.map_or(0, |rare| {
            let unacknowledged = rare.deliveries.as_ref();
            let unacknowledged = unacknowledged.map_or(0, |line| line.bytes());
            rare.authextra.len() + rare.companions.bytes() + unacknowledged
        })
    }

    /// Marks a leaving session; returns whether it has testaments, and needs its role until they are published.
    pub(crate) fn keep_role(&mut self) -> bool {
        let rare = self.rare.as_deref_mut();
        rare.is_some_and(|rare| rare.testaments.keep_role())
    }

    /// Whether that was returned.
    pub(crate) fn keeps_role(&self) -> bool {
        let rare = self.rare.as_deref();
        rare.is_some_and(|rare| rare.testaments.keeps_role())
    }

    /// Whether every event of its subscriptions waits for its acknowledgement: a resumable session must not miss any.
    pub(crate) fn acknowledges_all(&self) -> bool {
        let rare = self.rare.as_deref();
        let is_resumable = rare.is_some_and(|rare| rare.resumable.is_some());
        is_resumable
            && self
                .features
                .has(ClientFeature::SubscriberAcknowledgedEventDelivery)
    }

    /// Makes a leaving session not resumable; returns when it would have expired, if it was detached.
    pub(crate) fn take_waiting(&mut self) -> Option<Time> {
        let resumable = self.rare.as_mut()?.resumable.take()?;
        resumable.until
    }

    /// Whether it has not left.
    pub(crate) fn is_in(&self) -> bool {
        self.generation != 0
    }

    /// Checks the id of a new request (not of a CALL that continues a progressive one).
    #[inline]
    pub(crate) fn take_request(
        &mut self,
        request: RequestId,
        check: RequestIdCheck,
    ) -> Result<(), Violation> {
        match check {
            RequestIdCheck::Loose => {
                self.request_last = self.request_last.max(request.0);
                Ok(())
            }
            RequestIdCheck::Strict => self.take_next_request(request),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_next_request(&mut self, request: RequestId) -> Result<(), Violation> {
        if request.0 != self.request_last.wrapping_add(1) {
            self.check_wrap(request)?;
        }
        self.request_last = request.0;
        Ok(())
    }

    /// The highest request id until now.
    pub(crate) fn requests(&self) -> u64 {
        self.request_last
    }

    /// Whether an id is above all that it has used: then it cannot belong to an earlier call.
    pub(crate) fn is_beyond(&self, request: RequestId) -> bool {
        request.0 > self.request_last
    }

    /// Restores the request id, because the same request will be handled again.
    pub(crate) fn give_back_request(&mut self, check: RequestIdCheck) {
        if check == RequestIdCheck::Strict {
            self.request_last = self.request_last.wrapping_sub(1);
        }
    }

    /// Checks an id that is not the last one's successor: after the highest one comes 1.
    #[cold]
    fn check_wrap(&self, request: RequestId) -> Result<(), Violation> {
        let expected = match self.request_last >= ID_MAX {
            true => 1,
            false => self.request_last + 1,
        };
        if request.0 == expected {
            return Ok(());
        }
        Err(Violation::new(format!(
            "request id {request} is out of sequence; expected {expected}"
        )))
    }

    /// The identity that others see when this session is disclosed.
    pub(crate) fn disclosed(&self) -> Disclosed<'_> {
        Disclosed {
            session: self.id,
            authid: Cow::Borrowed(&*self.identity.authid),
            authrole: Cow::Borrowed(&*self.identity.authrole),
        }
    }
}

/// All sessions of a realm.
#[derive(Debug)]
pub(crate) struct Sessions<H> {
    slab: Slab<Session<H>>,
    room: Room,
    by_id: PlaceMap,
    /// Sessions that were closed, to be removed when the present input is done.
    doomed: Vec<SessionIndex>,
    generation_last: u32,
    /// Number of announced sessions that have not left.
    welcomed: usize,
    /// The realm's other nodes, which make and serve calls as sessions do.
    pub(crate) neighbours: Neighbours,
}

impl<H> Sessions<H> {
    pub(crate) fn new() -> Self {
        Self {
            slab: Slab::new(),
            room: Room::default(),
            by_id: PlaceMap::default(),
            doomed: Vec::new(),
            generation_last: 0,
            welcomed: 0,
            neighbours: Neighbours::default(),
        }
    }

    /// The open calls that a party made.
    #[inline]
    pub(crate) fn calls_of(&mut self, party: Party) -> &mut CallTable {
        match party.neighbour() {
            None => &mut self.slab[party.place()].calls,
            Some(neighbour) => &mut self.neighbours[neighbour].calls,
        }
    }

    /// The open calls that a party serves.
    #[inline]
    pub(crate) fn invocations_of(&mut self, party: Party) -> &mut CallTable {
        match party.neighbour() {
            None => &mut self.slab[party.place()].invocations,
            Some(neighbour) => &mut self.neighbours[neighbour].invocations,
        }
    }

    /// The open call of a caller, which may have gone, with that request id.
    pub(crate) fn call(&self, caller: Party, request: RequestId) -> Option<CallKey> {
        let calls = match caller.neighbour() {
            None => &self.slab.get(caller.place())?.calls,
            Some(neighbour) => &self.neighbours.get(neighbour)?.calls,
        };
        calls.get(request)
    }

    /// The open call of a callee with that invocation id.
    pub(crate) fn invocation(&self, callee: Party, id: RequestId) -> Option<CallKey> {
        let invocations = match callee.neighbour() {
            None => &self.slab[callee.place()].invocations,
            Some(neighbour) => &self.neighbours[neighbour].invocations,
        };
        invocations.get(id)
    }

    /// Adds a session, under the id that it was told before, if that is free.
    pub(crate) fn insert(
        &mut self,
        told: Option<SessionId>,
        handle: H,
        identity: Identity,
        role: RoleIndex,
        features: ClientFeatures,
        joined: Time,
        random: &mut Random,
    ) -> (SessionKey, SessionId) {
        let told = told.filter(|id| self.find_id(*id).is_none());
        let id = told.unwrap_or_else(|| {
            loop {
                let id = random.session_id();
                if self.find_id(id).is_none() {
                    break id;
                }
            }
        });
        // A wrapped counter would let a key from 2^32 joins ago name another session.
        self.generation_last = self.generation_last.wrapping_add(1).max(1);
        let generation = self.generation_last;
        let index = SessionIndex(self.slab.insert(Session {
            handle,
            id,
            identity,
            role,
            features,
            joined,
            generation,
            closing: false,
            is_welcomed: false,
            request_last: 0,
            invocation_last: 0,
            calls_max: u32::MAX,
            calls: CallTable::default(),
            invocations: CallTable::default(),
            rare: None,
            subscriptions: RareSet::new(),
            registrations: RareSet::new(),
        }) as u32);
        self.by_id.insert_new(mix(id.0), index.0);
        (SessionKey { index, generation }, id)
    }

    /// Notes that a session has been sent its WELCOME.
    pub(crate) fn welcome(&mut self, index: SessionIndex) {
        let was_welcomed = std::mem::replace(&mut self[index].is_welcomed, true);
        self.welcomed += usize::from(!was_welcomed);
    }

    /// Number of sessions visible to the meta API.
    pub(crate) fn welcomed(&self) -> usize {
        self.welcomed
    }

    /// Takes a session out: it cannot be found any more, and is sent nothing. It keeps its place until it is removed,
    /// so that references to it stay valid.
    pub(crate) fn leave(&mut self, index: SessionIndex) {
        let session = &mut self[index];
        session.closing = true;
        session.generation = 0;
        let (id, was_welcomed) = (session.id, session.is_welcomed);
        self.welcomed -= usize::from(was_welcomed);
        self.by_id.remove(mix(id.0), index.0);
    }

    /// Removes a session that has left and holds nothing any more.
    pub(crate) fn remove(&mut self, index: SessionIndex) -> Session<H> {
        let session = self.slab.remove(index.0 as usize);
        self.room.shrink(&mut self.slab);
        session
    }

    /// Marks a session for removal; returns whether it was not marked already.
    pub(crate) fn doom(&mut self, index: SessionIndex) -> bool {
        let first = !std::mem::replace(&mut self[index].closing, true);
        if first {
            self.doomed.push(index);
        }
        first
    }

    #[inline]
    pub(crate) fn has_doomed(&self) -> bool {
        !self.doomed.is_empty()
    }

    pub(crate) fn next_doomed(&mut self) -> Option<SessionIndex> {
        self.doomed.pop()
    }

    /// The key of the session at that place.
    pub(crate) fn key(&self, index: SessionIndex) -> SessionKey {
        let generation = self[index].generation;
        SessionKey { index, generation }
    }

    /// Gives a session a new key, and invalidates the one before.
    pub(crate) fn rename(&mut self, index: SessionIndex) -> SessionKey {
        self.generation_last = self.generation_last.wrapping_add(1).max(1);
        self[index].generation = self.generation_last;
        self.key(index)
    }

    /// The session of `key`, unless it has left.
    pub(crate) fn find(&self, key: SessionKey) -> Option<SessionIndex> {
        let session = self.slab.get(key.index.0 as usize)?;
        (session.generation == key.generation).then_some(key.index)
    }

    pub(crate) fn find_id(&self, id: SessionId) -> Option<SessionIndex> {
        let is = |place: u32| self.slab[place as usize].id == id;
        self.by_id.find(mix(id.0), is).map(SessionIndex)
    }

    /// The session at a place of the table, if there is one.
    pub(crate) fn at(&self, place: usize) -> Option<(SessionIndex, &Session<H>)> {
        let session = self.slab.get(place).filter(|session| session.is_in())?;
        Some((SessionIndex(place as u32), session))
    }

    /// The same, including a session that has left and still holds something.
    pub(crate) fn held_at(&self, place: usize) -> Option<&Session<H>> {
        self.slab.get(place)
    }

    /// Size of the table: every session's place is below it.
    pub(crate) fn places(&self) -> usize {
        self.slab.capacity()
    }

    /// All sessions, including those that have left and still hold something.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionIndex, &Session<H>)> {
        self.slab
            .iter()
            .map(|(index, session)| (SessionIndex(index as u32), session))
    }

    /// Sessions that have not left.
    pub(crate) fn joined(&self) -> impl Iterator<Item = (SessionIndex, &Session<H>)> {
        self.iter().filter(|(_, session)| session.is_in())
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Asserts the invariants of the fields. Walks everything.
    pub(crate) fn check_invariants(&self) {
        assert!(self.doomed.is_empty(), "a closed session stayed");
        assert_eq!(self.by_id.len(), self.joined().count());
        let welcomed = self.joined().filter(|(_, session)| session.is_welcomed);
        assert_eq!(self.welcomed, welcomed.count());
        for (index, session) in self.iter() {
            match session.is_in() {
                true => assert_eq!(self.find_id(session.id), Some(index)),
                false => assert!(self.find_id(session.id) != Some(index)),
            }
            assert_eq!(session.closing, !session.is_in());
            if let Some(rare) = &session.rare {
                rare.testaments.check_invariants();
                if let Some(deliveries) = &rare.deliveries {
                    deliveries.check_invariants();
                }
            }
        }
    }
}

impl<H> ops::Index<SessionIndex> for Sessions<H> {
    type Output = Session<H>;

    fn index(&self, index: SessionIndex) -> &Session<H> {
        &self.slab[index.0 as usize]
    }
}

impl<H> ops::IndexMut<SessionIndex> for Sessions<H> {
    fn index_mut(&mut self, index: SessionIndex) -> &mut Session<H> {
        &mut self.slab[index.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every idle session has one, and the documentation promises less than 2 KiB for all of it.
    #[test]
    fn an_idle_session_costs_little() {
        assert!(size_of::<Session<u64>>() <= 152);
        // Those with an `authextra` have it.
        assert!(size_of::<Rare>() <= 64, "{}", size_of::<Rare>());
    }
}

//! The sessions of a realm: who they are, and what they hold.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops;

use crosstie_collections::GrowingMap;
use crosstie_wamp::{Disclosed, ID_MAX, RequestId, SessionId};
use rustc_hash::FxBuildHasher;
use slab::Slab;

use crate::authz::RoleIndex;
use crate::broker::SubscriptionKey;
use crate::companions::Companions;
use crate::deliveries::Deliveries;
use crate::detached::Resumable;
use crate::identity::{Identity, SessionIndex, SessionKey};
use crate::keys::{CallKey, RegistrationKey};
use crate::neighbours::Neighbours;
use crate::party::Party;
use crate::random::Random;
use crate::rare_set::RareSet;
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
    /// 0 once it has left: its key names it no more, and what it held goes by and by.
    generation: u32,
    /// Told to be closed, or has left: it is sent nothing more.
    pub(crate) closing: bool,
    /// It is a client's: others are told that it joined, and when it leaves. The router's own sessions
    /// are not spoken of.
    pub(crate) is_welcomed: bool,
    /// The last request id that the session used, which is the highest, too: for [`RequestIdCheck::Loose`],
    /// the highest.
    request_last: u64,
    /// The last invocation id that it was sent.
    pub(crate) invocation_last: u64,
    /// Open calls that it may make at most: the realm's bound, or its role's.
    pub(crate) calls_max: u32,
    /// Open calls that it made.
    pub(crate) calls: Vec<CallKey>,
    /// Open calls that it serves.
    pub(crate) invocations: Vec<CallKey>,
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) subscriptions: RareSet<SubscriptionKey>,
    pub(crate) registrations: RareSet<RegistrationKey>,
}

/// What few sessions ever have, and which is one word for the others.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// Progressive calls of it that ended before their last CALL came, oldest first.
    pub(crate) unfinished: VecDeque<RequestId>,
    /// What is published when it has left.
    pub(crate) testaments: Testaments,
    /// What its authentication said of it beside its identity, in CBOR; empty where that was nothing.
    pub(crate) authextra: Box<[u8]>,
    /// What it may have because of the way by which it came.
    pub(crate) limits: Option<Box<RoleLimits>>,
    pub(crate) companions: Companions,
    /// What it is to acknowledge.
    pub(crate) deliveries: Option<Box<Deliveries>>,
    /// It may be resumed.
    pub(crate) resumable: Option<Box<Resumable>>,
}

impl<H> Session<H> {
    /// Forgets what is empty.
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
                && unfinished.is_empty()
                && testaments.is_empty()
                && companions.is_empty()
                && deliveries.is_none()
                && resumable.is_none()
        };
        self.rare.take_if(is_empty);
    }

    /// What it may have: what its role says, and the way by which it came.
    pub(crate) fn limits(&self, of_role: RoleLimits) -> RoleLimits {
        let own = self.rare.as_ref().and_then(|rare| rare.limits.as_deref());
        own.map_or(of_role, |own| of_role.least(*own))
    }

    /// Bytes of what is kept of it until it is gone: of its authentication, and of the callees that it was given.
    pub(crate) fn kept_bytes(&self) -> usize {
        let rare = self.rare.as_deref();
        rare.map_or(0, |rare| {
            let unacknowledged = rare.deliveries.as_ref();
            let unacknowledged = unacknowledged.map_or(0, |line| line.bytes());
            rare.authextra.len() + rare.companions.bytes() + unacknowledged
        })
    }

    /// It has left: whether it had testaments then, and needs its role until they are published.
    pub(crate) fn keep_role(&mut self) -> bool {
        let Some(rare) = &mut self.rare else {
            return false;
        };
        rare.testaments.keeps_role = !rare.testaments.is_empty();
        rare.testaments.keeps_role
    }

    /// The same, once that has been said.
    pub(crate) fn keeps_role(&self) -> bool {
        let rare = self.rare.as_deref();
        rare.is_some_and(|rare| rare.testaments.keeps_role)
    }

    /// Whether every event of its subscriptions waits for its acknowledgement: it may be resumed, and is to miss nothing.
    pub(crate) fn acknowledges_all(&self) -> bool {
        let rare = self.rare.as_deref();
        let is_resumable = rare.is_some_and(|rare| rare.resumable.is_some());
        is_resumable
            && self
                .features
                .has(ClientFeature::SubscriberAcknowledgedEventDelivery)
    }

    /// It leaves, and is not to be resumed: until when it would have waited, if it did.
    pub(crate) fn take_waiting(&mut self) -> Option<Time> {
        let resumable = self.rare.as_mut()?.resumable.take()?;
        resumable.until
    }

    /// Whether it has not left.
    pub(crate) fn is_in(&self) -> bool {
        self.generation != 0
    }

    /// Judges the id of a new request (not of a CALL that continues a progressive one).
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

    /// Whether an id is beyond all that it has used: then it cannot be that of a call that there was.
    pub(crate) fn is_beyond(&self, request: RequestId) -> bool {
        request.0 > self.request_last
    }

    /// The request that was taken last comes again, and is asked to be the next one again.
    pub(crate) fn give_back_request(&mut self, check: RequestIdCheck) {
        if check == RequestIdCheck::Strict {
            self.request_last = self.request_last.wrapping_sub(1);
        }
    }

    /// Judges an id that is not the last one's successor: after the highest one comes 1.
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

    /// What others are told about this session when it is disclosed to them.
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
    by_id: GrowingMap<SessionId, SessionIndex, FxBuildHasher>,
    /// Sessions that have been told to be closed, to be removed when the present input is done.
    doomed: Vec<SessionIndex>,
    generation_last: u32,
    /// Those that have been welcomed and have not left.
    welcomed: usize,
    /// The realm's other nodes, who call and are called as sessions are.
    pub(crate) neighbours: Neighbours,
}

impl<H> Sessions<H> {
    pub(crate) fn new() -> Self {
        Self {
            slab: Slab::new(),
            by_id: GrowingMap::new(),
            doomed: Vec::new(),
            generation_last: 0,
            welcomed: 0,
            neighbours: Neighbours::default(),
        }
    }

    /// The open calls that somebody made.
    #[inline]
    pub(crate) fn calls_of(&mut self, party: Party) -> &mut Vec<CallKey> {
        match party.neighbour() {
            None => &mut self.slab[party.place()].calls,
            Some(neighbour) => &mut self.neighbours[neighbour].calls,
        }
    }

    /// The open calls that somebody serves.
    #[inline]
    pub(crate) fn invocations_of(&mut self, party: Party) -> &mut Vec<CallKey> {
        match party.neighbour() {
            None => &mut self.slab[party.place()].invocations,
            Some(neighbour) => &mut self.neighbours[neighbour].invocations,
        }
    }

    /// Lets a session in, under the id that it was told before, if that is nobody's.
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
        let told = told.filter(|id| self.by_id.get(id).is_none());
        let id = told.unwrap_or_else(|| {
            loop {
                let id = random.session_id();
                if self.by_id.get(&id).is_none() {
                    break id;
                }
            }
        });
        // A wrap would let a key that has been kept through 2^32 joins name another session.
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
            calls: Vec::new(),
            invocations: Vec::new(),
            rare: None,
            subscriptions: RareSet::new(),
            registrations: RareSet::new(),
        }) as u32);
        self.by_id.insert(id, index);
        (SessionKey { index, generation }, id)
    }

    /// Notes that a session has been sent its WELCOME.
    pub(crate) fn welcome(&mut self, index: SessionIndex) {
        let was_welcomed = std::mem::replace(&mut self[index].is_welcomed, true);
        self.welcomed += usize::from(!was_welcomed);
    }

    /// How many the meta API speaks of.
    pub(crate) fn welcomed(&self) -> usize {
        self.welcomed
    }

    /// Takes a session out: nobody finds it any more, and it is sent nothing. It keeps its place, so
    /// that what others hold of it stays valid, until it is removed.
    pub(crate) fn leave(&mut self, index: SessionIndex) {
        let session = &mut self[index];
        session.closing = true;
        session.generation = 0;
        let (id, was_welcomed) = (session.id, session.is_welcomed);
        self.welcomed -= usize::from(was_welcomed);
        self.by_id.remove(&id);
    }

    /// Removes a session that has left and holds nothing any more.
    pub(crate) fn remove(&mut self, index: SessionIndex) -> Session<H> {
        self.slab.remove(index.0 as usize)
    }

    /// Marks a session for removal; whether it had not been already.
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

    /// What names the session at that place.
    pub(crate) fn key(&self, index: SessionIndex) -> SessionKey {
        let generation = self[index].generation;
        SessionKey { index, generation }
    }

    /// Gives a session another key: the one that it had names nobody any more.
    pub(crate) fn rename(&mut self, index: SessionIndex) -> SessionKey {
        self.generation_last = self.generation_last.wrapping_add(1).max(1);
        self[index].generation = self.generation_last;
        self.key(index)
    }

    /// The session that `key` names, unless it is gone.
    pub(crate) fn find(&self, key: SessionKey) -> Option<SessionIndex> {
        let session = self.slab.get(key.index.0 as usize)?;
        (session.generation == key.generation).then_some(key.index)
    }

    pub(crate) fn find_id(&self, id: SessionId) -> Option<SessionIndex> {
        self.by_id.get(&id).copied()
    }

    /// The session at a place of the table, if there is one.
    pub(crate) fn at(&self, place: usize) -> Option<(SessionIndex, &Session<H>)> {
        let session = self.slab.get(place).filter(|session| session.is_in())?;
        Some((SessionIndex(place as u32), session))
    }

    /// The same, with one that has left and still holds something.
    pub(crate) fn held_at(&self, place: usize) -> Option<&Session<H>> {
        self.slab.get(place)
    }

    /// Places of the table: no session is beyond.
    pub(crate) fn places(&self) -> usize {
        self.slab.capacity()
    }

    /// With those that have left and still hold something.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionIndex, &Session<H>)> {
        self.slab
            .iter()
            .map(|(index, session)| (SessionIndex(index as u32), session))
    }

    /// Those that have not left.
    pub(crate) fn joined(&self) -> impl Iterator<Item = (SessionIndex, &Session<H>)> {
        self.iter().filter(|(_, session)| session.is_in())
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Asserts what the fields promise each other. Walks everything.
    pub(crate) fn check_invariants(&self) {
        assert!(self.doomed.is_empty(), "a closed session stayed");
        assert_eq!(self.by_id.len(), self.joined().count());
        let welcomed = self.joined().filter(|(_, session)| session.is_welcomed);
        assert_eq!(self.welcomed, welcomed.count());
        for (index, session) in self.iter() {
            match session.is_in() {
                true => assert_eq!(self.by_id.get(&session.id), Some(&index)),
                false => assert!(self.by_id.get(&session.id) != Some(&index)),
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

    /// Every idle session is one, and the documentation promises less than 2 KiB for all of it.
    #[test]
    fn an_idle_session_costs_little() {
        assert!(size_of::<Session<u64>>() <= 192);
    }
}

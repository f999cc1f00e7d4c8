//! Testament custody: two other nodes hold the testaments of this node's sessions. The first of them publishes these if
//! this node dies.
//!
//! Each testament is handed over when it is added. A new holder, or one whose connection lost a message, is handed all
//! of them. Publishing or flushing a testament is announced at once, in order with all other messages between both
//! nodes. A node counts as dead when it has been silent for long enough ([`Realm::handle_death`]). If it was only cut
//! off, the holder first tells it which testaments were published, and the node forgets these. Until then the node
//! publishes its testaments to its own sessions only. So no session receives a testament twice.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Message, Payload, Value};

use crate::across::{NeighbourKey, Publication};
use crate::custody::{COPIES, REMEMBERED_MAX};
use crate::handover::{self, UNANSWERED};
use crate::identity::SessionIndex;
use crate::testaments::{Scope, Testament};
use crate::{Note, Outbox, Realm, Time};

/// The procedure for messages about testaments. No session can call it, and it has no answer.
pub(super) const TESTAMENTS: &str = "crosstie.node.testaments";

/// How long a node that has met others again waits for their report of published testaments.
const DOUBTFUL_MS: u64 = 3_000;

/// Maximum number of publications named in one message.
const NAMED_MAX: usize = 1_000;

const PLACES_PER_STEP: usize = 8;
const STEPS_PER_TESTAMENT: u32 = 20;

impl<H> Realm<H> {
    /// Handles a node that has joined.
    pub(crate) fn meet_holder(&mut self, now: Time, node: NeighbourKey, out: &mut dyn Outbox<H>) {
        let incarnation = node.incarnation;
        self.tell_published(node, out);
        let entrusting = &mut self.custody;
        if entrusting.present.is_empty() && !entrusting.doubtful.is_empty() {
            entrusting.doubtful_until = Some(now.after_ms(DOUBTFUL_MS));
        }
        entrusting.present.insert(incarnation);
        if entrusting.holders.contains(&incarnation) {
            return self.begin_handover(incarnation, out);
        }
        self.find_holders(out);
        if !self.custody.holders.contains(&incarnation) {
            // It may have been a holder before it was lost.
            self.say_holders(incarnation, true, out);
        }
    }

    /// Handles a node that is silent, or has stopped in good order.
    pub(crate) fn lose_holder(&mut self, node: u64, has_ended: bool, out: &mut dyn Outbox<H>) {
        let entrusting = &mut self.custody;
        entrusting.present.remove(&node);
        if entrusting.present.is_empty() {
            // That node may not have reported yet; the wait begins anew at the next meeting.
            entrusting.doubtful_until = None;
        }
        if has_ended {
            // It publishes nothing any more.
            self.take_over(node, out);
        }
        let entrusting = &mut self.custody;
        entrusting.unable.remove(&node);
        entrusting.handing.retain(|(to, _)| *to != node);
        let before = entrusting.holders.len();
        entrusting.holders.retain(|holder| *holder != node);
        if entrusting.holders.len() == before {
            return;
        }
        if !has_ended {
            entrusting.doubtful.insert(node);
            if entrusting.doubtful.len() > REMEMBERED_MAX {
                entrusting.doubtful.pop_first();
            }
        }
        self.find_holders(out);
    }

    /// Handles the death of a node: publishes the testaments that it handed to this one, unless another holder does. If
    /// this node counts as dead itself, because it could not be heard either, another holder has published them.
    /// Continues in [`Realm::work`].
    pub fn handle_death(
        &mut self,
        now: Time,
        (node, is_missed): (u64, bool),
        out: &mut dyn Outbox<H>,
    ) {
        match is_missed {
            true => self.drop_held(node, out),
            false => self.take_over(node, out),
        }
        if self.held_testaments.is_any_due() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// Publishes testaments of a session that has left, for that many steps; returns whether there were any.
    pub(crate) fn publish_testaments(
        &mut self,
        now: Time,
        index: SessionIndex,
        steps_max: u32,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        let is_doubtful = self.custody.is_doubtful(now);
        let session = &mut self.sessions[index];
        let (id, rare) = (session.id.0, session.rare.as_mut());
        // Released before they are published: if this node dies in between, no holder publishes them a second time.
        let released = rare.map(|rare| rare.testaments.release());
        self.release(id, &released.unwrap_or_default(), out);
        let (broker, _, mut context) = self.split(now, out);
        broker.publish_testaments(&mut context, (index, is_doubtful), steps_max)
    }

    /// Whether work for other nodes is due.
    #[inline]
    pub(crate) fn has_backlog_of_nodes(&self) -> bool {
        self.remote_index.has_ended()
            || self.held_testaments.is_any_due()
            || !self.custody.handing.is_empty()
            || !self.sharing.is_empty()
    }

    /// Does a part of it; returns whether there was any.
    pub(crate) fn work_of_nodes(
        &mut self,
        now: Time,
        steps_max: u32,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        self.tell_ended(steps_max, out)
            || self.publish_due(now, steps_max, out)
            || self.hand_some(now, steps_max, out)
            || self.share_some(steps_max, out)
    }

    /// Publishes due testaments, for that many steps; returns whether there were any.
    pub(crate) fn publish_due(
        &mut self,
        now: Time,
        steps_max: u32,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        if !self.held_testaments.is_any_due() {
            return false;
        }
        let held = self.held_testaments.bytes();
        let end = self.steps.saturating_add(steps_max.max(1));
        while self.steps < end
            && let Some(handed) = self.held_testaments.next_due()
        {
            self.steps = self.steps.saturating_add(STEPS_PER_TESTAMENT);
            let (broker, _, mut context) = self.split(now, out);
            broker.publish_handed(&mut context, &handed);
        }
        self.hold_entrusted(held, out);
        true
    }

    /// Hands testaments to new holders, for that many steps; returns whether there was one.
    pub(crate) fn hand_some(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) -> bool {
        let Some((to, from)) = self.custody.handing.pop_front() else {
            return false;
        };
        let places = self.sessions.places();
        let end = from.saturating_add(steps_max.max(1) as usize * PLACES_PER_STEP);
        let mut place = from;
        let mut handed = 0;
        while place < end.min(places) && handed < steps_max.div_ceil(STEPS_PER_TESTAMENT) {
            let index = SessionIndex(place as u32);
            place += 1;
            let session = self.sessions.at(index.0 as usize);
            let rare = session.and_then(|(_, session)| session.rare.as_ref());
            let count = rare.map_or(0, |rare| rare.testaments.len());
            for nth in 0..count {
                handed += 1;
                self.hand(now, to, index, nth, out);
            }
        }
        let steps =
            (place - from) / PLACES_PER_STEP + handed as usize * STEPS_PER_TESTAMENT as usize;
        self.steps = self.steps.saturating_add(steps as u32 + 1);
        if place < places {
            self.custody.handing.push_back((to, place));
        }
        true
    }

    /// Hands over the latest testament of a session.
    pub(super) fn entrust(
        &mut self,
        now: Time,
        from: SessionIndex,
        scope: Scope,
        out: &mut dyn Outbox<H>,
    ) {
        let rare = self.sessions[from].rare.as_ref();
        let Some(nth) = rare.and_then(|rare| rare.testaments.last_of(scope)) else {
            return;
        };
        for to in self.custody.holders.clone() {
            self.hand(now, to, from, nth, out);
        }
    }

    /// Announces that testaments were published or flushed.
    pub(crate) fn release(&mut self, session: u64, publications: &[u64], out: &mut dyn Outbox<H>) {
        if publications.is_empty() {
            return;
        }
        let ids = publications.iter().copied().map(Value::from);
        let said = vec![
            ("session".to_owned(), Value::from(session)),
            ("release".to_owned(), Value::List(ids.collect())),
        ];
        for to in self.custody.holders.clone() {
            self.say_to(to, said.clone(), out);
        }
    }

    fn drop_held(&mut self, node: u64, out: &mut dyn Outbox<H>) {
        let held = self.held_testaments.bytes();
        self.held_testaments.forget(node);
        self.hold_entrusted(held, out);
    }

    /// Makes the testaments of a node due, unless another holder is to publish them.
    fn take_over(&mut self, node: u64, out: &mut dyn Outbox<H>) {
        let held = self.held_testaments.bytes();
        let present = &self.custody.present;
        let lives = |node: u64| present.contains(&node);
        let own = self.dealer.own_number();
        self.held_testaments.handle_death(node, own, lives);
        self.hold_entrusted(held, out);
    }

    /// Handles a message about testaments from another node.
    pub(super) fn take_testaments(
        &mut self,
        from: NeighbourKey,
        payload: &Payload<'_>,
        out: &mut dyn Outbox<H>,
    ) {
        let said = codec::decode_value(payload.serializer, payload.kwargs, &Limits::default());
        let Ok(said) = said else {
            return;
        };
        let node = from.incarnation;
        let number = |name: &str| said.get(name).and_then(Value::as_u64);
        let numbers = |name: &str| match said.get(name) {
            Some(Value::List(list)) => Some(list.iter().filter_map(Value::as_u64)),
            _ => None,
        };
        let held = self.held_testaments.bytes();
        self.steps = self.steps.saturating_add(STEPS_PER_TESTAMENT);
        if let Some(holders) = numbers("holders") {
            let is_anew = number("anew") == Some(1);
            self.held_testaments.begin(node, holders.collect(), is_anew);
        }
        if let (Some(session), Some(scope)) = (number("session"), number("scope"))
            && let Some(handed) = handover::read(&said)
        {
            let scope = match scope {
                0 => Scope::Detached,
                _ => Scope::Destroyed,
            };
            if !self.held_testaments.keep(node, session, scope, handed) {
                out.note(Note::TestamentRefused, 1);
            }
        }
        if let (Some(session), Some(released)) = (number("session"), numbers("release")) {
            for publication in released {
                self.held_testaments.release(node, session, publication);
            }
        }
        self.hold_entrusted(held, out);
        if let Some(published) = numbers("published") {
            let published: Vec<_> = published.collect();
            self.forget_published(&published, out);
            if number("more").is_none() {
                self.custody.doubtful.remove(&node);
            }
        }
    }

    /// Handles the error of a node without testament custody.
    pub(super) fn give_up_holder(&mut self, node: u64, out: &mut dyn Outbox<H>) {
        let entrusting = &mut self.custody;
        if !entrusting.present.contains(&node) || !entrusting.unable.insert(node) {
            return;
        }
        entrusting.holders.retain(|holder| *holder != node);
        entrusting.handing.retain(|(to, _)| *to != node);
        self.find_holders(out);
    }

    /// Chooses two holders among the present nodes, and announces them to each other.
    fn find_holders(&mut self, out: &mut dyn Outbox<H>) {
        let entrusting = &mut self.custody;
        let before = entrusting.holders.len();
        let able = entrusting.present.difference(&entrusting.unable).copied();
        let others: Vec<_> = able
            .filter(|node| !entrusting.holders.contains(node))
            .take(COPIES.saturating_sub(before))
            .collect();
        entrusting.holders.extend(&others);
        for holder in self.custody.holders.clone() {
            match others.contains(&holder) {
                true => self.begin_handover(holder, out),
                false => self.say_holders(holder, false, out),
            }
        }
    }

    fn begin_handover(&mut self, node: u64, out: &mut dyn Outbox<H>) {
        self.say_holders(node, true, out);
        self.custody.handing.retain(|(to, _)| *to != node);
        self.custody.handing.push_back((node, 0));
    }

    fn say_holders(&mut self, to: u64, is_anew: bool, out: &mut dyn Outbox<H>) {
        let holders = self.custody.holders.iter().copied().map(Value::from);
        let said = vec![
            ("holders".to_owned(), Value::List(holders.collect())),
            ("anew".to_owned(), Value::from(u64::from(is_anew))),
        ];
        self.say_to(to, said, out);
    }

    /// Hands one testament over, as it would be published.
    fn hand(
        &mut self,
        now: Time,
        to: u64,
        from: SessionIndex,
        nth: usize,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(rare) = &mut self.sessions[from].rare else {
            return;
        };
        let Some((scope, testament)) = rare.testaments.nth(nth) else {
            return;
        };
        let testament = Testament::clone(testament);
        let session = self.sessions[from].id.0;
        let (broker, _, mut context) = self.split(now, out);
        let Ok(Message::Publish {
            request,
            options,
            topic,
            payload,
        }) = testament.message()
        else {
            return;
        };
        let judged = broker.judge_testament(&mut context, from, &options, &topic, payload);
        let (Ok(is_disclosed), false) = (judged, context.out.is_local(&topic)) else {
            return;
        };
        let levelled = context.levelled(from, &options, &topic);
        let publication = Publication {
            id: crosstie_wamp::PublicationId(request.0),
            publisher: is_disclosed.then(|| context.sessions[from].disclosed()),
            options: levelled.as_deref().unwrap_or(&options),
            topic: &topic,
            payload,
            retained: None,
        };
        let mut said = handover::write(&publication);
        let rare = self.sessions[from].rare.as_mut();
        if let Some((_, testament)) = rare.and_then(|rare| rare.testaments.nth(nth)) {
            testament.is_entrusted = true;
        }
        let scope = u64::from(scope != Scope::Detached);
        said.push(("session".to_owned(), Value::from(session)));
        said.push(("scope".to_owned(), Value::from(scope)));
        self.say_to(to, said, out);
    }

    /// Tells a node that has returned which testaments were published for it, even if there were none: it waits for
    /// that.
    fn tell_published(&mut self, node: NeighbourKey, out: &mut dyn Outbox<H>) {
        let published = self.held_testaments.published(node.incarnation);
        let pairs: Vec<_> = published.map(|p| [p.session, p.publication]).collect();
        let mut parts: Vec<_> = pairs.chunks(NAMED_MAX).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        let last = parts.len() - 1;
        for (place, part) in parts.into_iter().enumerate() {
            let numbers = part.iter().flatten().copied().map(Value::from);
            let mut said = vec![("published".to_owned(), Value::List(numbers.collect()))];
            if place < last {
                said.push(("more".to_owned(), Value::from(1)));
            }
            self.say_node(node, said, out);
        }
    }

    /// Forgets published testaments: this node was taken for dead.
    fn forget_published(&mut self, published: &[u64], out: &mut dyn Outbox<H>) {
        let (pairs, _) = published.as_chunks::<2>();
        for [session, publication] in pairs {
            let found = self.sessions.find_id(crosstie_wamp::SessionId(*session));
            let Some(index) = found else { continue };
            let (id, session) = (*session, &mut self.sessions[index]);
            let Some(rare) = &mut session.rare else {
                continue;
            };
            let bytes = rare.testaments.forget(*publication);
            if bytes == 0 {
                continue;
            }
            session.tidy();
            out.hold(&session.handle, -(bytes as isize));
            // Other holders may have been handed it in the meantime. A testament that is not here was announced when it
            // left.
            self.release(id, &[*publication], out);
        }
    }

    fn say_to(&mut self, to: u64, said: Dict, out: &mut dyn Outbox<H>) {
        let neighbours = &self.sessions.neighbours;
        let mut there = neighbours.there().map(|index| neighbours[index].key);
        let found = there.find(|key| key.incarnation == to);
        drop(there);
        if let Some(node) = found {
            self.say_node(node, said, out);
        }
    }

    fn say_node(&mut self, node: NeighbourKey, said: Dict, out: &mut dyn Outbox<H>) {
        // A lost message ends the connection between both, and everything is handed over again.
        let said = handover::said(said);
        self.send_question(node, UNANSWERED, (TESTAMENTS, &said), out);
    }

    fn hold_entrusted(&self, before: usize, out: &mut dyn Outbox<H>) {
        let delta = self.held_testaments.bytes() as isize - before as isize;
        if delta != 0 {
            out.hold_across(delta);
        }
    }
}

//! Meta events for sessions, subscriptions and registrations that end with their node: each remaining node publishes
//! them to its own sessions, from its index of the lost node.
//!
//! If a session subscribes to such an event, its node requests the lists of the others, page by page, and follows their
//! meta events from then on. A node that returns, or whose connection lost a message, is asked again. Unknown entries
//! of its list are published as new, and known ones that it lacks as ended. A node of an earlier release does not know
//! the question; for such a node only its meta events are indexed.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{MatchPolicy, Payload, Serializer, Value};

use super::remote_index::Noted;
use super::sessions::describe;
use crate::across::{NeighbourKey, Pattern, Publication};
use crate::events::{Ending, ON_JOIN, ON_LEAVE};
use crate::fault::Fault;
use crate::identity::SessionIndex;
use crate::{Note, OnLeave, Outbox, Realm, Time};

/// The procedure for lists between nodes. No session can call it.
pub(super) const LIST: &str = "crosstie.node.list";

/// Places in the table of sessions per page, parts after which a page ends, and the maximum number of parts per
/// session.
const PLACES: usize = 32;
const PARTS: usize = 4_096;
const PARTS_OF_SESSION: usize = 1_024;

const ENTRIES_PER_STEP: usize = 4;

impl<H> Realm<H> {
    /// Handles a change of the ends that sessions subscribe to: requests missing lists, and drops unneeded entries.
    pub(crate) fn turn_known(&mut self, out: &mut dyn Outbox<H>) {
        let Some(wanted) = self.events.take_turned() else {
            return;
        };
        let before = std::mem::replace(&mut self.remote_index.wanted, wanted);
        let mut is_new = false;
        for ending in Ending::ALL {
            let place = ending as usize;
            if before[place] == wanted[place] {
                continue;
            }
            is_new |= wanted[place];
            for topic in ending.topics() {
                let match_policy = MatchPolicy::Exact;
                let pattern = Pattern {
                    match_policy,
                    topic,
                };
                out.interest(pattern, wanted[place]);
            }
            if !wanted[place] {
                let held = self.remote_index.bytes();
                self.remote_index.forget_all(ending);
                self.hold_known(held, out);
            }
        }
        if !self.remote_index.is_wanted() {
            self.remote_index.forget_nodes();
        } else if is_new {
            let neighbours = &self.sessions.neighbours;
            let there: Vec<_> = neighbours.there().map(|n| neighbours[n].key).collect();
            for node in there {
                self.remote_index.begin_round(node.incarnation, true);
                self.ask_known(node, 0, out);
            }
        }
    }

    /// Handles a node that has joined, or whose connection lost a message.
    pub(crate) fn meet_known(&mut self, node: NeighbourKey, out: &mut dyn Outbox<H>) {
        if self.remote_index.is_wanted() {
            let held = self.remote_index.bytes();
            self.remote_index.begin_round(node.incarnation, false);
            self.hold_known(held, out);
            self.ask_known(node, 0, out);
        }
    }

    /// Drops open questions to a node: they will not be answered.
    pub(crate) fn leave_known(&mut self, node: NeighbourKey) {
        self.remote_index.asked.retain(|_, asked| *asked != node);
    }

    /// Handles another node that has stopped in good order, or is silent: publishes the ends of its entries, now or in
    /// [`Realm::work`].
    pub fn give_up_neighbour(
        &mut self,
        now: Time,
        (incarnation, has_ended): (u64, bool),
        out: &mut dyn Outbox<H>,
    ) {
        self.lose_holder(incarnation, has_ended, out);
        if self.remote_index.is_wanted() {
            self.remote_index.give_up(incarnation);
        }
        if self.has_backlog() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// Indexes another node's meta event; returns whether that node's own list is awaited instead.
    pub(crate) fn note_known(
        &mut self,
        from: u64,
        publication: &Publication<'_>,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        if !self.remote_index.is_wanted() {
            return false;
        }
        let Some((ending, begins)) = Ending::of(publication.topic) else {
            return false;
        };
        if !self.remote_index.wants(ending) {
            return false;
        }
        if self.remote_index.is_gone(from) {
            return true;
        }
        let held = self.remote_index.bytes();
        let read = codec::decode_value(
            publication.payload.serializer,
            publication.payload.args,
            &Limits::default(),
        );
        let Ok(Value::List(arguments)) = read else {
            return false;
        };
        let number = |place: usize| arguments.get(place).and_then(Value::as_u64);
        match (ending, begins) {
            (Ending::Session, Some(true)) => {
                if let Some(names) = arguments.first().and_then(names) {
                    self.note_names(from, names, out);
                }
            }
            (Ending::Session, _) => {
                if let Some(id) = number(0) {
                    self.remote_index.forget_session(from, id);
                }
            }
            (ending, begins) => {
                if let (Some(session), Some(id), Some(begins)) = (number(0), number(1), begins) {
                    let part = (ending, id, session);
                    match begins {
                        true => {
                            let noted = self.remote_index.note_part(from, part);
                            note_room(noted, out);
                        }
                        false => self.remote_index.forget_part(from, part),
                    }
                }
            }
        }
        self.hold_known(held, out);
        false
    }

    /// Publishes ends, for that many steps; returns whether there were any.
    pub(crate) fn tell_ended(&mut self, steps_max: u32, out: &mut dyn Outbox<H>) -> bool {
        if !self.remote_index.has_ended() {
            return false;
        }
        let held = self.remote_index.bytes();
        for _ in 0..steps_max.max(1) {
            self.steps = self.steps.saturating_add(1);
            if let Some(((ending, id, session), is_last)) = self.remote_index.next_part() {
                let arguments = || vec![Value::from(session), Value::from(id)];
                let [_, on_exit, on_delete] = ending.topics();
                self.events.add_local(on_exit, arguments());
                let is_gone = match ending {
                    Ending::Registration => is_last && !self.dealer.is_registered(id),
                    // Each node's subscriptions are its own.
                    _ => is_last,
                };
                if is_gone {
                    self.events.add_local(on_delete, arguments());
                }
            } else if let Some((id, who)) = self.remote_index.next_session() {
                let mut arguments = vec![Value::from(id)];
                if self.config.on_leave == OnLeave::Specified {
                    arguments.extend([Value::from(&*who.authid), Value::from(&*who.authrole)]);
                }
                self.events.add_local(ON_LEAVE, arguments);
            } else {
                break;
            }
        }
        self.hold_known(held, out);
        true
    }

    /// Answers another node's request for the list, from a place on.
    pub(super) fn list_for_node(
        &mut self,
        now: Time,
        payload: &Payload<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<Value, Fault> {
        // Publishes pending events first: these entries are in the list, and later events concern others.
        self.publish_events(now, u32::MAX, out);
        let asked = codec::decode_value(payload.serializer, payload.kwargs, &Limits::default());
        let asked = asked.unwrap_or(Value::Null);
        let number = |name: &str| asked.get(name).and_then(Value::as_u64).unwrap_or(0);
        let from = usize::try_from(number("from")).unwrap_or(usize::MAX);
        let wanted = Ending::ALL.map(|ending| number("ends") & (1 << ending as u32) != 0);
        let is_full = number("full") != 0;
        let (mut sessions, mut parts) = (Vec::new(), Vec::new());
        let places = self.sessions.places();
        let mut next = from;
        while next < places && next < from.saturating_add(PLACES) && parts.len() < PARTS {
            let place = next;
            next += 1;
            let Some(session) = self.sessions.held_at(place).filter(|s| s.is_welcomed) else {
                continue;
            };
            if wanted[Ending::Session as usize] {
                let details = match is_full {
                    true => describe(&self.config.name, session, out),
                    false => vec![
                        ("session".to_owned(), Value::from(session.id.0)),
                        ("authid".to_owned(), Value::from(&*session.identity.authid)),
                        (
                            "authrole".to_owned(),
                            Value::from(&*session.identity.authrole),
                        ),
                    ],
                };
                sessions.push(Value::Dict(details));
            }
            self.list_parts(SessionIndex(place as u32), wanted, &mut parts);
        }
        let steps = PLACES + (sessions.len() + parts.len()) / ENTRIES_PER_STEP;
        self.steps = self.steps.saturating_add(steps as u32);
        let next = match next < places {
            true => Value::from(next as u64),
            false => Value::Null,
        };
        Ok(Value::Dict(vec![
            ("next".to_owned(), next),
            ("sessions".to_owned(), Value::List(sessions)),
            ("parts".to_owned(), Value::List(parts)),
        ]))
    }

    /// Adds the subscriptions and registrations that a session knows of.
    fn list_parts(&self, index: SessionIndex, wanted: [bool; 3], parts: &mut Vec<Value>) {
        let session = &self.sessions[index];
        let mut list = |ending: Ending, id: Option<u64>| {
            let listed = id.map(|id| [ending as u64, id, session.id.0].map(Value::from));
            parts.extend(listed.map(|listed| Value::List(listed.into())));
        };
        if wanted[Ending::Registration as usize] {
            for key in session.registrations.some(PARTS_OF_SESSION) {
                list(Ending::Registration, self.dealer.told_id(key, index));
            }
        }
        if wanted[Ending::Subscription as usize] {
            for key in session.subscriptions.some(PARTS_OF_SESSION) {
                list(Ending::Subscription, self.broker.told_id(key, index));
            }
        }
    }

    /// Takes a page of another node's list, or the error in its place.
    pub(super) fn take_listed(
        &mut self,
        now: Time,
        from: NeighbourKey,
        answer: Result<Value, Fault>,
        out: &mut dyn Outbox<H>,
    ) {
        let Ok(page) = answer else {
            return;
        };
        let held = self.remote_index.bytes();
        let node = from.incarnation;
        let is_news = !self.remote_index.is_silent(node);
        let list = |name: &str| match page.get(name) {
            Some(Value::List(list)) => list.as_slice(),
            _ => &[],
        };
        for session in list("sessions") {
            if !self.remote_index.wants(Ending::Session) {
                break;
            }
            if let Some(names) = names(session)
                && self.note_names(node, names, out) == Noted::New
                && is_news
            {
                self.events.add_local(ON_JOIN, vec![session.clone()]);
            }
        }
        for part in list("parts") {
            let Value::List(part) = part else { continue };
            let number = |place: usize| part.get(place).and_then(Value::as_u64);
            let ending = number(0).and_then(|number| Ending::ALL.get(number as usize));
            let (Some(ending), Some(id), Some(session)) = (ending, number(1), number(2)) else {
                continue;
            };
            if *ending == Ending::Session || !self.remote_index.wants(*ending) {
                continue;
            }
            let noted = self.remote_index.note_part(node, (*ending, id, session));
            note_room(noted, out);
            if noted == Noted::New && is_news {
                let arguments = vec![Value::from(session), Value::from(id)];
                self.events.add_local(ending.topics()[0], arguments);
            }
        }
        let entries = list("sessions").len() + list("parts").len();
        let steps = 1 + entries / ENTRIES_PER_STEP;
        self.steps = self.steps.saturating_add(steps as u32);
        match page.get("next").and_then(Value::as_u64) {
            Some(next) => self.ask_known(from, next, out),
            None => self.remote_index.end_round(node),
        }
        self.hold_known(held, out);
        self.settle(now, out);
        if self.remote_index.has_ended() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    fn ask_known(&mut self, node: NeighbourKey, from: u64, out: &mut dyn Outbox<H>) {
        let ends = Ending::ALL
            .into_iter()
            .filter(|ending| self.remote_index.wants(*ending))
            .fold(0_u64, |sum, ending| sum | 1 << ending as u64);
        let is_full = !self.remote_index.is_silent(node.incarnation);
        let named = Value::Dict(vec![
            ("from".to_owned(), Value::from(from)),
            ("ends".to_owned(), Value::from(ends)),
            ("full".to_owned(), Value::from(u64::from(is_full))),
        ]);
        let mut bytes = Vec::new();
        if codec::encode_value(&named, Serializer::Cbor, &mut bytes).is_err() {
            return;
        }
        self.queries.last += 1;
        let number = self.queries.last;
        if self.send_question(node, number, (LIST, &bytes), out) {
            self.remote_index.asked.insert(number, node);
        }
    }

    fn note_names(
        &mut self,
        node: u64,
        (id, names): (u64, [&str; 2]),
        out: &mut dyn Outbox<H>,
    ) -> Noted {
        let noted = self.remote_index.note_session(node, id, names);
        note_room(noted, out);
        noted
    }

    fn hold_known(&self, before: usize, out: &mut dyn Outbox<H>) {
        let delta = self.remote_index.bytes() as isize - before as isize;
        if delta != 0 {
            out.hold_across(delta);
        }
    }
}

fn note_room<H>(noted: Noted, out: &mut dyn Outbox<H>) {
    if noted == Noted::NoRoom {
        out.note(Note::EndUnknown, 1);
    }
}

/// A session's id, authid and authrole, from the details of `on_join`.
fn names(details: &Value) -> Option<(u64, [&str; 2])> {
    let text = |name: &str| details.get(name)?.as_str();
    let id = details.get("session")?.as_u64()?;
    Some((id, [text("authid")?, text("authrole")?]))
}

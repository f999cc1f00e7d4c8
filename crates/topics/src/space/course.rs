//! The course of a publication through the space, in one turn or several.

use std::sync::Arc;

use crosstie_mqtt::{QoS, ReasonCode};

use super::Space;
use super::deliver::Form;
use crate::course::{Course, Source, Target};
use crate::fan::Fan;
use crate::incoming::Arrived;
use crate::keys::GroupKey;
use crate::outgoing::{DealtBy, identifiers};
use crate::subscribers::Subscriber;
use crate::{Answer, Message, Outbox, Record, Time};

impl<H> Space<H> {
    /// Continues a publication for some steps; true if it is done.
    pub(super) fn run<O: Outbox<H>>(
        &mut self,
        now: Time,
        source: &Source,
        fan: &mut Fan<'_, O::Shared>,
        course: &mut Course,
        steps: usize,
        outbox: &mut O,
    ) -> bool {
        let mut left = steps;
        if !course.is_walked && !self.walk(fan.content.topic, course, &mut left) {
            return false;
        }
        if !self.sort(course, &mut left) {
            return false;
        }
        while course.at < course.targets.len() {
            let Some(fewer) = left.checked_sub(1) else {
                return false;
            };
            let more = self.serve(now, source, fan, course, outbox);
            left = fewer.saturating_sub(more);
        }
        while let Some(group) = course.deals.get(course.dealt).copied() {
            let Some(fewer) = left.checked_sub(1) else {
                return false;
            };
            left = fewer;
            course.dealt += 1;
            self.deal(now, group, fan, course, outbox);
        }
        self.conclude(source, fan.message.as_ref(), course, outbox);
        self.send_stored(now, course, left, outbox)
    }

    /// Sends what has waited for the record of a message; false if the steps do not suffice.
    pub(super) fn send_stored(
        &mut self,
        now: Time,
        course: &mut Course,
        steps: usize,
        outbox: &mut impl Outbox<H>,
    ) -> bool {
        for _ in 0..steps {
            let Some(key) = course.recording.stored.pop() else {
                break;
            };
            self.send(now, key, outbox);
        }
        course.recording.stored.is_empty()
    }

    /// Collects the subscriptions that match; false if the steps do not suffice.
    pub(super) fn walk(&self, topic: &str, course: &mut Course, left: &mut usize) -> bool {
        let (targets, deals) = (&mut course.targets, &mut course.deals);
        let nodes = &mut course.nodes;
        loop {
            if *left == 0 {
                course.recording.is_long = true;
                return false;
            }
            let before = targets.len() + deals.len();
            let is_more = self.trie.visit(&mut course.walk, topic, |index, node| {
                let subscribers = node.subscribers.as_slice();
                *nodes += usize::from(!subscribers.is_empty());
                targets.extend(subscribers.iter().filter_map(|one| self.target(one)));
                if node.groups > 0 {
                    deals.extend_from_slice(self.shares.of(index));
                }
            });
            if !is_more {
                break;
            }
            let added = targets.len() + deals.len() - before;
            *left = left.saturating_sub(1 + added / TARGETS_PER_STEP);
        }
        course.is_walked = true;
        let sorting = match *nodes > 1 {
            true => targets.len() / TARGETS_PER_STEP,
            false => 0,
        };
        course.recording.is_long |= course.left() + sorting > *left;
        true
    }

    /// Sorts the subscriptions of several filters by session; false if the steps do not suffice.
    fn sort(&self, course: &mut Course, left: &mut usize) -> bool {
        let run_max = RUN_PER_STEP * self.config.limits.steps_max.max(1);
        while course.nodes > 1 && course.sorted < course.targets.len() {
            if *left == 0 {
                return false;
            }
            let sorted = course.sort_run(run_max);
            *left = left.saturating_sub(sorted / TARGETS_PER_STEP);
        }
        true
    }

    fn target(&self, one: &Subscriber) -> Option<Target> {
        Some(Target {
            session: self.clients.key_at(one.session)?,
            identifier: one.identifier,
            options: one.options,
        })
    }

    /// Serves the session whose turn is next. Returns the steps beyond one.
    #[inline]
    fn serve<O: Outbox<H>>(
        &mut self,
        now: Time,
        source: &Source,
        fan: &mut Fan<'_, O::Shared>,
        course: &mut Course,
        outbox: &mut O,
    ) -> usize {
        if course.nodes > 1
            && let Some(own) = course.take_several()
        {
            self.serve_once(now, source, fan, (&own, course), outbox);
            return own.len() / TARGETS_PER_STEP;
        }
        let Some(target) = course.targets.get(course.at).copied() else {
            return 0;
        };
        course.at += 1;
        if !target.is_for(source) {
            return 0;
        }
        course.is_matched = true;
        let one = [target.identifier];
        let form = Form {
            qos: fan.content.qos.min(target.options.qos()),
            retain: fan.content.retain && target.options.retain_as_published(),
            group: DealtBy::NONE,
            identifiers: identifiers(&one),
        };
        let recording = &mut course.recording;
        self.deliver(now, target.session, &form, fan, recording, outbox);
        0
    }

    /// Serves a session by all of its subscriptions that match: one copy with the highest QoS and all identifiers.
    #[inline(never)]
    fn serve_once<O: Outbox<H>>(
        &mut self,
        now: Time,
        source: &Source,
        fan: &mut Fan<'_, O::Shared>,
        (own, course): (&[Target], &mut Course),
        outbox: &mut O,
    ) {
        let Some(session) = own.first().map(|first| first.session) else {
            return;
        };
        let own = own.iter();
        let own = own.filter(|one| one.is_for(source));
        let Some(qos) = own.clone().map(|one| one.options.qos()).max() else {
            return;
        };
        let numbers = own.clone().map(|one| one.identifier);
        let numbers: Vec<_> = numbers.filter(|number| *number != 0).collect();
        let mut options = own.map(|one| one.options);
        let form = Form {
            qos: fan.content.qos.min(qos),
            retain: fan.content.retain && options.any(|one| one.retain_as_published()),
            group: DealtBy::NONE,
            identifiers: &numbers,
        };
        course.is_matched = true;
        let recording = &mut course.recording;
        self.deliver(now, session, &form, fan, recording, outbox);
    }

    /// Deals a message to a member of a group.
    fn deal<O: Outbox<H>>(
        &mut self,
        now: Time,
        group: GroupKey,
        fan: &mut Fan<'_, O::Shared>,
        course: &mut Course,
        outbox: &mut O,
    ) {
        let Some(member) = self.pick(group, fan.content.qos) else {
            return;
        };
        let Some(key) = self.clients.key_at(member.session) else {
            return;
        };
        course.is_matched = true;
        let one = [member.identifier];
        let form = Form {
            qos: fan.content.qos.min(member.options.qos()),
            retain: fan.content.retain && member.options.retain_as_published(),
            group: DealtBy(group.index()),
            identifiers: identifiers(&one),
        };
        self.deliver(now, key, &form, fan, &mut course.recording, outbox);
    }

    pub(super) fn pick(&mut self, group: GroupKey, qos: QoS) -> Option<Subscriber> {
        let clients = &self.clients;
        let has_space = |one: &Subscriber| {
            let session = clients.at(one.session);
            session.is_some_and(|session| session.has_space())
        };
        let keeps = |one: &Subscriber| {
            let session = clients.at(one.session);
            let is_kept = qos.min(one.options.qos()) > QoS::AtMostOnce;
            is_kept && session.is_some_and(|session| !session.has_ended)
        };
        self.shares.pick(group, has_space, keeps)
    }

    /// Records and acknowledges a publication whose receivers are all served, once.
    pub(super) fn conclude(
        &mut self,
        source: &Source,
        message: Option<&Arc<Message>>,
        course: &mut Course,
        outbox: &mut impl Outbox<H>,
    ) {
        if std::mem::replace(&mut course.is_concluded, true) {
            return;
        }
        let stored = message.filter(|message| message.holders.is_stored());
        if let Some(message) = stored.filter(|_| course.recording.is_long) {
            self.ledger.record(Record::Message {
                message: message.number,
                content: Arc::clone(message),
            });
            let position = self.ledger.journal.position.0;
            course.recording.position = position;
            message.holders.set_recorded(position);
        }
        if course.is_unmatched() {
            self.ledger.counts.unmatched += 1;
        }
        self.note_will_published(source);
        self.acknowledge(source, course, outbox);
    }

    /// Keeps the memory of a publication that is done.
    pub(super) fn put_back(&mut self, mut course: Box<Course>) {
        course.reset();
        self.course = Some(course);
    }

    fn acknowledge(&mut self, source: &Source, course: &Course, outbox: &mut impl Outbox<H>) {
        let (Some(key), Some(id)) = (source.publisher, source.packet_id) else {
            return;
        };
        let Some(session) = self.clients.find_mut(key) else {
            return;
        };
        let tells = self.config.tells_unmatched && session.version.is_v5();
        let reason = match tells && course.is_unmatched() {
            true => ReasonCode::NoMatchingSubscribers,
            false => ReasonCode::Success,
        };
        let answer = match source.qos {
            QoS::ExactlyOnce => Answer::PubRec(id, reason),
            _ => Answer::PubAck(id, reason),
        };
        let mut position = course.recording.position;
        if source.qos == QoS::ExactlyOnce && session.is_recorded() {
            let incoming = session.incoming.as_mut();
            let found = incoming.and_then(|incoming| incoming.find(id));
            if found.is_some_and(|one| one.stage == Arrived::Published) {
                self.ledger.record(Record::Received {
                    session: session.number,
                    packet_id: id,
                });
                position = self.ledger.journal.position.0;
            }
        }
        self.answer_after(position, (key, source.connection), answer, outbox);
    }
}

/// So many subscriptions are collected, sorted or merged at the price of one step.
const TARGETS_PER_STEP: usize = 16;

/// A run of subscriptions that is sorted at once is so many times as long as a publication's steps.
const RUN_PER_STEP: usize = 8;

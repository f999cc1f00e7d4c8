//! Sessions end: their client identifiers are free at once, their parts are removed in turns.

use std::collections::VecDeque;
use std::sync::Arc;

use crosstie_mqtt::{QoS, topic};

use super::Space;
use super::deliver::Form;
use super::entries::remove_entry;
use crate::course::Recording;
use crate::ending::{Ending, Returned};
use crate::fan::Fan;
use crate::keys::{GroupKey, SessionKey};
use crate::outgoing::{DealtBy, Entry, Stage, UNRECORDED, identifiers};
use crate::session::{Session, SubscribedKey};
use crate::trie::Walk;
use crate::{Outbox, Record, SessionNumber, Time};

/// Steps of the input that ends a session. Most sessions need fewer.
const STEPS_AT_ONCE: usize = 64;

/// Bytes of a filter that are removed for the price of one step.
const FILTER_BYTES_PER_STEP: usize = 32;

impl<H> Space<H> {
    /// Ends a session without a connection. Returns the number of steps.
    pub(super) fn remove_session(
        &mut self,
        now: Time,
        key: SessionKey,
        outbox: &mut impl Outbox<H>,
    ) -> usize {
        let returned = self.returned(key);
        let Some(session) = self.clients.find_mut(key) else {
            return 0;
        };
        let number = session.number;
        // Until all of its parts are done, instead of its end.
        let mut ending = session.record(Some(now));
        if let Record::Session { expiry_s, .. } = &mut ending {
            *expiry_s = 0;
        }
        // From now on nothing of it is recorded: all of its records go at its end.
        session.number.0 = 0;
        session.has_ended = true;
        if let Some(ends_at) = session.ends_at() {
            self.idle.remove(&(ends_at, key));
        }
        let will = session.take_will();
        session.rare = None;
        if let Some(outgoing) = &mut session.outgoing {
            outgoing.sweeps_at = None;
        }
        let client_id = Arc::clone(&session.client_id);
        self.clients.forget_id(key);
        if number.0 != 0 {
            let closing = self.closing.entry(number).or_default();
            // The remaining parts, and this call.
            closing.parts += 2;
            closing.has_ended = true;
        }
        outbox.ended(&client_id);
        self.ending.push_back(Ending {
            key,
            number,
            returned,
        });
        let at_once = STEPS_AT_ONCE.min(self.config.limits.steps_max);
        let steps = self.continue_endings(now, at_once, outbox);
        if let Some(will) = will {
            self.publish_will(now, (key, number, &client_id), &will, outbox);
        }
        self.end_part(number);
        if self.closing.contains_key(&number) {
            self.ledger.record(ending);
        }
        if number.0 != 0 {
            let position = self.ledger.journal.position.0;
            self.ends.insert(client_id, position);
        }
        steps
    }

    /// Records the end of a session with the last of its parts: before, a restart would lose its will, or messages that are
    /// to be dealt to others.
    pub(super) fn end_part(&mut self, number: SessionNumber) {
        let Some(closing) = self.closing.get_mut(&number) else {
            return;
        };
        closing.parts -= 1;
        if closing.parts == 0 {
            let has_ended = closing.has_ended;
            self.closing.remove(&number);
            if has_ended {
                self.ledger.record(Record::SessionEnded { session: number });
            }
        }
    }

    /// Removes parts of sessions that have ended. Returns the number of steps.
    pub(super) fn continue_endings(
        &mut self,
        now: Time,
        steps: usize,
        outbox: &mut impl Outbox<H>,
    ) -> usize {
        let mut done = 0;
        while done < steps
            && let Some(mut ending) = self.ending.pop_front()
        {
            match self.continue_ending(now, &mut ending, outbox) {
                Some(steps) => {
                    done += steps;
                    self.ending.push_front(ending);
                }
                None => done += 1,
            }
        }
        done
    }

    /// Removes a part of a session; none if that was the last.
    fn continue_ending(
        &mut self,
        now: Time,
        ending: &mut Ending,
        outbox: &mut impl Outbox<H>,
    ) -> Option<usize> {
        let session = self.clients.find_mut(ending.key)?;
        if let Some(last) = session.subscriptions.len().checked_sub(1) {
            let bytes = self.remove_subscribed(ending.key, last, outbox);
            return Some(1 + bytes / FILTER_BYTES_PER_STEP);
        }
        // Before its entries, which keep the records of their messages.
        if let Some(one) = ending.returned.pop_front() {
            if one.is_unrecorded && one.message.holders.recorded() == UNRECORDED {
                // Its publication is not at its end, and may be all lost yet.
                ending.returned.push_back(one);
                return Some(1);
            }
            self.deal_again(now, &one, outbox);
            if ending.number.0 != 0 {
                // Together with its records in another session, so that a restart does not deal it once more.
                self.ledger.record(Record::Departed {
                    session: ending.number,
                    place: one.place,
                });
            }
            return Some(1);
        }
        let outgoing = session.outgoing.as_ref();
        if let Some(last) = outgoing.and_then(|outgoing| outgoing.len().checked_sub(1)) {
            let entry = remove_entry(session, last, &mut self.ledger, outbox);
            if let Some(entry) = entry.filter(|_| ending.number.0 != 0) {
                self.ledger.release_stored(&entry.message);
            }
            return Some(1);
        }
        let session = self.clients.remove(ending.key)?;
        self.ledger.keep(-(session.held as isize));
        self.end_part(ending.number);
        None
    }

    /// The messages of a session that go to other members of its groups. One of QoS 2 that the client may know is not
    /// among them (section 4.8.2).
    fn returned(&self, key: SessionKey) -> VecDeque<Returned> {
        let Some(session) = self.clients.find(key) else {
            return VecDeque::new();
        };
        let may_return = |entry: &&Entry| {
            let is_known = entry.is_repeated && entry.qos == QoS::ExactlyOnce;
            entry.group != DealtBy::NONE && entry.stage == Stage::Message && !is_known
        };
        let outgoing = session.outgoing.iter().flat_map(|outgoing| outgoing.iter());
        let returned = outgoing.filter(may_return).filter_map(|entry| {
            let group = match entry.group {
                DealtBy::SOME => self.group_of(session, entry.message.topic())?,
                DealtBy(group) => self.still_in(session, group, entry.message.topic())?,
            };
            Some(Returned {
                message: Arc::clone(&entry.message),
                qos: entry.qos,
                group,
                place: entry.place,
                is_unrecorded: entry.recorded() == UNRECORDED,
            })
        });
        returned.collect()
    }

    /// A group, if a session is a member and the topic matches: another group may have its index by now.
    fn still_in(&self, session: &Session<H>, group: u32, topic: &str) -> Option<GroupKey> {
        let node = self.shares.at(group)?.node;
        let key = SubscribedKey { node, group };
        session.find_subscribed(key).ok()?;
        let is_matched = topic::matches(&self.trie.filter(node), topic);
        self.shares.key_at(group).filter(|_| is_matched)
    }

    /// The first group of a session that matches a topic.
    fn group_of(&self, session: &Session<H>, topic: &str) -> Option<GroupKey> {
        let own = session.subscriptions.as_slice();
        let mut walk = Walk::default();
        let mut found = None;
        self.trie.begin(&mut walk);
        while found.is_none()
            && self.trie.visit(&mut walk, topic, |node, _| {
                let at = own.partition_point(|one| one.key.node < node);
                let first = own.get(at).map(|one| one.key);
                let group = first.filter(|key| {
                    let is_shared = key.group != SubscribedKey::ALONE;
                    key.node == node && is_shared
                });
                found = found.or_else(|| self.shares.key_at(group?.group));
            })
        {}
        found
    }

    fn deal_again<O: Outbox<H>>(&mut self, now: Time, returned: &Returned, outbox: &mut O) {
        let Some(content) = returned.message.content(now) else {
            return;
        };
        let mut fan = Fan::<O::Shared>::new(content, self.buffers.take());
        fan.message = Some(Arc::clone(&returned.message));
        let mut recording = Recording::default();
        if let Some(member) = self.pick(returned.group, returned.qos)
            && let Some(key) = self.clients.key_at(member.session)
        {
            let one = [member.identifier];
            let form = Form {
                qos: returned.qos.min(member.options.qos()),
                retain: content.retain && member.options.retain_as_published(),
                group: DealtBy(returned.group.index()),
                identifiers: identifiers(&one),
            };
            self.deliver(now, key, &form, &mut fan, &mut recording, outbox);
        }
        self.buffers = Some(fan.buffers);
    }
}

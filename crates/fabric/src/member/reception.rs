//! Handles input from other nodes, by kind.

use std::mem;

use crosstie_routing::Time;

use super::{Change, Input, Member, To};
use crate::engine::Engine;
use crate::event::{self, Event};
use crate::fields::Field;
use crate::pair::Cause;
use crate::{Frame, Kind, Refusal, Versions};

impl Member {
    pub(super) fn take<'f>(
        &mut self,
        now: Time,
        subject: &str,
        bytes: &'f [u8],
        engine: &mut dyn Engine,
    ) -> Result<Option<Input<'f>>, Refusal> {
        let frame = Frame::decode(bytes)?;
        let head = frame.head;
        self.counts.received[head.kind as usize] += 1;
        if head.incarnation == self.options.incarnation {
            return Ok(None);
        }
        if !head.kind.is_presence() && !self.options.versions.has(head.version) {
            return Err(Refusal::Version);
        }
        let (_, is_anew) = self.neighbours.hear(now, &head)?;
        if is_anew {
            self.end_pair(head.incarnation, Cause::Epoch);
        }
        let Some(neighbour) = self.neighbours.find(head.incarnation) else {
            return Ok(None);
        };
        if !head.kind.is_presence() && neighbour.is_strange() {
            return Err(Refusal::Version);
        }
        let fields = &frame.fields;
        match head.kind {
            Kind::Event => {
                if !neighbour.take_sequence(&head) {
                    self.counts.duplicates += 1;
                    return Ok(None);
                }
                return self.take_event(subject, &frame).map(Some);
            }
            Kind::Hello | Kind::Heartbeat => self.take_presence(now, &frame, engine)?,
            Kind::Leave => {
                self.end_pair(head.incarnation, Cause::Left);
                self.changes.push(Change::GivenUp {
                    node: head.incarnation,
                    has_ended: true,
                });
                self.neighbours.leave(head.incarnation);
            }
            Kind::Pair => self.agree(&frame, engine)?,
            Kind::Barrier => {
                let number = fields.number(Field::Number)?;
                let own = self.options.incarnation;
                if fields.numbers(Field::Asked).any(|asked| asked == own) {
                    let to = To::Node(head.incarnation);
                    self.say(Kind::Passed, to, Some((number, &[])), engine);
                }
            }
            Kind::Passed => {
                let number = fields.number(Field::Number)?;
                neighbour.note_answer();
                if self.barriers.handle_passed(number, head.incarnation) {
                    self.settle_barrier(now, engine);
                }
            }
            // The remaining kinds are messages between realms.
            _ => return self.hear(&frame, engine),
        }
        Ok(None)
    }

    fn take_event<'f>(&mut self, subject: &str, frame: &Frame<'f>) -> Result<Input<'f>, Refusal> {
        let event: Event<'f> = event::read(frame)?;
        let is_its = self.subjects.read_topic(subject, &mut self.subject)
            && event
                .publication()
                .is_some_and(|publication| publication.topic == self.subject);
        match is_its {
            true => Ok(Input::Event(frame.head.incarnation, event)),
            false => Err(Refusal::Event),
        }
    }

    /// Handles a node's presence: its identity, its versions, and its counts.
    fn take_presence(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        engine: &mut dyn Engine,
    ) -> Result<(), Refusal> {
        let (incarnation, fields) = (frame.head.incarnation, &frame.fields);
        let own = self.options.incarnation;
        if let Some(neighbour) = self.neighbours.find(incarnation) {
            let is_new = neighbour.know(fields.text(Field::Node)?, fields.text(Field::Server)?);
            let versions = Versions::read(fields.find(Field::Versions));
            let mut refused = fields.numbers(Field::Strangers);
            neighbour.is_refusing = refused.any(|stranger| stranger == own);
            let is_same = mem::replace(&mut neighbour.versions, versions) == versions;
            // A further node that accepts the spoken version changes nothing for the others, and neither does a
            // repeated announcement: the announcements of a thousand nodes every second must not be checked against all
            // nodes.
            let fits = versions.has(self.version) && !neighbour.is_strange();
            if !fits || !(is_new || is_same) {
                self.choose_version();
            }
        }
        self.judge_pair(frame, engine);
        if frame.head.kind == Kind::Hello {
            self.greet(now, incarnation, engine);
        }
        Ok(())
    }
}

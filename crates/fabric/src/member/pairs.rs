//! A member's pairs with other nodes: see [`crate::pair`].

use crosstie_routing::{Crossing, NeighbourKey, Refused};

use super::{Change, Input, Member, State, To};
use crate::crossing;
use crate::engine::Engine;
use crate::fields::{self, Field};
use crate::pair::{Agreed, Cause};
use crate::{Frame, Head, Kind, Refusal, pack};

/// Maximum size of a buffer that is kept.
const FRAME_ROOM_MAX: usize = 64 * 1024;

impl Member {
    /// Sends a message to another node's realm, after all earlier ones.
    pub fn cross(
        &mut self,
        to: NeighbourKey,
        crossing: &Crossing<'_>,
        engine: Option<&mut dyn Engine>,
    ) -> Result<(), Refused> {
        let engine = engine.ok_or(Refused::Gone)?;
        let (kind, serializer) = crossing::kind(crossing);
        let head = self.head(kind);
        let neighbour = self.neighbours.find(to.incarnation).ok_or(Refused::Gone)?;
        let pair = &mut neighbour.pair;
        if !pair.is_open || pair.own != to.pair {
            return Err(Refused::Gone);
        }
        let (other, said) = pair.said();
        let head = Head {
            serializer,
            sequence: said + 1,
            ..head
        };
        self.frame.clear();
        crossing::write(&head, other, crossing, &mut self.frame);
        let bytes_max = self.frame_bytes_max.min(pack::FRAME_BYTES_MAX);
        if self.frame.len() + pack::length(&[]).len() > bytes_max {
            return Err(Refused::TooLong);
        }
        pair.say();
        if kind == Kind::Ask {
            neighbour.asked = self.ticked;
        }
        self.subjects.write_node(to.incarnation, &mut self.subject);
        let sent = engine.pack(&self.subject, &self.frame);
        self.count_sent(kind);
        self.frame.shrink_to(FRAME_ROOM_MAX);
        sent.map_err(|_| {
            self.end_pair(to.incarnation, Cause::Full);
            Refused::Full
        })
    }

    /// The nodes that have joined or left the realm since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Number of open pairs.
    pub fn pairs(&self) -> usize {
        let all = self.neighbours.all();
        all.filter(|(_, neighbour)| neighbour.pair.is_open).count()
    }

    pub(super) fn end_pairs(&mut self) {
        let all: Vec<_> = self.neighbours.all().map(|(number, _)| number).collect();
        for incarnation in all {
            self.end_pair(incarnation, Cause::Detached);
        }
    }

    /// Ends a pair: informs the realm, and gives the next pair another number.
    pub(super) fn end_pair(&mut self, incarnation: u64, cause: Cause) {
        let Some(neighbour) = self.neighbours.find(incarnation) else {
            return;
        };
        if neighbour.pair.is_open {
            self.counts.resets[cause as usize] += 1;
            self.changes.push(Change::Left(NeighbourKey {
                incarnation,
                pair: neighbour.pair.own,
            }));
        }
        neighbour.asked = None;
        self.side_last += 1;
        neighbour.pair.begin(self.side_last);
    }

    /// Chooses the version that most nodes accept; pairs with the others end.
    pub(super) fn choose_version(&mut self) {
        let (version, refused) = self.neighbours.choose_version(self.options.versions);
        self.version = version;
        for incarnation in refused {
            self.end_pair(incarnation, Cause::Version);
            self.changes.push(Change::GivenUp {
                node: incarnation,
                has_ended: false,
            });
        }
    }

    /// Compares a heartbeat's counts with the received frames; seeks agreement if they differ.
    pub(super) fn judge_pair(&mut self, frame: &Frame<'_>, engine: &mut dyn Engine) {
        let incarnation = frame.head.incarnation;
        let own = self.options.incarnation;
        let mut numbers = frame.fields.numbers(Field::Said);
        let mut said = None;
        while let (Some(node), Some(side), Some(last)) =
            (numbers.next(), numbers.next(), numbers.next())
        {
            if node == own {
                said = Some((side, last));
            }
        }
        let Some(neighbour) = self.neighbours.find(incarnation) else {
            return;
        };
        if let Some(cause) = neighbour.pair.missing(said) {
            self.end_pair(incarnation, cause);
        }
        let Some(neighbour) = self.neighbours.find(incarnation) else {
            return;
        };
        if neighbour.pair.own == 0 {
            self.side_last += 1;
            neighbour.pair.begin(self.side_last);
        }
        if !neighbour.pair.is_open && !neighbour.is_mute() && !neighbour.is_strange() {
            self.say_pair(incarnation, engine);
        }
    }

    /// Handles the other node's view of a pair.
    pub(super) fn agree(
        &mut self,
        frame: &Frame<'_>,
        engine: &mut dyn Engine,
    ) -> Result<(), Refusal> {
        let incarnation = frame.head.incarnation;
        let other = frame.fields.number(Field::Side)?;
        let own = frame.fields.number(Field::Pair)?;
        let is_open = frame.fields.number(Field::Number)? == 1;
        let Some(neighbour) = self.neighbours.find(incarnation) else {
            return Ok(());
        };
        if neighbour.is_mute() {
            return Ok(());
        }
        if neighbour.pair.own == 0 || (neighbour.pair.is_open && neighbour.pair.other != other) {
            self.end_pair(incarnation, Cause::Other);
        }
        let Some(neighbour) = self.neighbours.find(incarnation) else {
            return Ok(());
        };
        match neighbour.pair.agree(other, own, is_open) {
            Agreed::Known => return Ok(()),
            Agreed::Unknown => {}
            Agreed::Opened => self.changes.push(Change::Joined(NeighbourKey {
                incarnation,
                pair: own,
            })),
        }
        self.say_pair(incarnation, engine);
        Ok(())
    }

    /// Handles a message of the other node's realm.
    pub(super) fn hear<'f>(
        &mut self,
        frame: &Frame<'f>,
        engine: &mut dyn Engine,
    ) -> Result<Option<Input<'f>>, Refusal> {
        let incarnation = frame.head.incarnation;
        let own = frame.fields.number(Field::Pair)?;
        let Some(neighbour) = self.neighbours.find(incarnation) else {
            return Ok(None);
        };
        match neighbour.pair.hear(own, frame.head.sequence) {
            None => return Ok(None),
            Some(true) => {}
            Some(false) => {
                self.end_pair(incarnation, Cause::Gap);
                self.say_pair(incarnation, engine);
                return Ok(None);
            }
        }
        if frame.head.kind == Kind::Known {
            neighbour.note_answer();
        }
        let came = crossing::read(frame).inspect_err(|_| {
            // A refused frame is missing, too.
            self.end_pair(incarnation, Cause::Gap);
            self.say_pair(incarnation, engine);
        })?;
        let key = NeighbourKey {
            incarnation,
            pair: own,
        };
        Ok(Some(Input::Crossing(key, came)))
    }

    fn say_pair(&mut self, incarnation: u64, engine: &mut dyn Engine) {
        if self.state == State::Detached {
            return;
        }
        let head = self.head(Kind::Pair);
        let Some(neighbour) = self.neighbours.find(incarnation) else {
            return;
        };
        let pair = &neighbour.pair;
        let frame = &mut self.frame;
        frame.clear();
        head.write(frame);
        fields::put(Field::Side, &pair.own.to_be_bytes(), frame);
        fields::put(Field::Pair, &pair.other.to_be_bytes(), frame);
        let is_open = u64::from(pair.is_open);
        fields::put(Field::Number, &is_open.to_be_bytes(), frame);
        fields::end(frame);
        self.publish_note(Kind::Pair, To::Node(incarnation), engine);
    }
}

//! The meta API of a realm on several nodes: asks the others, and merges the answers.
//!
//! A question is sent to each present node, in order with all other messages between both. After half a second the
//! answers so far are merged, and counted as partial. If only one node can know or do the requested thing, a missing
//! answer is a failure instead. For a part of a list, one node after the other is asked for the rest.

use std::collections::VecDeque;
use std::mem;

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Message, Payload, Serializer, Value};

use super::arguments::Arguments;
use super::asked::SKIPPED;
use super::merge::{Merge, count};
use super::open_queries::{Asked, Asker, ClusterQuery, ID_BYTES, Part};
use super::remote_sessions::LIST;
use super::testament_custody::TESTAMENTS;
use super::{Answer, Procedure, find, is_always_there};
use crate::across::{Crossing, NeighbourKey};
use crate::fault::{Fault, error};
use crate::handover::{self, RETAINED, UNANSWERED};
use crate::identity::SessionIndex;
use crate::{Note, Outbox, Realm, Time};

/// Time that other nodes have to answer; more if they have to search and end many sessions.
const ANSWER_MS: u64 = 500;
const KILLING_MS: u64 = 10_000;

/// Cost to ask a node, and ids merged per step.
const STEPS_PER_QUESTION: u32 = 20;
const IDS_PER_STEP: usize = 4;

impl<H> Realm<H> {
    /// Answers a session's call for all nodes.
    pub(super) fn gather(
        &mut self,
        now: Time,
        (from, asked): (SessionIndex, Asked),
        (procedure, what): (&'static str, Procedure),
        arguments: Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Answer, Fault> {
        let Some(merge) = what.merge(&arguments) else {
            return self.ask(now, (Some(from), asked), what, &arguments, out);
        };
        self.queries.check_room(&asked, what.is_list())?;
        self.queries.last += 1;
        let number = self.queries.last;
        let own = Asked {
            by: Asker::ClusterQuery(number),
            ..asked
        };
        let takes_ms = match what {
            Procedure::KillMany(_) => KILLING_MS,
            _ => ANSWER_MS,
        };
        let end = now.after_ms(takes_ms);
        let mut gathering = ClusterQuery::new(asked, merge, what.is_list(), end);
        let page = arguments.page()?;
        let (offset, limit) = (page.offset, page.limit);
        let is_part =
            (offset > 0 || limit.is_some()) && matches!(merge, Merge::Together | Merge::ByPolicy);
        let answer = self.ask(now, (Some(from), own), what, &arguments, out);
        let neighbours = &self.sessions.neighbours;
        let there: VecDeque<_> = neighbours.there().map(|n| neighbours[n].key).collect();
        let (skipped, named) = (arguments.skipped(), arguments.write(None));
        if is_part {
            gathering.bytes += named.len() as isize;
            gathering.part = Some(Part {
                procedure,
                arguments,
                next: there.clone(),
                offset,
                limit,
            });
        }
        match answer {
            Ok(Answer::Later) => gathering.awaits_own = true,
            Ok(Answer::Now(value)) => gathering.take(Ok((value, skipped)))?,
            Ok(recalled @ Answer::Recalled(_)) => return Ok(recalled),
            Err(fault) => gathering.take(Err(fault))?,
        }
        if gathering.is_answered() {
            return gathering.into_answer().map(Answer::Now);
        }
        if !is_part {
            for node in there {
                match self.send_question(node, number, (procedure, &named), out) {
                    true => gathering.awaited.insert(node),
                    false => mem::replace(&mut gathering.is_partial, true),
                };
            }
        }
        let held = gathering.value.as_ref().map_or(0, count) as isize * ID_BYTES;
        gathering.bytes += held;
        out.hold_across(gathering.bytes);
        self.queries.ends.insert((gathering.end, number));
        self.queries.open.insert(number, gathering);
        self.go_on(now, number, out);
        Ok(Answer::Later)
    }

    /// Handles a question of another node, which has authorized its session.
    pub(crate) fn handle_question(
        &mut self,
        now: Time,
        from: NeighbourKey,
        message: &Message<'_>,
        out: &mut dyn Outbox<H>,
    ) {
        let Message::Call {
            request,
            procedure,
            payload,
            ..
        } = message
        else {
            return;
        };
        let asked = Asked {
            by: Asker::Node(from),
            request: *request,
            serializer: Serializer::Cbor,
        };
        let mut skipped = 0;
        if **procedure == *RETAINED {
            return self.take_retained(now, from, payload, out);
        }
        if **procedure == *TESTAMENTS {
            self.take_testaments(from, payload, out);
            return self.settle(now, out);
        }
        if **procedure == *LIST {
            let answer = self.list_for_node(now, payload, out);
            return self.answer_node(now, (from, *request), (answer, 0), out);
        }
        let found = find(procedure).filter(|_| self.config.meta_api || is_always_there(procedure));
        let answer = found.ok_or_else(no_such).and_then(|(_, parameters, what)| {
            let arguments = Arguments::read(payload, parameters)?;
            what.merge(&arguments).ok_or_else(no_such)?;
            let answer = self.ask(now, (None, asked), *what, &arguments, out);
            skipped = arguments.skipped();
            answer
        });
        let answer = match answer {
            Ok(Answer::Now(value)) => Ok(value),
            Ok(Answer::Later | Answer::Recalled(_)) => {
                return self.work(now, self.steps_at_once_max, out);
            }
            Err(fault) => Err(fault),
        };
        self.answer_node(now, (from, *request), (answer, skipped), out);
        self.settle(now, out);
    }

    /// Handles another node's answer.
    pub(crate) fn handle_answer(
        &mut self,
        now: Time,
        from: NeighbourKey,
        message: &Message<'_>,
        out: &mut dyn Outbox<H>,
    ) {
        let (request, answer) = match message {
            Message::Result {
                request, payload, ..
            } => (request, read(payload)),
            Message::Error {
                request,
                error,
                payload,
                ..
            } => (request, Err(fault(error, payload))),
            _ => return,
        };
        if request.0 == UNANSWERED {
            // This question is answered only by a node that does not know it.
            return self.give_up_holder(from.incarnation, out);
        }
        if self.remote_index.asked.get(&request.0) == Some(&from) {
            self.remote_index.asked.remove(&request.0);
            let page = answer.map(|(page, _)| page);
            return self.take_listed(now, from, page, out);
        }
        let open = self.queries.open.get_mut(&request.0);
        if open.is_some_and(|open| open.awaited.remove(&from)) {
            self.gathered(now, request.0, answer, out);
        }
    }

    /// Takes this node's own part of the answer.
    pub(super) fn answered_here(
        &mut self,
        now: Time,
        number: u64,
        answer: Result<Value, Fault>,
        out: &mut dyn Outbox<H>,
    ) {
        if let Some(open) = self.queries.open.get_mut(&number) {
            open.awaits_own = false;
            let answer = answer.map(|value| (value, 0));
            self.gathered(now, number, answer, out);
        }
    }

    /// Handles a node that has gone: it will not answer.
    pub(crate) fn leave_queries(&mut self, now: Time, node: NeighbourKey, out: &mut dyn Outbox<H>) {
        let open = self.queries.open.iter_mut();
        let awaiting: Vec<_> = open
            .filter_map(|(number, open)| {
                let is_awaited = open.awaited.remove(&node);
                open.is_partial |= is_awaited;
                is_awaited.then_some(*number)
            })
            .collect();
        for number in awaiting {
            self.go_on(now, number, out);
        }
    }

    /// Answers the questions whose time is over.
    pub(crate) fn end_queries(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        while let Some((_, number)) = self.queries.ends.first().filter(|(end, _)| *end <= now) {
            let number = *number;
            if let Some(open) = self.queries.open.get_mut(&number) {
                open.is_partial = true;
            }
            self.end_gathering(now, number, None, out);
        }
    }

    fn gathered(
        &mut self,
        now: Time,
        number: u64,
        answer: Result<(Value, usize), Fault>,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(open) = self.queries.open.get_mut(&number) else {
            return;
        };
        let more = answer.as_ref().map_or(0, |(value, _)| count(value));
        let steps = STEPS_PER_QUESTION + (more / IDS_PER_STEP) as u32;
        self.steps = self.steps.saturating_add(steps);
        let bytes = more as isize * ID_BYTES;
        open.bytes += bytes;
        out.hold_across(bytes);
        match open.take(answer) {
            Ok(()) => self.go_on(now, number, out),
            Err(fault) => self.end_gathering(now, number, Some(fault), out),
        }
    }

    /// Asks the next node; answers if no node is waited for.
    fn go_on(&mut self, now: Time, number: u64, out: &mut dyn Outbox<H>) {
        loop {
            let Some(open) = self.queries.open.get_mut(&number) else {
                return;
            };
            if !open.is_answered() && (open.awaits_own || !open.awaited.is_empty()) {
                return;
            }
            let Some(node) = open.next() else {
                return self.end_gathering(now, number, None, out);
            };
            let Some(part) = &open.part else {
                return;
            };
            let named = part.arguments.write(Some((part.offset, part.limit)));
            let procedure = part.procedure;
            let is_asked = self.send_question(node, number, (procedure, &named), out);
            if let Some(open) = self.queries.open.get_mut(&number) {
                match is_asked {
                    true => open.awaited.insert(node),
                    false => mem::replace(&mut open.is_partial, true),
                };
            }
        }
    }

    pub(super) fn send_question(
        &mut self,
        node: NeighbourKey,
        number: u64,
        (procedure, named): (&str, &[u8]),
        out: &mut dyn Outbox<H>,
    ) -> bool {
        self.steps = self.steps.saturating_add(STEPS_PER_QUESTION);
        let question = handover::question(number, procedure, named);
        out.cross(node, &Crossing::Question(&question)).is_ok()
    }

    fn end_gathering(
        &mut self,
        now: Time,
        number: u64,
        fault: Option<Fault>,
        out: &mut dyn Outbox<H>,
    ) {
        let Some(ended) = self.queries.open.remove(&number) else {
            return;
        };
        self.queries.ends.remove(&(ended.end, number));
        out.hold_across(-ended.bytes);
        if ended.is_partial {
            out.note(Note::AnswerPartial, 1);
        }
        let asked = ended.asked;
        let answer = fault.map_or_else(|| ended.into_answer(), Err);
        self.answer_meta(now, asked, answer, out);
    }
}

fn no_such() -> Fault {
    Fault::new(
        error::NO_SUCH_PROCEDURE,
        "the node does not answer that for others",
    )
}

/// The value of a RESULT, and the number of list items skipped before it.
fn read(payload: &Payload<'_>) -> Result<(Value, usize), Fault> {
    let read = |bytes| codec::decode_value(payload.serializer, bytes, &Limits::default());
    let skipped = read(payload.kwargs).ok();
    let skipped = skipped.and_then(|named| named.get(SKIPPED)?.as_u64());
    match read(payload.args) {
        Ok(Value::List(mut values)) if !values.is_empty() => {
            let skipped = usize::try_from(skipped.unwrap_or(0)).unwrap_or(usize::MAX);
            Ok((values.swap_remove(0), skipped))
        }
        _ => Err(Fault::new(
            error::NETWORK_FAILURE,
            "another node's answer is malformed",
        )),
    }
}

/// The error of another node, if it is one of the meta API.
fn fault(error: &str, payload: &Payload<'_>) -> Fault {
    let known = [
        error::NO_SUCH_SESSION,
        error::NO_SUCH_REGISTRATION,
        error::NO_SUCH_SUBSCRIPTION,
        error::NO_SUCH_ROLE,
        error::NO_SUCH_PROCEDURE,
        error::NOT_AUTHORIZED,
        error::INVALID_ARGUMENT,
        error::LIST_IDS_MAX,
        error::REALM_CALLS_MAX,
        error::PAYLOAD_SIZE_EXCEEDED,
    ];
    let uri = known.into_iter().find(|known| *known == error);
    let text = codec::decode_value(payload.serializer, payload.args, &Limits::default());
    let text = match text {
        Ok(Value::List(values)) => values.first().and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let text = text.unwrap_or_else(|| "another node could not answer".to_owned());
    Fault::new(uri.unwrap_or(error::NETWORK_FAILURE), text)
}

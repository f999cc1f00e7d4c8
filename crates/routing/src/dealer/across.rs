//! The dealer in a cluster: other nodes, the registrations they know of, and the answers that wait for them.

use std::collections::VecDeque;

use crosstie_wamp::{Message, MessageType, RegistrationId, RequestId};

use super::Dealer;
use super::calls::calls_bytes;
use super::end::{STEPS_PER_CALL, interrupt};
use super::strict::Strict;
use crate::across::{Crossing, Locality, NeighbourKey};
use crate::context::{Context, none_left};
use crate::fault::{Fault, error};
use crate::identity::{SessionIndex, SessionKey};
use crate::party::NeighbourIndex;

/// Maximum number of answers that wait for other nodes, over all sessions.
const LINE_MAX: usize = 100_000;

/// Cost to announce a registration to a node, or to remove a node's part.
const STEPS_PER_PART: u32 = 10;

#[derive(Debug)]
pub(super) struct Across {
    pub(super) locality: Locality,
    /// Number of the last confirmation requested from other nodes.
    asked: u64,
    /// Number of the last confirmation received from all of them.
    known: u64,
    /// Whether an announcement was sent since the last request.
    is_wanted: bool,
    /// Waiting answers, in the order of the numbers that they wait for.
    line: VecDeque<(u64, Answer)>,
    /// Callees that have lost a registration and do not understand UNREGISTERED.
    pub(super) evicted: Vec<SessionIndex>,
    /// Set if `single` is `strict`: a second callee is excluded even across failures.
    pub(super) strict: Option<Strict>,
}

/// An answer to a session.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) to: SessionKey,
    pub(super) request: RequestId,
    /// The callee of a REGISTER; `None` for an UNREGISTER.
    pub(super) registered: Option<(RegistrationId, u64)>,
}

impl Across {
    pub(super) fn new(locality: Locality) -> Self {
        Self {
            locality,
            asked: 0,
            known: 0,
            is_wanted: false,
            line: VecDeque::new(),
            evicted: Vec::new(),
            strict: None,
        }
    }

    fn may_answer(&self) -> bool {
        let first = self.line.front();
        first.is_some_and(|(number, _)| *number <= self.known)
    }
}

impl Dealer {
    pub(crate) fn join_fabric(&mut self, own: u64, scope: u64, locality: Locality) {
        self.registrations.own = own;
        self.registrations.scope = scope;
        self.across = Some(Box::new(Across::new(locality)));
    }

    /// The number by which other nodes know this one.
    pub(crate) fn own_number(&self) -> u64 {
        self.registrations.own
    }

    /// Whether work for other nodes is due.
    #[inline]
    pub(crate) fn has_backlog_across<H>(&self, sessions: &crate::session::Sessions<H>) -> bool {
        let across = self.across.as_deref();
        across.is_some_and(|across| {
            let is_losing = across.strict.as_ref().is_some_and(Strict::is_losing);
            across.may_answer() || sessions.neighbours.has_backlog() || is_losing
        })
    }

    pub(super) fn evict(&mut self, sessions: Vec<SessionIndex>) {
        if let Some(across) = &mut self.across {
            across.evicted.extend(sessions);
        }
    }

    /// The callees that lost a registration and have to be sent GOODBYE.
    pub(crate) fn take_evicted(&mut self) -> Vec<SessionIndex> {
        let across = self.across.as_deref_mut();
        across.map_or_else(Vec::new, |across| std::mem::take(&mut across.evicted))
    }

    /// Defers an answer until other nodes know of its registration; returns whether it is deferred.
    pub(super) fn wait_for_others<H>(
        &mut self,
        context: &mut Context<'_, H>,
        to: SessionIndex,
        request: RequestId,
        registered: Option<(RegistrationId, u64)>,
    ) -> bool {
        let to = context.sessions.key(to);
        let Some(across) = &mut self.across else {
            return false;
        };
        // No answer overtakes an earlier one.
        let claims = registered.is_some_and(|(id, _)| self.registrations.is_to_be_claimed(id));
        if !context.sessions.neighbours.is_any_there() && across.line.is_empty() && !claims {
            return false;
        }
        across.is_wanted = true;
        let answer = Answer {
            to,
            request,
            registered,
        };
        across.line.push_back((across.asked + 1, answer));
        self.ask(context);
        true
    }

    /// Refuses a request if too many answers wait.
    pub(super) fn check_line(&self) -> Result<(), Fault> {
        let across = self.across.as_deref();
        match across.is_some_and(|across| across.line.len() >= LINE_MAX) {
            true => Err(none_left(
                error::REALM_REGISTRATIONS_MAX,
                "requests that wait for other nodes",
                LINE_MAX,
            )),
            false => Ok(()),
        }
    }

    /// Requests a confirmation from all nodes, if announcements were sent since the last request and that one is
    /// confirmed.
    fn ask<H>(&mut self, context: &mut Context<'_, H>) {
        let Some(across) = &mut self.across else {
            return;
        };
        if context.sessions.neighbours.is_asked() {
            return;
        }
        across.known = across.asked;
        if !across.is_wanted {
            return;
        }
        across.is_wanted = false;
        across.asked += 1;
        let number = across.asked;
        let there: Vec<_> = context.sessions.neighbours.there().collect();
        let mut is_asked = false;
        for index in there {
            if context.cross(index.into(), &Crossing::Ask(number)).is_ok() {
                context.sessions.neighbours[index].asked = Some(number);
                is_asked = true;
            }
        }
        if !is_asked {
            across.known = number;
        }
    }

    pub(super) fn handle_known<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: NeighbourIndex,
        number: u64,
    ) {
        let asked = &mut context.sessions.neighbours[from].asked;
        asked.take_if(|asked| *asked == number);
        self.ask(context);
    }

    pub(crate) fn leave_neighbour<H>(
        &mut self,
        context: &mut Context<'_, H>,
        neighbour: NeighbourKey,
    ) {
        context.sessions.neighbours.leave(neighbour);
        self.ask(context);
    }

    /// Does a part of the work for other nodes; returns whether there was any.
    pub(crate) fn work_across<H>(&mut self, context: &mut Context<'_, H>, steps_max: u32) -> bool {
        if !self.has_backlog_across(context.sessions) {
            return false;
        }
        let count_max = steps_max.div_ceil(STEPS_PER_PART) as usize;
        if self.is_losing() {
            self.lose_some(context, count_max);
        } else if let Some(index) = context.sessions.neighbours.leaving() {
            self.end_some(context, index, count_max);
        } else if self.across.as_deref().is_some_and(Across::may_answer) {
            self.answer_some(context, count_max);
        } else if let Some(index) = context.sessions.neighbours.telling.pop_front() {
            let from = context.sessions.neighbours[index].told.unwrap_or(0);
            let next = self
                .registrations
                .tell_some(context, index, from, count_max);
            context.sessions.neighbours[index].told = next;
            if next.is_some() {
                context.sessions.neighbours.telling.push_back(index);
            }
            context.spend(count_max as u32 * STEPS_PER_PART);
        }
        true
    }

    fn answer_some<H>(&mut self, context: &mut Context<'_, H>, count_max: usize) {
        for _ in 0..count_max {
            let Some(across) = self.across.as_deref_mut().filter(|a| a.may_answer()) else {
                return;
            };
            let Some((_, answer)) = across.line.pop_front() else {
                return;
            };
            context.spend(STEPS_PER_PART);
            let Some(to) = context.sessions.find(answer.to) else {
                continue;
            };
            match answer.registered {
                Some((id, _)) if self.registrations.is_to_be_claimed(id) => {
                    self.claim(context, answer);
                }
                Some(entered) => self.let_in_or_refuse(context, (to, answer.request), entered),
                None => {
                    let unregistered = Message::Unregistered {
                        request: answer.request,
                        revoked: None,
                    };
                    let _ = context.reply(to, &unregistered);
                }
            }
        }
    }

    /// Lets a callee in that other nodes know of; refuses it if another node's callee took precedence.
    pub(super) fn let_in_or_refuse<H>(
        &mut self,
        context: &mut Context<'_, H>,
        (to, request): (SessionIndex, RequestId),
        entered: (RegistrationId, u64),
    ) {
        let (registration, _) = entered;
        if !self.registrations.let_pending_in(context, to, entered) {
            let text = "another node has a callee that was there before";
            let fault = Fault::new(error::PROCEDURE_ALREADY_EXISTS, text);
            return context.refuse(to, MessageType::Register, request, &fault);
        }
        self.waiting.stir(registration);
        let registered = Message::Registered {
            request,
            registration,
        };
        let _ = context.reply(to, &registered);
    }

    /// Ends calls with a node that has gone, then removes its parts.
    fn end_some<H>(
        &mut self,
        context: &mut Context<'_, H>,
        index: NeighbourIndex,
        count_max: usize,
    ) {
        if self.leave_waiting(context, index, count_max) {
            return;
        }
        let neighbour = &context.sessions.neighbours[index];
        let (mut made, mut served) = (
            neighbour.calls.some(count_max),
            neighbour.invocations.some(count_max),
        );
        made.sort_unstable_by_key(|key| self.calls[*key].request);
        served.sort_unstable_by_key(|key| self.calls[*key].invocation);
        context.spend((made.len() + served.len()).max(1) as u32 * STEPS_PER_CALL);
        for key in &made {
            let call = self.calls.remove(*key, context.sessions);
            self.end_rare(context, &call, false);
            if !call.interrupted {
                interrupt(
                    context,
                    &call,
                    crosstie_wamp::CancelMode::KillNoWait,
                    error::CANCELED,
                );
            }
        }
        let fault = Fault::new(
            error::NETWORK_FAILURE,
            "the node of the callee, or the way to it, is lost",
        );
        for key in &served {
            let call = self.end(context, *key);
            context.refuse(call.caller, MessageType::Call, call.request, &fault);
        }
        if !made.is_empty() || !served.is_empty() {
            return;
        }
        if !self
            .registrations
            .leave_neighbour(context, index, count_max)
        {
            let room = context.sessions.neighbours[index].calls.room();
            context.out.hold_across(-calls_bytes(room));
            context.sessions.neighbours.remove_left();
        }
    }
}

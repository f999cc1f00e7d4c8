//! Calls that wait for a callee, naively.

use crosstie_routing::{CallTimeoutUnit, error};
use crosstie_wamp::MatchPolicy;

use super::patterns::{matches, wildcard_rank};
use super::queue::{NewCall, Queue, Waiting};
use super::{Entry, Model};
use crate::Name;

impl Model {
    /// Removes closed sessions, and starts queued calls, until neither is left.
    pub(super) fn settle(&mut self) {
        loop {
            while let Some(name) = self.doomed.pop() {
                self.leave(name);
            }
            if !self.start_one() {
                break;
            }
        }
    }

    /// The router's own timeout of a call that asks for this one; 0 is none.
    pub(super) fn timeout_ms(&self, asked: u64) -> u64 {
        let given = [
            asked * self.unit_ms(),
            self.config.limits.call_timeout_ms_max,
        ];
        given.into_iter().filter(|ms| *ms > 0).min().unwrap_or(0)
    }

    fn unit_ms(&self) -> u64 {
        match self.config.call_timeout_unit {
            CallTimeoutUnit::Milliseconds => 1,
            CallTimeoutUnit::Seconds => 1_000,
        }
    }

    /// Whether calls wait for a registration.
    pub(super) fn is_awaited(&self, born: u64) -> bool {
        self.waiting.iter().any(|call| call.born == born)
    }

    pub(super) fn waiting_place(&self, from: Name, request: u64) -> Option<usize> {
        let same = |call: &Waiting| call.caller == from && call.request == request;
        self.waiting.iter().position(same)
    }

    pub(super) fn wait(&mut self, serving: &Entry, new: NewCall) -> Result<(), &'static str> {
        let calls_max = self.calls_wait_max(serving);
        let in_queue: Vec<Name> = self
            .waiting
            .iter()
            .filter(|c| c.born == serving.born)
            .map(|c| c.caller)
            .collect();
        let has = in_queue
            .iter()
            .filter(|caller| **caller == new.from)
            .count();
        let mut callers = in_queue.clone();
        callers.push(new.from);
        callers.sort_unstable();
        callers.dedup();
        let is_room = in_queue.len() < calls_max - calls_max / 4
            || (in_queue.len() < calls_max && has < calls_max / callers.len());
        if new.options.progress || !is_room {
            return Err(error::MAX_CONCURRENCY_REACHED);
        }
        self.forget_shares();
        let place = self
            .queues
            .iter()
            .position(|queue| queue.born == serving.born);
        let place = place.unwrap_or_else(|| {
            self.queues.push(Queue {
                born: serving.born,
                ..Queue::default()
            });
            self.queues.len() - 1
        });
        let queue = &mut self.queues[place];
        let last = queue.rounds.iter().find(|(caller, _)| *caller == new.from);
        let round = last.map_or(0, |(_, round)| *round).max(queue.round) + 1;
        queue.rounds.retain(|(caller, _)| *caller != new.from);
        queue.rounds.push((new.from, round));
        self.order_last += 1;
        self.waiting.push(Waiting {
            caller: new.from,
            request: new.request,
            born: serving.born,
            round,
            order: self.order_last,
            timeout_ms: self.timeout_ms(new.options.timeout_ms),
            new,
        });
        Ok(())
    }

    /// Gives one call that waits to a callee, or ends it; whether there was one.
    fn start_one(&mut self) -> bool {
        self.forget_shares();
        let mut born: Vec<u64> = self.waiting.iter().map(|call| call.born).collect();
        born.sort_unstable();
        let is_free = |entry: &&Entry| !self.is_busy(entry) && !self.member(entry.member).closed;
        let may_start = |born: &u64| {
            let mut serving = self
                .callees
                .iter()
                .filter(|entry| entry.born == *born)
                .peekable();
            serving.peek().is_none() || serving.any(|entry| is_free(&entry))
        };
        let Some(born) = born.into_iter().find(may_start) else {
            return false;
        };
        let in_queue = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, call)| call.born == born);
        let (place, _) = in_queue
            .min_by_key(|(_, call)| (call.round, call.order))
            .expect("it waits");
        let call = self.waiting.remove(place);
        let of_it = |queue: &&mut Queue| queue.born == born;
        self.queues
            .iter_mut()
            .find(of_it)
            .expect("it has a queue")
            .round = call.round;
        self.forget_shares();
        if let Err(uri) = self.start(born, call.new) {
            self.refuse(call.caller, "CALL", call.request, uri);
        }
        true
    }

    fn start(&mut self, born: u64, new: NewCall) -> Result<(), &'static str> {
        let of_it = |entry: &&Entry| entry.born == born;
        let mut group: Vec<Entry> = self.callees.iter().filter(of_it).cloned().collect();
        if group.is_empty() {
            group = self.serving(&new.procedure);
            let Some(first) = group.first() else {
                return Err(error::NO_SUCH_PROCEDURE);
            };
            if self.is_awaited(first.born) || group.iter().all(|entry| self.is_busy(entry)) {
                return self.wait(&group[0], new);
            }
        }
        self.invoke(&group, &new)
    }

    /// Time has passed.
    pub(super) fn pass_waiting(&mut self) {
        let now_ms = self.now_ms;
        let overdue = |call: &Waiting| call.deadline_ms().is_some_and(|due| due <= now_ms);
        while let Some(place) = self.waiting.iter().position(overdue) {
            let call = self.waiting.remove(place);
            self.refuse(call.caller, "CALL", call.request, error::TIMEOUT);
        }
    }

    /// The rest of a call's timeout, for a callee that applies it.
    pub(super) fn left(&self, new: &NewCall) -> u64 {
        let asked = new.options.timeout_ms;
        let waited_ms = self.now_ms - new.since_ms;
        let waited = waited_ms / self.unit_ms();
        if asked == 0 || waited_ms == 0 {
            asked
        } else {
            asked.saturating_sub(waited).max(1)
        }
    }

    /// The queue that fits a registration best.
    fn calls_wait_max(&self, serving: &Entry) -> usize {
        let of = |policy: MatchPolicy| {
            let all = self.config.call_queues.iter();
            all.filter(move |queue| {
                queue.match_policy == policy && matches(policy, &queue.uri, &serving.uri)
            })
        };
        let best = of(MatchPolicy::Exact).next();
        let best = best.or_else(|| of(MatchPolicy::Prefix).max_by_key(|queue| queue.uri.len()));
        let best = best
            .or_else(|| of(MatchPolicy::Wildcard).max_by_key(|queue| wildcard_rank(&queue.uri)));
        best.map_or(0, |queue| queue.calls_max)
    }

    /// A queue that is empty is forgotten, and so is a caller that has no call in one.
    fn forget_shares(&mut self) {
        let waiting = &self.waiting;
        for queue in &mut self.queues {
            let born = queue.born;
            queue.rounds.retain(|(caller, _)| {
                waiting
                    .iter()
                    .any(|c| c.born == born && c.caller == *caller)
            });
        }
        self.queues.retain(|queue| !queue.rounds.is_empty());
    }
}

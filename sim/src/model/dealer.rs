//! Registrations and calls, naively.

use crosstie_routing::{Action, ClientFeature, Refused, error};
use crosstie_wamp::{CallOptions, CancelMode, InvocationPolicy, MatchPolicy, RegisterOptions};

use super::broker::of_trustlevel;
use super::decisions::ASKED;
use super::open_call::Call;
use super::queue::NewCall;
use super::reroute::keep;
use super::{Entry, Model};
use crate::sent::trustlevel;
use crate::{Kind, Name, Sent};

impl Model {
    pub(super) fn register(
        &mut self,
        from: Name,
        request: u64,
        options: &RegisterOptions,
        procedure: &str,
    ) {
        let disclosed = match self.may_register(from, options, procedure) {
            Ok(disclosed) => disclosed,
            Err(uri) => return self.refuse(from, "REGISTER", request, uri),
        };
        let policy = options.match_policy;
        if options.force_reregister {
            self.revoke(policy, procedure);
        }
        let same = |entry: &&Entry| entry.policy == policy && entry.uri == procedure;
        let known = self.callees.iter().find(same).map(|entry| entry.id);
        let told = self.actual.iter().find_map(|(to, sent)| match sent {
            Sent::Registered {
                request: answered,
                registration,
            } if *to == from && *answered == request => Some(*registration),
            _ => None,
        });
        let told = told.or_else(|| self.told_id(Kind::Registrations, from));
        let id = self.learn_id("registration", known, told);
        let first = self.callees.iter().find(|entry| entry.id == id);
        let (is_first, created_ms) = (first.is_none(), first.map_or(self.now_ms, |e| e.created_ms));
        self.order_last += 1;
        let born = first.map_or(self.order_last, |entry| entry.born);
        let mut entry = Entry {
            member: from,
            policy,
            uri: procedure.to_owned(),
            id,
            order: self.order_last,
            invoke: options.invoke,
            forward_timeout: options.forward_timeout,
            disclosed,
            concurrency: options.concurrency,
            nkey: options.nkey.as_deref().map(Box::from),
            born,
            created_ms,
        };
        let mut entered = Some(entry.clone());
        let mine = |entry: &&mut Entry| entry.id == id && entry.member == from;
        match self.callees.iter_mut().find(mine) {
            Some(again) => {
                entry.order = again.order;
                *again = entry;
                entered = None;
            }
            None => self.callees.push(entry),
        }
        let _ = self.reply(
            from,
            Sent::Registered {
                request,
                registration: id,
            },
        );
        if let Some(entry) = entered {
            self.tell_entered(Kind::Registrations, &entry, is_first);
        }
    }

    pub(super) fn unregister(&mut self, from: Name, request: u64, registration: u64) {
        if !self.take_entry(Kind::Registrations, registration, from) {
            return self.refuse(from, "UNREGISTER", request, error::NO_SUCH_REGISTRATION);
        }
        let unregistered = Sent::Unregistered {
            request,
            revoked: None,
        };
        let _ = self.reply(from, unregistered);
    }

    /// Takes a procedure from all its callees.
    fn revoke(&mut self, policy: MatchPolicy, procedure: &str) {
        let same = |entry: &&Entry| entry.policy == policy && entry.uri == procedure;
        let all: Vec<Entry> = self.callees.iter().filter(same).cloned().collect();
        for entry in all {
            self.remove_entry(Kind::Registrations, entry.id, entry.member);
        }
    }

    /// Whether it is a violation.
    pub(super) fn call(
        &mut self,
        from: Name,
        request: u64,
        options: &CallOptions,
        procedure: &str,
        payload: u64,
    ) -> bool {
        if let Some(violation) = self.begin_call(from, request, options, payload) {
            return violation;
        }
        if let Err(uri) = self.open_call(from, request, options, procedure, payload) {
            if options.progress && uri != ASKED {
                self.member_mut(from).unfinished.push(request);
            }
            self.refuse(from, "CALL", request, uri);
        }
        false
    }

    /// Handles a CALL that does not open a call; returns whether it was a violation.
    pub(super) fn begin_call(
        &mut self,
        from: Name,
        request: u64,
        options: &CallOptions,
        payload: u64,
    ) -> Option<bool> {
        let member = self.member_mut(from);
        if options.progress
            && !member
                .features
                .has(ClientFeature::CallerProgressiveCallInvocations)
        {
            return Some(true);
        }
        let open = self
            .calls
            .iter()
            .position(|c| c.caller == from && c.request == request);
        if let Some(place) = open {
            return Some(self.continue_call(place, options.progress, payload));
        }
        if self.waiting_place(from, request).is_some() {
            return Some(true);
        }
        let member = self.member_mut(from);
        if member.unfinished.contains(&request) {
            if !options.progress {
                member.unfinished.retain(|known| *known != request);
            }
            return Some(false);
        }
        (!self.take_request(from, request)).then_some(true)
    }

    /// Whether it is a violation.
    pub(super) fn answer(
        &mut self,
        from: Name,
        invocation: u64,
        progress: bool,
        outcome: Result<u64, (u64, &'static str)>,
    ) -> bool {
        let place = self
            .calls
            .iter()
            .position(|c| c.callee == from && c.invocation == invocation);
        let Some(place) = place else {
            return invocation > self.member(from).invocation_last;
        };
        let (caller, request) = (self.calls[place].caller, self.calls[place].request);
        let callee = self.calls[place].disclosed.then(|| self.member(from).id);
        if progress {
            self.calls[place].since_ms = self.now_ms;
            self.calls[place].kept = None;
        }
        let sent = match outcome {
            Ok(_) if progress && !self.calls[place].receive_progress => return false,
            Ok(payload) => Sent::Result {
                request,
                progress,
                callee,
                payload,
            },
            Err((payload, uri)) => Sent::Error {
                kind: "CALL",
                request,
                uri: uri.to_owned(),
                payload: Some(payload),
            },
        };
        if !progress {
            self.end(place);
        }
        match (self.reply(caller, sent), outcome) {
            (Err(Refused::Unrepresentable(_)), Err((_, uri))) => {
                self.refuse(caller, "CALL", request, uri);
            }
            (Err(Refused::Unrepresentable(_)), Ok(_)) if progress => {
                self.abandon(place, error::INVALID_ARGUMENT);
            }
            (Err(Refused::Unrepresentable(_)), Ok(_)) => {
                self.refuse(caller, "CALL", request, error::INVALID_ARGUMENT);
            }
            _ => {}
        }
        false
    }

    pub(super) fn cancel(&mut self, from: Name, request: u64, mode: CancelMode) {
        if let Some(place) = self.waiting_place(from, request) {
            self.waiting.remove(place);
            return self.refuse(from, "CALL", request, error::CANCELED);
        }
        let open = self
            .calls
            .iter()
            .position(|c| c.caller == from && c.request == request);
        let Some(place) = open else { return };
        if mode == CancelMode::KillNoWait {
            return self.abandon(place, error::CANCELED);
        }
        if mode == CancelMode::Kill {
            let call = self.calls[place].clone();
            if call.interrupted || self.interrupt(&call, true, error::CANCELED) {
                self.calls[place].interrupted = true;
                return;
            }
        }
        self.end(place);
        self.refuse(from, "CALL", request, error::CANCELED);
    }

    /// Time has passed.
    pub(super) fn pass(&mut self) {
        let now_ms = self.now_ms;
        let overdue = |call: &Call| call.deadline_ms().is_some_and(|due| due <= now_ms);
        while let Some(place) = self.calls.iter().position(overdue) {
            self.abandon(place, error::TIMEOUT);
        }
        self.pass_waiting();
    }

    pub(super) fn end_calls_of(&mut self, name: Name) {
        self.waiting.retain(|call| call.caller != name);
        while let Some(place) = self.calls.iter().position(|call| call.caller == name) {
            let call = self.calls.remove(place);
            if !call.interrupted {
                self.interrupt(&call, false, error::CANCELED);
            }
        }
        while let Some(place) = self.calls.iter().position(|call| call.callee == name) {
            let call = self.end(place);
            self.refuse(call.caller, "CALL", call.request, error::CANCELED);
        }
    }

    fn may_register(
        &mut self,
        from: Name,
        options: &RegisterOptions,
        procedure: &str,
    ) -> Result<bool, &'static str> {
        let policy = options.match_policy;
        Self::check_uri(procedure, policy)?;
        Self::check_reserved(procedure)?;
        let disclose = self.authorize(from, Action::Register, procedure, policy)?.0;
        let same = |entry: &&Entry| entry.policy == policy && entry.uri == procedure;
        let first = self.callees.iter().find(same);
        if let Some(entry) = first.filter(|_| !options.force_reregister) {
            if entry.invoke == InvocationPolicy::Single {
                return Err(error::PROCEDURE_ALREADY_EXISTS);
            }
            if entry.invoke != options.invoke {
                return Err(error::PROCEDURE_EXISTS_WITH_DIFFERENT_POLICY);
            }
        }
        // The same once more is not one more.
        let others = |entry: &&Entry| entry.member == from && !same(entry);
        let held = self.callees.iter().filter(others).count();
        let mine = |entry: &Entry| entry.member == from && same(&entry);
        let is_again = !options.force_reregister && self.callees.iter().any(mine);
        let registrations_max = self.bound(from, |limits| limits.registrations_max);
        if !is_again && held >= registrations_max.unwrap_or(self.config.limits.registrations_max) {
            return Err(error::REGISTRATIONS_MAX);
        }
        Ok(disclose.callee)
    }

    pub(super) fn open_call(
        &mut self,
        from: Name,
        request: u64,
        options: &CallOptions,
        procedure: &str,
        payload: u64,
    ) -> Result<(), &'static str> {
        Self::check_uri(procedure, MatchPolicy::Exact)?;
        let (disclose, trustlevel) =
            self.authorize(from, Action::Call, procedure, MatchPolicy::Exact)?;
        let disclosed = self.disclosed(disclose.caller, options.disclose_me)?;
        let group = self.serving(procedure);
        let Some(first) = group.first() else {
            let is_own = Self::check_reserved(procedure).is_err();
            return match options.sharding.is_some() && is_own {
                true => Err(error::OPTION_NOT_ALLOWED),
                false => Err(error::NO_SUCH_PROCEDURE),
            };
        };
        let calls_max = self.bound(from, |limits| limits.calls_max);
        let calls = self.calls.iter().filter(|call| call.caller == from).count();
        let waiting = self.waiting.iter().filter(|call| call.caller == from);
        if calls + waiting.count() >= calls_max.unwrap_or(self.config.limits.calls_max) {
            return Err(error::CALLS_MAX);
        }
        let new = NewCall {
            from,
            request,
            options: CallOptions {
                passthru: of_trustlevel(trustlevel),
                ..options.clone()
            },
            procedure: procedure.to_owned(),
            disclosed,
            payload,
            since_ms: self.now_ms,
            tried: Vec::new(),
        };
        if self.is_partitioned(options, first.invoke)? {
            return self.invoke_in_shard(&group, &new);
        }
        if self.is_awaited(first.born) || group.iter().all(|entry| self.is_busy(entry)) {
            return self.wait(&group[0], new);
        }
        self.invoke(&group, &new)
    }

    /// Gives a call to one of its possible callees.
    pub(super) fn invoke(&mut self, group: &[Entry], new: &NewCall) -> Result<(), &'static str> {
        let options = &new.options;
        let attempts = self.attempts(group, new);
        let chosen = attempts
            .iter()
            .map(|order| self.choose(order, options.progress))
            .find(|outcome| attempts.len() == 1 || self.happened(new, outcome))
            .unwrap_or(Err(error::NO_AVAILABLE_CALLEE))?;
        self.give(group, new, chosen);
        Ok(())
    }

    /// A callee takes a call.
    pub(super) fn give(&mut self, group: &[Entry], new: &NewCall, chosen: Entry) {
        let NewCall {
            from,
            request,
            payload,
            ..
        } = *new;
        let (options, procedure) = (&new.options, &new.procedure);
        self.turns.retain(|(id, _)| *id != chosen.id);
        self.turns.push((chosen.id, chosen.order));
        self.keep_company(group, new, &chosen);

        let callee = self.member(chosen.member);
        let features = callee.features;
        let forwarded = chosen.forward_timeout && features.has(ClientFeature::CalleeCallTimeout);
        let timeout_ms = self.timeout_ms(if forwarded { 0 } else { options.timeout_ms });
        let invocation = callee.invocation_last + 1;
        let first_part = Sent::Invocation {
            request: invocation,
            registration: chosen.id,
            procedure: (chosen.policy != MatchPolicy::Exact).then(|| procedure.clone()),
            caller: new.disclosed.then(|| self.member(from).id),
            timeout_ms: if forwarded { self.left(new) } else { 0 },
            receive_progress: options.receive_progress
                && features.has(ClientFeature::CalleeProgressiveCallResults),
            progress: options.progress,
            trustlevel: trustlevel(options.passthru.as_deref()),
            payload,
        };
        self.calls.push(Call {
            caller: from,
            request,
            callee: chosen.member,
            invocation,
            receive_progress: options.receive_progress,
            disclosed: chosen.disclosed,
            slot: (chosen.concurrency > 0).then_some(chosen.order),
            interrupted: false,
            next_part: options.progress.then(|| first_part.clone()),
            timeout_ms,
            since_ms: new.since_ms,
            kept: keep(group, new, &chosen, features),
        });
        self.member_mut(chosen.member).invocation_last = invocation;
        let _ = self.deliver(chosen.member, first_part);
    }

    /// Whether it is a violation.
    fn continue_call(&mut self, place: usize, more: bool, number: u64) -> bool {
        let call = &mut self.calls[place];
        let Some(mut part) = call.next_part.clone() else {
            return true;
        };
        if !more {
            call.next_part = None;
        }
        if call.interrupted {
            return false;
        }
        if let Sent::Invocation {
            progress, payload, ..
        } = &mut part
        {
            (*progress, *payload) = (more, number);
        }
        let callee = call.callee;
        match self.deliver(callee, part) {
            Ok(()) => {}
            Err(Refused::Unrepresentable(_)) => self.abandon(place, error::INVALID_ARGUMENT),
            Err(_) => self.abandon(place, error::NO_AVAILABLE_CALLEE),
        }
        false
    }

    /// Whether that is what the realm chose.
    pub(super) fn happened(&self, new: &NewCall, outcome: &Result<Entry, &'static str>) -> bool {
        self.actual.iter().any(|(to, sent)| match (outcome, sent) {
            (Ok(entry), Sent::Invocation { payload, .. }) => {
                *to == entry.member && *payload == new.payload
            }
            (Err(expected), Sent::Error { request, uri, .. }) => {
                *to == new.from && *request == new.request && uri == expected
            }
            // The caller's queue was full, and it was not told which error it was.
            (Err(_), Sent::Closed) => *to == new.from,
            _ => false,
        })
    }

    fn abandon(&mut self, place: usize, uri: &str) {
        let call = self.end(place);
        self.refuse(call.caller, "CALL", call.request, uri);
        if !call.interrupted {
            self.interrupt(&call, false, uri);
        }
    }

    fn interrupt(&mut self, call: &Call, kill: bool, reason: &str) -> bool {
        let understands = self
            .member(call.callee)
            .features
            .has(ClientFeature::CalleeCallCanceling);
        let interrupt = Sent::Interrupt {
            request: call.invocation,
            kill,
            reason: reason.to_owned(),
        };
        understands && self.deliver(call.callee, interrupt).is_ok()
    }

    pub(super) fn end(&mut self, place: usize) -> Call {
        let call = self.calls.remove(place);
        if call.next_part.is_some() {
            self.member_mut(call.caller).unfinished.push(call.request);
        }
        call
    }
}

//! Draws the next messages of callers and callees.

use crosstie_routing::ClientFeature;
use crosstie_wamp::{CallOptions, InvocationPolicy, RegisterOptions, Runmode, Seldom, Sharding};

use super::Simulation;
use super::draw::URIS;
use crate::chance::Chance;
use crate::{Name, Request};

impl Simulation {
    pub(super) fn draw_register(&mut self, from: Name) -> Request {
        let (mut match_policy, mut procedure) = self.draw_pattern();
        let mut invoke = self.chance.pick(&[
            InvocationPolicy::Single,
            InvocationPolicy::First,
            InvocationPolicy::Last,
            InvocationPolicy::RoundRobin,
            InvocationPolicy::RoundRobin,
            InvocationPolicy::Random,
            InvocationPolicy::LeastBusy,
            InvocationPolicy::Sticky,
        ]);
        let shared = self.model.callees.iter();
        let shared = shared.filter(|entry| entry.invoke != InvocationPolicy::Single);
        let shared: Vec<_> = shared
            .map(|entry| (entry.policy, entry.uri.clone(), entry.invoke))
            .collect();
        if self.chance.one_in(2)
            && let Some(known) = self.chance.pick_any(&shared)
        {
            (match_policy, procedure, invoke) = known;
        }
        let chance = &mut self.chance;
        let options = RegisterOptions {
            match_policy,
            invoke,
            forward_timeout: chance.one_in(2),
            concurrency: chance.pick(&[0, 0, 1, 2]),
            force_reregister: chance.one_in(8),
            nkey: chance
                .pick(&[None, None, Some("n1"), Some("n2")])
                .map(Box::from)
                .into(),
            is_forwarded: false,
            unsupported: None,
        };
        Request::Register {
            request: self.draw_id(from),
            options,
            procedure,
        }
    }

    pub(super) fn draw_call(&mut self, from: Name) -> Request {
        let request = self.draw_id(from);
        let announced = self
            .model
            .member(from)
            .features
            .has(ClientFeature::CallerProgressiveCallInvocations);
        let chance = &mut self.chance;
        let options = CallOptions {
            timeout_ms: if chance.one_in(2) {
                chance.below(200) as u64
            } else {
                0
            },
            receive_progress: chance.one_in(2),
            progress: chance.one_in(3) && (announced || chance.one_in(20)),
            disclose_me: chance.pick(&[None, None, Some(false), Some(true)]),
            passthru: None,
            sharding: draw_sharding(chance),
        };
        let procedure = chance.pick(&URIS).to_owned();
        Request::Call {
            request,
            options,
            procedure,
            payload: self.next_payload(),
        }
    }

    /// A CALL that continues one, in time or late.
    pub(super) fn draw_next_part(&mut self, from: Name) -> Request {
        let open = self.model.calls.iter();
        let open = open.filter(|call| call.caller == from && call.next_part.is_some());
        let ended = self.model.member(from).unfinished.iter().copied();
        let ids: Vec<u64> = open.map(|call| call.request).chain(ended).collect();
        let Some(request) = self.chance.pick_any(&ids) else {
            return self.draw_call(from);
        };
        let options = CallOptions {
            progress: !self.chance.one_in(3),
            ..CallOptions::default()
        };
        Request::Call {
            request,
            options,
            procedure: "a".to_owned(),
            payload: self.next_payload(),
        }
    }

    pub(super) fn draw_answer(&mut self, from: Name) -> Request {
        let served = self.model.calls.iter().filter(|call| call.callee == from);
        let ids: Vec<u64> = served.map(|call| call.invocation).collect();
        let last = self.model.member(from).invocation_last as usize;
        let stray = if self.chance.one_in(60) {
            last + 1
        } else {
            self.chance.below(last + 1)
        };
        let mut invocation = stray.max(1) as u64;
        if let Some(id) = self.chance.pick_any(&ids)
            && !self.chance.one_in(10)
        {
            invocation = id;
        } else if stray == 0 {
            return self.draw_call(from);
        }
        let payload = self.next_payload();
        let calls = &mut self.model.calls.iter();
        let may_be_another = calls.any(|call| {
            call.callee == from && call.invocation == invocation && call.kept.is_some()
        });
        if self.chance.one_in(if may_be_another { 2 } else { 5 }) {
            return Request::Error {
                invocation,
                is_unavailable: self.chance.one_in(2),
                payload,
            };
        }
        Request::Yield {
            invocation,
            progress: self.chance.one_in(2),
            payload,
        }
    }
}

/// The shard options of a CALL: mostly none, and seldom unsupported ones.
fn draw_sharding(chance: &mut Chance) -> Seldom<Sharding> {
    if !chance.one_in(5) {
        return Seldom::NONE;
    }
    let partition = Some(Runmode::Partition);
    Seldom::from(Sharding {
        rkey: chance
            .pick(&[None, Some("k1"), Some("k2"), Some("k3"), Some("k4")])
            .map(Into::into),
        runmode: chance.pick(&[None, partition, partition, partition, Some(Runmode::All)]),
        unsupported: None,
    })
}

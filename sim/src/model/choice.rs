//! The callees of a call, naively.

use crosstie_routing::{ClientFeature, Refused, error};
use crosstie_wamp::{InvocationPolicy, MatchPolicy};

use super::patterns::{matches, wildcard_rank};
use super::queue::NewCall;
use super::{Entry, Model};
use crate::Name;

impl Model {
    /// The callees of the registration that serves a procedure, in the order of registration.
    pub(super) fn serving(&self, procedure: &str) -> Vec<Entry> {
        let reserved = Self::check_reserved(procedure).is_err();
        let of = |kind: MatchPolicy| {
            self.callees.iter().filter(move |entry| {
                entry.policy == kind && matches(kind, &entry.uri, procedure) && !reserved
            })
        };
        let best = of(MatchPolicy::Exact)
            .next()
            .or_else(|| of(MatchPolicy::Prefix).max_by_key(|entry| entry.uri.len()))
            .or_else(|| of(MatchPolicy::Wildcard).max_by_key(|entry| wildcard_rank(&entry.uri)));
        let Some(best) = best else { return Vec::new() };
        self.callees
            .iter()
            .filter(|entry| entry.id == best.id)
            .cloned()
            .collect()
    }

    /// The orders in which the callees may be asked that were not; several when chance decides.
    pub(super) fn attempts(&self, group: &[Entry], new: &NewCall) -> Vec<Vec<Entry>> {
        let NewCall {
            from: caller,
            tried,
            options,
            ..
        } = new;
        let from = |start: usize| -> Vec<Entry> {
            group
                .iter()
                .cycle()
                .skip(start)
                .take(group.len())
                .filter(|entry| !tried.contains(&entry.order))
                .cloned()
                .collect()
        };
        match group[0].invoke {
            InvocationPolicy::Single | InvocationPolicy::First => vec![from(0)],
            InvocationPolicy::Last => {
                let mut all = from(0);
                all.reverse();
                vec![all]
            }
            InvocationPolicy::RoundRobin => {
                let last = self.turns.iter().find(|(id, _)| *id == group[0].id);
                let last = last.map_or(0, |(_, order)| *order);
                let next = group
                    .iter()
                    .position(|entry| entry.order > last)
                    .unwrap_or(0);
                vec![from(next)]
            }
            InvocationPolicy::Random => (0..group.len()).map(from).collect(),
            InvocationPolicy::LeastBusy => {
                let may_take = |entry: &Entry| {
                    let closed = self.member(entry.member).closed;
                    !self.is_busy(entry) && !closed && !tried.contains(&entry.order)
                };
                let free = (0..group.len()).filter(|place| may_take(&group[*place]));
                let least = free.min_by_key(|place| self.serves(group[*place].member));
                vec![from(least.unwrap_or(0))]
            }
            // The first time it is the realm's choice.
            InvocationPolicy::Sticky => match self.companion(group, *caller) {
                Some(place) if options.sharding.is_none() => vec![from(place)],
                _ => (0..group.len()).map(from).collect(),
            },
        }
    }

    /// The place of the callee that a caller was given before.
    fn companion(&self, group: &[Entry], caller: Name) -> Option<usize> {
        let is_its_own = |entry: &Entry| self.companions.contains(&(caller, entry.order));
        group.iter().position(is_its_own)
    }

    /// A caller was given a callee.
    pub(super) fn keep_company(&mut self, group: &[Entry], new: &NewCall, chosen: &Entry) {
        let is_sticky = chosen.invoke == InvocationPolicy::Sticky && new.options.sharding.is_none();
        if is_sticky && self.companion(group, new.from).is_none() {
            self.companions.push((new.from, chosen.order));
        }
    }

    /// How many calls a member serves.
    fn serves(&self, name: Name) -> usize {
        let calls = self.calls.iter();
        calls.filter(|call| call.callee == name).count()
    }

    /// Which of the callees, asked in that order, takes the call.
    pub(super) fn choose(&self, order: &[Entry], progress: bool) -> Result<Entry, &'static str> {
        let free = order.iter().filter(|entry| !self.is_busy(entry));
        for entry in free.take(8) {
            let member = self.member(entry.member);
            let features = member.features;
            if progress
                && !(features.has(ClientFeature::CalleeProgressiveCallInvocations)
                    && features.has(ClientFeature::CalleeCallCanceling))
            {
                return Err(error::FEATURE_NOT_SUPPORTED);
            }
            match member.refusing.and_then(|refusing| refusing.refusal(true)) {
                None => return Ok(entry.clone()),
                Some(Refused::Unrepresentable(_)) => return Err(error::INVALID_ARGUMENT),
                Some(_) => {}
            }
        }
        Err(error::NO_AVAILABLE_CALLEE)
    }

    /// Whether a callee serves as many calls as it wants to.
    pub(super) fn is_busy(&self, entry: &Entry) -> bool {
        let serving = self
            .calls
            .iter()
            .filter(|call| call.slot == Some(entry.order));
        entry.concurrency > 0 && serving.count() >= entry.concurrency as usize
    }
}

//! Policies that choose by more than order: the least busy callee, and the sticky callee of a caller. A callee that
//! cannot take the call is skipped, and the next in order is asked, as with the other policies.

use crosstie_wamp::{InvocationPolicy, RegistrationId};

use super::callees::{Callee, Callees};
use super::new_call::NewCall;
use super::registrations::Registrations;
use crate::context::Context;
use crate::keys::RegistrationKey;
use crate::rendezvous::{rank, rkey};
use crate::session::{Session, Sessions};

/// Maximum number of callees that are compared for one call. If there are more, those next in turn are.
const COMPARED_MAX: usize = 256;

/// The place of the callee that is offered the call first.
#[cold]
#[inline(never)]
pub(super) fn pick<H>(
    callees: &Callees,
    registration: RegistrationId,
    sessions: &Sessions<H>,
    new: &NewCall<'_>,
) -> usize {
    match callees.policy() {
        InvocationPolicy::Sticky => companion(callees, registration, sessions, new),
        _ => least_busy(callees, sessions, new),
    }
}

/// Among the callees that may take the call, the one with the fewest open calls over all registrations; the first of
/// several.
fn least_busy<H>(callees: &Callees, sessions: &Sessions<H>, new: &NewCall<'_>) -> usize {
    let may_take = |callee: &Callee| {
        callee.is_free() && !sessions[callee.session].closing && !new.tried.contains(&callee.number)
    };
    let places = callees.compared(COMPARED_MAX);
    let free = places.filter(|place| may_take(&callees[*place]));
    let least = free.min_by_key(|place| pending(&callees[*place], sessions));
    least.unwrap_or(0)
}

/// Number of calls that a callee serves.
pub(super) fn pending<H>(callee: &Callee, sessions: &Sessions<H>) -> usize {
    sessions[callee.session].invocations.len()
}

/// The callee of the call's resource, or the one that the caller was assigned before; if there is none, the
/// highest-ranked.
fn companion<H>(
    callees: &Callees,
    registration: RegistrationId,
    sessions: &Sessions<H>,
    new: &NewCall<'_>,
) -> usize {
    if let Some(rkey) = rkey(new.options) {
        return callees.first_in_shard(rkey, |_| true).unwrap_or(0);
    }
    let Some(caller) = new.from.session().map(|from| &sessions[from]) else {
        return 0;
    };
    let known = remembered(caller, registration);
    if let Some(place) = known.and_then(|number| callees.place_of(number)) {
        return place;
    }
    let places = 0..callees.len();
    let best = places.max_by_key(|place| rank(caller.id.0, callees[*place].number));
    best.unwrap_or(0)
}

fn remembered<H>(caller: &Session<H>, registration: RegistrationId) -> Option<u64> {
    let rare = caller.rare.as_deref()?;
    rare.companions.of(registration)
}

impl Registrations {
    /// Assigns a callee of a sticky registration to the caller. It stays assigned while it exists, even if another one
    /// has to take a call.
    pub(super) fn keep_company<H>(
        &self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        callee: Callee,
        new: &NewCall<'_>,
    ) {
        let Some(from) = new
            .from
            .session()
            .filter(|_| new.options.sharding.is_none())
        else {
            return;
        };
        let id = self[key].id;
        let known = remembered(&context.sessions[from], id);
        let is_there = |id: RegistrationId, number: u64| {
            let key = self.of_id(id);
            key.is_some_and(|key| self[key].callees.place_of(number).is_some())
        };
        if known.is_some_and(|number| is_there(id, number)) {
            return;
        }
        let rare = context.sessions[from].rare.get_or_insert_default();
        let bytes = rare.companions.put(id, callee.number, is_there);
        context.hold(from, bytes);
    }
}

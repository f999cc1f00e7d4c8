//! Chooses the node whose callees take a call, by the registration's policy over all nodes.

use crosstie_wamp::InvocationPolicy;

use super::Dealer;
use super::callee_choice::pending;
use super::parts::{Elsewhere, is_conflict};
use crate::context::Context;
use crate::keys::RegistrationKey;
use crate::party::NeighbourIndex;

/// The node whose callees take a call.
pub(super) enum Chosen {
    Here,
    Node(NeighbourIndex),
}

impl Dealer {
    /// Chooses among the remaining nodes. First and last are exact. In turn and by chance a node weighs as much as it
    /// has callees, and its own turn decides among these.
    pub(super) fn choose<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        may_be_here: bool,
        tried: &[u64],
    ) -> Option<Chosen> {
        let own = self.registrations.own;
        let prefers_own = self.prefers_own();
        let registration = &mut self.registrations[key];
        let here = match may_be_here {
            true => registration.callees.len() as u64,
            false => 0,
        };
        if here > 0 && prefers_own {
            return Some(Chosen::Here);
        }
        let policy = registration.policy();
        let (is_own, claim) = (registration.is_own(), registration.claim);
        let number = |place: usize| (here > 0).then(|| registration.callees[place].number);
        let (first, last) = (number(0), number((here as usize).saturating_sub(1)));
        let Some(parts) = &mut registration.across else {
            return (here > 0).then_some(Chosen::Here);
        };
        let neighbours = &context.sessions.neighbours;
        // A part that yields to this node's callees is about to be withdrawn.
        let is_left = |part: &&Elsewhere| {
            let yields = is_own && is_conflict(policy, part.policy);
            let wins = (part.claim, part.incarnation) < (claim, own);
            !neighbours[part.node].closing
                && !tried.contains(&part.incarnation)
                && (!yields || wins)
                && (is_own || part.policy == policy)
        };
        let mut there = parts.elsewhere.iter().filter(is_left);
        match policy {
            InvocationPolicy::Single | InvocationPolicy::First => {
                let part = there.next();
                let is_here =
                    first.is_some_and(|first| part.is_none_or(|part| (first, own) < part.place()));
                chosen(is_here, part)
            }
            InvocationPolicy::Last => {
                let part = there.max_by_key(|part| (part.last, part.incarnation));
                let is_here = last.is_some_and(|last| {
                    part.is_none_or(|part| (last, own) > (part.last, part.incarnation))
                });
                chosen(is_here, part)
            }
            // The load of another node's callees is known only from the calls that this node sent.
            InvocationPolicy::LeastBusy => {
                let callees = registration.callees.iter().take(here as usize);
                let least = callees
                    .map(|callee| pending(callee, context.sessions))
                    .min();
                let served = |part: &&Elsewhere| {
                    let served = neighbours[part.node].invocations.len();
                    (served / (part.callees.max(1) as usize), part.place())
                };
                let part = there.min_by_key(served);
                let is_here = least.zip(first).is_some_and(|(least, first)| {
                    part.is_none_or(|part| (least, (first, own)) < served(&part))
                });
                chosen(is_here, part)
            }
            // Clustered realms refuse sticky registrations.
            InvocationPolicy::Sticky => chosen(here > 0, there.next()),
            InvocationPolicy::RoundRobin | InvocationPolicy::Random => {
                let all: u64 = here
                    + there
                        .clone()
                        .map(|part| u64::from(part.callees))
                        .sum::<u64>();
                if all == 0 {
                    return None;
                }
                let mut place = match policy {
                    InvocationPolicy::Random => context.random.below(all as usize) as u64,
                    _ => parts.turn % all,
                };
                parts.turn = parts.turn.wrapping_add(1);
                // Node by node, in the order of their first callees.
                let mut here = first.map(|first| ((first, own), here));
                for part in there {
                    if let Some((_, callees)) = here.take_if(|(first, _)| *first < part.place()) {
                        if place < callees {
                            return Some(Chosen::Here);
                        }
                        place -= callees;
                    }
                    if place < u64::from(part.callees) {
                        return Some(Chosen::Node(part.node));
                    }
                    place -= u64::from(part.callees);
                }
                chosen(here.is_some(), None)
            }
        }
    }
}

fn chosen(is_here: bool, part: Option<&Elsewhere>) -> Option<Chosen> {
    match (is_here, part) {
        (true, _) => Some(Chosen::Here),
        (false, part) => part.map(|part| Chosen::Node(part.node)),
    }
}

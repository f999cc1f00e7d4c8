//! Calls for one shard, naively.
//!
//! The first shard of a resource is the realm's choice. It keeps that shard while it exists, unless a new shard has
//! registered.

use crosstie_routing::error;
use crosstie_wamp::{CallOptions, InvocationPolicy, PublishOptions, Runmode, SubscribeOptions};

use super::patterns::matches;
use super::queue::NewCall;
use super::{Entry, Model};
use crate::{Name, Sent};

/// A shard's name, or the order number of the one callee that serves it.
type Shard = Result<Box<str>, u64>;

/// The shard that a resource had, and all that there were.
#[derive(Debug)]
pub(super) struct Placement {
    born: u64,
    rkey: Box<str>,
    has: Shard,
    of: Vec<Shard>,
}

impl Model {
    /// Whether a CALL is for one shard.
    pub(super) fn is_partitioned(
        &self,
        options: &CallOptions,
        policy: InvocationPolicy,
    ) -> Result<bool, &'static str> {
        let Some(sharding) = options.sharding.as_deref() else {
            return Ok(false);
        };
        match (sharding.runmode, &sharding.rkey) {
            (Some(Runmode::All), _) => Err(error::OPTION_NOT_ALLOWED),
            (_, None) => Err(error::INVALID_ARGUMENT),
            (Some(Runmode::Partition), _) => Ok(true),
            (None, _) if policy == InvocationPolicy::Sticky => Ok(false),
            (None, _) => Err(error::INVALID_ARGUMENT),
        }
    }

    /// Sets a subscriber's shard: its latest SUBSCRIBE counts.
    pub(super) fn note_shard(&mut self, from: Name, id: u64, options: &SubscribeOptions) {
        let its_own = |entry: &&mut Entry| entry.id == id && entry.member == from;
        if let Some(entry) = self.subscribers.iter_mut().find(its_own) {
            entry.nkey = options.nkey.as_deref().map(Box::from);
        }
    }

    /// For each subscription that an event with a resource key matches, the shard that it reaches; the first time, that
    /// is the realm's choice. `None` if no shard was seen.
    pub(super) fn shards_reached(
        &mut self,
        options: &PublishOptions,
        topic: &str,
        number: u64,
    ) -> Vec<(u64, Option<Box<str>>)> {
        let sharding = options.sharding.as_deref();
        let Some(rkey) = sharding.and_then(|said| said.rkey.clone()) else {
            return Vec::new();
        };
        let keyed = self
            .subscribers
            .iter()
            .filter(|entry| entry.nkey.is_some() && matches(entry.policy, &entry.uri, topic));
        let mut ids: Vec<u64> = keyed.map(|entry| entry.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let reached = ids
            .into_iter()
            .map(|id| (id, self.shard_reached(id, &rkey, number)));
        reached.collect()
    }

    fn shard_reached(&mut self, id: u64, rkey: &str, number: u64) -> Option<Box<str>> {
        let of_it = self.subscribers.iter().filter(|entry| entry.id == id);
        let keyed: Vec<&Entry> = of_it.filter(|entry| entry.nkey.is_some()).collect();
        let there = keyed
            .iter()
            .filter(|entry| !self.member(entry.member).closed);
        let mut of: Vec<Shard> = there.map(|entry| shard_of(entry)).collect();
        of.sort();
        of.dedup();
        let was_sent = |entry: &&&Entry| {
            self.actual.iter().any(|(to, sent)| {
                let is_it = matches!(sent, Sent::Event { subscription, payload, .. }
                    if *subscription == id && *payload == number);
                *to == entry.member && is_it
            })
        };
        let seen = keyed.iter().find(was_sent).map(|entry| shard_of(entry));
        let known = self
            .event_shards
            .iter()
            .find(|known| known.born == id && *known.rkey == *rkey);
        // While the shards have not changed, it is the same one, whichever of its subscribers may receive the event.
        let same = known
            .filter(|known| known.of == of)
            .map(|known| known.has.clone());
        let kept = known.filter(|known| of.contains(&known.has));
        if let (Some(seen), Some(kept)) = (&seen, kept)
            && kept.has != *seen
            && kept.of.contains(seen)
        {
            self.complaint = Some(format!("{rkey} went from {:?} to {seen:?}", kept.has));
        }
        let has = same.or(seen)?;
        self.event_shards
            .retain(|known| known.born != id || *known.rkey != *rkey);
        self.event_shards.push(Placement {
            born: id,
            rkey: rkey.into(),
            has: has.clone(),
            of,
        });
        has.ok()
    }

    /// Gives a call to a callee of its shard.
    pub(super) fn invoke_in_shard(
        &mut self,
        group: &[Entry],
        new: &NewCall,
    ) -> Result<(), &'static str> {
        let there = group
            .iter()
            .filter(|entry| !self.member(entry.member).closed);
        let mut shards: Vec<Shard> = there.map(shard_of).collect();
        shards.sort();
        shards.dedup();
        let sharding = new.options.sharding.as_deref();
        let rkey = sharding.and_then(|said| said.rkey.clone());
        let rkey = rkey.unwrap_or_default();
        let born = group[0].born;
        let known = self
            .shards
            .iter()
            .find(|known| known.born == born && known.rkey == rkey);
        let may_have = |shard: &&Shard| match known {
            Some(known) if shards.contains(&known.has) => {
                known.has == **shard || !known.of.contains(shard)
            }
            _ => true,
        };
        let outcomes: Vec<_> = shards
            .iter()
            .filter(may_have)
            .map(|shard| (shard, self.choose_in_shard(group, shard, new)))
            .collect();
        let happened = outcomes
            .iter()
            .find(|(_, outcome)| outcomes.len() == 1 || self.happened(new, outcome));
        let Some((shard, outcome)) = happened else {
            return Err(error::NO_AVAILABLE_CALLEE);
        };
        let chosen = outcome.clone()?;
        let has = (*shard).clone();
        self.shards
            .retain(|known| known.born != born || known.rkey != rkey);
        self.shards.push(Placement {
            born,
            rkey,
            has,
            of: shards.clone(),
        });
        self.give(group, new, chosen);
        Ok(())
    }

    /// Which callee of a shard takes the call.
    fn choose_in_shard(
        &self,
        group: &[Entry],
        shard: &Shard,
        new: &NewCall,
    ) -> Result<Entry, &'static str> {
        let left: Vec<Entry> = group
            .iter()
            .filter(|entry| shard_of(entry) == *shard && !new.tried.contains(&entry.order))
            .cloned()
            .collect();
        if !left.is_empty() && left.iter().all(|entry| self.is_busy(entry)) {
            return Err(error::MAX_CONCURRENCY_REACHED);
        }
        self.choose(&left, new.options.progress)
    }
}

pub(super) fn is_for_one_shard(options: &CallOptions) -> bool {
    let sharding = options.sharding.as_deref();
    sharding.is_some_and(|said| said.runmode == Some(Runmode::Partition))
}

fn shard_of(entry: &Entry) -> Shard {
    entry.nkey.clone().ok_or(entry.order)
}

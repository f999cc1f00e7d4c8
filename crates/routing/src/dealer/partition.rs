//! Calls for one shard (WAMP advanced profile, "Sharded Registration", which is a sketch).
//!
//! Our choices beyond the specification: each callee of a shared registration is a shard, and callees with the same
//! node key (`REGISTER.Options.nkey`, as in SUBSCRIBE) form one. A resource belongs to the shard that ranks highest by
//! a hash of both. It moves to another shard only when its own leaves or a higher-ranked one registers. A call is
//! offered to its shard alone, and is not queued.

use crosstie_wamp::{InvocationPolicy, Runmode, Sharding};

use super::Dealer;
use super::callees::Callee;
use super::new_call::{NewCall, Placed};
use super::placement::no_room;
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::keys::RegistrationKey;
use crate::rendezvous::{check_key, partition};

/// Callees that are examined per step.
const CALLEES_PER_STEP: usize = 16;

impl Dealer {
    /// Checks the shard options of a CALL; returns whether it is for one shard. Otherwise its resource chooses the
    /// callee of a sticky registration.
    #[cold]
    #[inline(never)]
    pub(super) fn is_partitioned<H>(
        &self,
        context: &Context<'_, H>,
        key: RegistrationKey,
        sharding: &Sharding,
    ) -> Result<bool, Fault> {
        context.check_options(sharding.unsupported)?;
        if let Some(rkey) = &sharding.rkey {
            check_key("rkey", rkey)?;
        }
        let refuse = |uri, text: &'static str| Err(Fault::new(uri, text));
        match (sharding.runmode, &sharding.rkey) {
            (Some(Runmode::All), _) => {
                let text = "runmode \"all\" is not served: how several results become one is not specified";
                refuse(error::OPTION_NOT_ALLOWED, text)
            }
            (_, None) => refuse(error::INVALID_ARGUMENT, "a partitioned call has no rkey"),
            (Some(Runmode::Partition), Some(_)) => Ok(true),
            (None, Some(_)) => match self.registrations[key].policy() {
                InvocationPolicy::Sticky => Ok(false),
                _ => {
                    let text =
                        "rkey is for calls with runmode \"partition\", and of sticky registrations";
                    refuse(error::INVALID_ARGUMENT, text)
                }
            },
        }
    }

    /// Opens a call for a shard; returns whether it is open.
    #[cold]
    #[inline(never)]
    pub(super) fn open_in_shard<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: NewCall<'_>,
    ) -> Result<bool, Fault> {
        let rkey = partition(new.options).unwrap_or_default();
        let placed = match self.registrations[key].across.is_none() {
            true => self.place_in_shard(context, key, new, rkey),
            false => self.place_anywhere(context, key, new),
        };
        match placed {
            Placed::Invoked => Ok(true),
            Placed::Left => Ok(false),
            Placed::Busy => Err(self.registrations[key].callees.all_busy()),
            Placed::Failed(fault) => Err(fault),
        }
    }

    /// Offers a call to the callees of its shard, in the order of registration.
    pub(super) fn place_in_shard<H>(
        &mut self,
        context: &mut Context<'_, H>,
        key: RegistrationKey,
        new: NewCall<'_>,
        rkey: u64,
    ) -> Placed {
        let callees = &self.registrations[key].callees;
        context.spend((callees.len() / CALLEES_PER_STEP) as u32);
        let sessions = &*context.sessions;
        let first = callees.first_in_shard(rkey, |callee| !sessions[callee.session].closing);
        let Some(first) = first else {
            // All callees have left.
            self.registrations.is_left(context, key);
            return Placed::Left;
        };
        let shard = callees.shard_of(&callees[first]);
        let may_serve = |callee: &&Callee| {
            callees.shard_of(callee) == shard
                && !sessions[callee.session].closing
                && !new.tried.contains(&callee.number)
        };
        let from_first = callees.iter().skip(first);
        let found: Vec<_> = from_first
            .filter(may_serve)
            .map(|callee| callee.number)
            .collect();
        match self.offer_in_turn(context, key, &new, &found) {
            Placed::Left => Placed::Failed(no_room(new.procedure)),
            placed => placed,
        }
    }
}

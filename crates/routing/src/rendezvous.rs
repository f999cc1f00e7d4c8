//! Rendezvous hashing: a key belongs to the member that ranks highest by a hash of both. When a member joins or leaves,
//! only its own keys change owners.

use crosstie_collections::SplitMix;
use crosstie_wamp::{CallOptions, MatchPolicy, Runmode};

use crate::fault::{Fault, error};

/// Maximum bytes of a key: every session of the realm waits while it is hashed.
const KEY_BYTES_MAX: usize = 1_024;

/// A key as a number, by FNV-1a (Fowler, Noll and Vo).
pub(crate) fn hash(key: &str) -> u64 {
    let bytes = key.bytes();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(hash)
}

/// The rank of a member for a key. It is fixed, so that a key has the same member after a restart of the router.
pub(crate) fn rank(key: u64, member: u64) -> u64 {
    mix(mix(member) ^ key)
}

/// The id of a pattern in the realm, out of WAMP's 2^53: the same on all of the realm's nodes, unless a node uses it
/// already. Then further ids are tried, up to a bound.
pub(crate) fn shared_id(
    scope: u64,
    policy: MatchPolicy,
    uri: &str,
    is_free: impl Fn(u64) -> bool,
) -> Option<u64> {
    let pattern = rank(hash(uri), hash(policy.name()));
    let ids = (0..ID_ATTEMPTS_MAX).map(|attempt| (rank(pattern, scope ^ attempt) >> 11) + 1);
    ids.into_iter().find(|id| is_free(*id))
}

/// A client that knows the hash can choose URIs with colliding ids: a longer search would delay every session.
const ID_ATTEMPTS_MAX: u64 = 8;

fn mix(number: u64) -> u64 {
    SplitMix(number).number()
}

/// The resource that selects a call's shard.
pub(crate) fn partition(options: &CallOptions) -> Option<u64> {
    let sharding = options.sharding.as_deref()?;
    let rkey = sharding.rkey.as_deref()?;
    (sharding.runmode == Some(Runmode::Partition)).then(|| hash(rkey))
}

/// The resource of a call.
pub(crate) fn rkey(options: &CallOptions) -> Option<u64> {
    let sharding = options.sharding.as_deref()?;
    sharding.rkey.as_deref().map(hash)
}

/// The router's own procedures have no shards.
#[cold]
pub(crate) fn check_unsharded(options: &CallOptions) -> Result<(), Fault> {
    match options.sharding.is_none() {
        true => Ok(()),
        false => {
            let text = "the router's own procedures have no shards";
            Err(Fault::new(error::OPTION_NOT_ALLOWED, text))
        }
    }
}

/// Checks the length of a key.
pub(crate) fn check_key(option: &str, key: &str) -> Result<(), Fault> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let text = format!(
        "{option} may have {KEY_BYTES_MAX} bytes; this one has {}",
        key.len()
    );
    Err(Fault::new(error::INVALID_ARGUMENT, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(key: u64, members: &[u64]) -> u64 {
        let best = members.iter().max_by_key(|member| rank(key, **member));
        *best.expect("there are members")
    }

    /// Keys keep their members across versions.
    #[test]
    fn hashes_do_not_change() {
        let hashes = ["", "sn239019", "node23"].map(hash);
        assert_eq!(
            hashes,
            [
                0xc381_7c01_6ba4_ff30,
                0x548a_ee5d_d8ac_d07e,
                0x6f5d_6501_a972_2c41
            ]
        );
        assert_eq!(first(hashes[1], &[1, 2, 3, 4, 5]), 4);
    }

    #[test]
    fn keys_are_spread_and_keep_their_members() {
        let (five, four) = ([1, 2, 3, 4, 5], [1, 2, 4, 5]);
        let mut has = [0_u32; 6];
        for key in 0..10_000 {
            let member = first(key, &five);
            has[member as usize] += 1;
            assert!(member == 3 || first(key, &four) == member, "{key}");
        }
        assert!(
            has[1..].iter().all(|has| (1_800..2_200).contains(has)),
            "{has:?}"
        );
    }
}

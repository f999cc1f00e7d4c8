//! Who of several has a key: the one that ranks highest by a hash of both (rendezvous hashing). When one comes or goes,
//! only keys that it has or had change hands.

/// The rank of a member for a key: it is fixed, so that a key has the same member when the router starts again.
pub(crate) fn rank(key: u64, member: u64) -> u64 {
    mix(mix(member) ^ key)
}

/// The last steps of SplitMix64 (Steele, Lea and Flood): every bit of the number changes every other one.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(key: u64, members: &[u64]) -> u64 {
        let best = members.iter().max_by_key(|member| rank(key, **member));
        *best.expect("there are members")
    }

    #[test]
    fn keys_are_spread_and_stay_where_they_are() {
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

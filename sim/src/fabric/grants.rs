//! Grants of procedures for one callee: a bucket that each node can reach, or cannot.
//!
//! A node renews its lease while it reaches the bucket, and serves its grants until before another node may end the
//! lease. The times are those of a router, divided by ten.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_routing::{Lease, Time};

use super::cluster::Cluster;
use super::engine::NodeIndex;
use super::node::{Key, Node, Wish};

const SERVES_MS: u64 = 400;
const KEPT_MS: u64 = 1_500;
/// The age at which another node may end a lease.
const OVER_MS: u64 = 500;

#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// When each was renewed.
    leases: BTreeMap<u64, Time>,
    owners: BTreeMap<Key, u64>,
    last: u64,
    cut: BTreeSet<NodeIndex>,
}

impl Bucket {
    pub(super) fn cut(&mut self, index: NodeIndex) {
        if !self.cut.remove(&index) {
            self.cut.insert(index);
        }
    }

    pub(super) fn reach_all(&mut self) {
        self.cut.clear();
    }

    fn has(&self, lease: u64) -> bool {
        self.leases.contains_key(&lease)
    }

    /// Ends a lease that is over.
    fn end(&mut self, lease: u64, now: Time) {
        let renewed = self.leases.get(&lease);
        if renewed.is_some_and(|renewed| renewed.after_ms(OVER_MS) <= now) {
            self.leases.remove(&lease);
        }
    }

    fn claim(&mut self, key: Key, lease: u64, now: Time) -> bool {
        let owner = self.owners.get(&key).copied().filter(|o| *o != lease);
        if let Some(owner) = owner {
            self.end(owner, now);
        }
        let may_have = owner.is_none_or(|owner| !self.has(owner)) && self.has(lease);
        if may_have {
            self.owners.insert(key, lease);
        }
        may_have
    }

    fn give_up(&mut self, key: &Key, lease: u64) {
        if self.owners.get(key) == Some(&lease) {
            self.owners.remove(key);
        }
    }
}

impl Cluster {
    /// Does a node's requests to the bucket, and renews its lease.
    pub(super) fn grant(&mut self, index: NodeIndex) {
        if !self.setting.strict {
            return;
        }
        let now = self.now;
        let is_cut = self.bucket.cut.contains(&index);
        let mut client = self.servers.clients.get_mut(&index);
        let Some(node) = self.nodes.get_mut(&index) else {
            return;
        };
        node.end_lease(now, client.as_deref_mut());
        if is_cut {
            // A released grant is remembered.
            let claims = take_claims(node);
            for (claim, _) in claims {
                node.claimed(now, client.as_deref_mut(), (claim, false));
            }
            return node.settle(now, client);
        }
        let bucket = &mut self.bucket;
        if !bucket.has(node.lease) {
            let lost = Lease {
                served_until: now,
                kept_until: now,
            };
            node.have_lease(now, client.as_deref_mut(), lost);
            node.wishes.retain(|wish| matches!(wish, Wish::Claim(..)));
            bucket.last += 1;
            node.lease = bucket.last;
        }
        bucket.leases.insert(node.lease, now);
        let renewed = Lease {
            served_until: now.after_ms(SERVES_MS),
            kept_until: now.after_ms(KEPT_MS),
        };
        node.have_lease(now, client.as_deref_mut(), renewed);
        for wish in std::mem::take(&mut node.wishes) {
            match wish {
                Wish::GiveUp(key) => bucket.give_up(&key, node.lease),
                Wish::Claim(claim, key) => {
                    let is_granted = bucket.claim(key, node.lease, now);
                    node.claimed(now, client.as_deref_mut(), (claim, is_granted));
                }
            }
        }
        node.settle(now, client);
    }
}

fn take_claims(node: &mut Node) -> Vec<(u64, Key)> {
    let mut claims = Vec::new();
    node.wishes.retain(|wish| match wish {
        Wish::Claim(claim, key) => {
            claims.push((*claim, key.clone()));
            false
        }
        Wish::GiveUp(_) => true,
    });
    claims
}

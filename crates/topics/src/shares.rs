//! Groups of shared subscriptions (section 4.8.2).
//!
//! The members of a group that are connected come first, so that dealing a message does not look at those that are away.

use ahash::RandomState;
use crosstie_collections::{GrowingMap, PlaceMap, Slab};

use crate::keys::{GroupKey, OfGroup};
use crate::subscribers::Subscriber;

#[derive(Debug)]
pub(crate) struct Shares {
    groups: Slab<OfGroup, Group>,
    by_node: GrowingMap<u32, Vec<GroupKey>, RandomState>,
    /// By node and name.
    by_name: PlaceMap,
    hasher: RandomState,
}

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: Box<str>,
    pub(crate) node: u32,
    /// Its place among the groups of its node.
    place: u32,
    members: Vec<Subscriber>,
    /// Number of members that are connected.
    connected: u32,
    /// The member whose turn is next.
    next: u32,
}

/// Sessions whose place in a group has changed, and their new places.
pub(crate) type Moves = [Option<(u32, u32)>; 2];

/// A message is dealt to a member without space if none of so many has any.
const LOOKS_MAX: u32 = 64;

impl Shares {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            groups: Slab::new(),
            by_node: GrowingMap::with_hasher(hasher.clone()),
            by_name: PlaceMap::default(),
            hasher,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn at(&self, group: u32) -> Option<&Group> {
        self.groups.at(group)
    }

    pub(crate) fn key_at(&self, group: u32) -> Option<GroupKey> {
        self.groups.key_at(group)
    }

    /// The groups with the filter of a node.
    pub(crate) fn of(&self, node: u32) -> &[GroupKey] {
        self.by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn find(&self, node: u32, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one((node, name));
        self.by_name.find(hash, |group| {
            let group = self.groups.at(group);
            group.is_some_and(|group| group.node == node && *group.name == *name)
        })
    }

    /// Makes a group that does not exist.
    pub(crate) fn open(&mut self, node: u32, name: &str) -> u32 {
        let keys = self.by_node.get_or_insert_with(node, Vec::new);
        let key = self.groups.insert(Group {
            name: name.into(),
            node,
            place: keys.len() as u32,
            members: Vec::new(),
            connected: 0,
            next: 0,
        });
        keys.push(key);
        let hash = self.hasher.hash_one((node, name));
        self.by_name.insert_new(hash, key.index());
        key.index()
    }

    /// Removes a group without members.
    pub(crate) fn close(&mut self, group: u32) {
        let Some(key) = self.groups.key_at(group) else {
            return;
        };
        let Some(removed) = self.groups.remove(key) else {
            return;
        };
        let hash = self.hasher.hash_one((removed.node, &*removed.name));
        self.by_name.remove(hash, key.index());
        let Some(keys) = self.by_node.get_mut(&removed.node) else {
            return;
        };
        let place = removed.place as usize;
        if place < keys.len() {
            keys.swap_remove(place);
        }
        let moved = keys.get(place).copied();
        if keys.is_empty() {
            self.by_node.remove(&removed.node);
        } else if keys.capacity() > 4 * keys.len() {
            keys.shrink_to(2 * keys.len());
        }
        if let Some(moved) = moved.and_then(|key| self.groups.find_mut(key)) {
            moved.place = removed.place;
        }
    }

    pub(crate) fn find_member_mut(&mut self, group: u32, place: u32) -> Option<&mut Subscriber> {
        let group = self.groups.at_mut(group)?;
        group.members.get_mut(place as usize)
    }

    /// Adds a member that is away; returns its place.
    pub(crate) fn add(&mut self, group: u32, member: Subscriber) -> u32 {
        let Some(group) = self.groups.at_mut(group) else {
            return 0;
        };
        group.members.push(member);
        group.members.len() as u32 - 1
    }

    /// Notes that a member has come or gone.
    pub(crate) fn set_connected(&mut self, group: u32, place: u32, is_connected: bool) -> Moves {
        let Some(group) = self.groups.at_mut(group) else {
            return [None; 2];
        };
        let other = match is_connected {
            true => group.connected,
            false => group.connected.saturating_sub(1),
        };
        if is_connected == (place < group.connected) || other as usize >= group.members.len() {
            return [None; 2];
        }
        group.members.swap(place as usize, other as usize);
        group.connected = match is_connected {
            true => group.connected + 1,
            false => other,
        };
        [place, other].map(|place| Some((group.members[place as usize].session, place)))
    }

    /// Removes a member that is away; the one that takes its place.
    pub(crate) fn remove(&mut self, group: u32, place: u32) -> Option<(u32, u32)> {
        let group = self.groups.at_mut(group)?;
        if place as usize >= group.members.len() {
            return None;
        }
        group.members.swap_remove(place as usize);
        let moved = group.members.get(place as usize)?;
        Some((moved.session, place))
    }

    /// Chooses the member for the next message: the next one that is connected and has space, else the next that is
    /// connected, else the next that keeps it while away.
    pub(crate) fn pick(
        &mut self,
        key: GroupKey,
        has_space: impl Fn(&Subscriber) -> bool,
        keeps: impl Fn(&Subscriber) -> bool,
    ) -> Option<Subscriber> {
        let group = self.groups.find_mut(key)?;
        let (count, is_wanted): (u32, &dyn Fn(&Subscriber) -> bool) = match group.connected {
            0 => (group.members.len() as u32, &keeps),
            connected => (connected, &has_space),
        };
        let first = group.next.checked_rem(count)?;
        let looks = count.min(LOOKS_MAX);
        let mut places = (0..looks).map(|turn| (first + turn) % count);
        let found = places.find(|place| {
            let member = group.members.get(*place as usize);
            member.is_some_and(is_wanted)
        });
        // The next message looks at others.
        group.next = found.map_or(first + looks, |place| place + 1) % count;
        group.members.get(found.unwrap_or(first) as usize).copied()
    }
}

impl Group {
    pub(crate) fn members(&self) -> &[Subscriber] {
        &self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscribers::PackedOptions;

    #[test]
    fn members_that_are_away_come_behind() {
        let mut shares = Shares::new(RandomState::with_seeds(1, 2, 3, 4));
        let group = shares.open(7, "g");
        let key = shares.of(7)[0];
        for session in 0..5 {
            let options = PackedOptions::from_octet(1).expect("is valid");
            let identifier = 0;
            shares.add(
                group,
                Subscriber {
                    session,
                    identifier,
                    options,
                },
            );
        }
        let pick = |shares: &mut Shares, full: u32| {
            let is_free = |one: &Subscriber| one.session != full;
            let picked = shares.pick(key, is_free, is_free);
            picked.map(|member| member.session)
        };
        assert_eq!(pick(&mut shares, 9), Some(0));
        assert_eq!(
            shares.set_connected(group, 3, true),
            [Some((0, 3)), Some((3, 0))]
        );
        assert_eq!(
            shares.set_connected(group, 2, true),
            [Some((1, 2)), Some((2, 1))]
        );
        let picks = [9, 9, 3, 3].map(|full| pick(&mut shares, full));
        assert_eq!(picks, [Some(2), Some(3), Some(2), Some(2)]);
        assert_eq!(
            shares.set_connected(group, 0, false),
            [Some((2, 0)), Some((3, 1))]
        );
        assert_eq!(pick(&mut shares, 2), Some(2));
        assert_eq!(shares.remove(group, 4), None);
        assert_eq!(shares.remove(group, 1), Some((0, 1)));
        shares.close(group);
        assert_eq!((shares.len(), shares.of(7).len()), (0, 0));
    }

    #[test]
    fn full_members_do_not_hide_a_free_one() {
        let mut shares = Shares::new(RandomState::with_seeds(1, 2, 3, 4));
        let group = shares.open(7, "g");
        let options = PackedOptions::from_octet(1).expect("is valid");
        for session in 0..200 {
            let identifier = 0;
            let member = Subscriber {
                session,
                identifier,
                options,
            };
            let place = shares.add(group, member);
            shares.set_connected(group, place, true);
        }
        let key = shares.of(7)[0];
        let mut picked = Vec::new();
        for _ in 0..3 {
            let member = shares.pick(key, |one| one.session == 150, |_| true);
            picked.extend(member.map(|one| one.session));
        }
        assert_eq!(picked, [0, 64, 150]);
    }

    #[test]
    fn groups_of_one_filter_are_found_by_their_names() {
        let mut shares = Shares::new(RandomState::with_seeds(1, 2, 3, 4));
        let mut random = crosstie_collections::SplitMix(7);
        let mut open: Vec<(u32, String, u32)> = Vec::new();
        for number in 0..20_000 {
            let node = (random.number() % 3) as u32;
            let name = format!("g{number}");
            open.push((node, name.clone(), shares.open(node, &name)));
            if random.number().is_multiple_of(2) || number > 10_000 {
                let at = random.number() as usize % open.len();
                let (node, name, group) = open.swap_remove(at);
                assert_eq!(shares.find(node, &name), Some(group));
                shares.close(group);
                assert_eq!(shares.find(node, &name), None);
            }
        }
        for node in 0..3 {
            let mut found: Vec<_> = shares.of(node).iter().map(|key| key.index()).collect();
            let own = open.iter().filter(|(of, ..)| *of == node);
            let mut expected: Vec<_> = own.map(|(.., group)| *group).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected);
        }
        for (node, name, group) in open {
            assert_eq!(shares.find(node, &name), Some(group));
            shares.close(group);
        }
        assert!(shares.len() == 0 && shares.by_name.is_empty() && shares.by_node.is_empty());
    }
}

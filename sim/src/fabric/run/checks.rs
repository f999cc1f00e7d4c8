//! The conditions at the end.

use crosstie_routing::ClientFeatures;
use crosstie_wamp::{Message, SubscribeOptions};

use super::{PATTERNS, Run, Session};
use crate::Name;
use crate::fabric::cluster::Place;
use crate::fabric::play::Play;

impl Run {
    /// Checks that every subscriber of the time of a publication that is still subscribed has received it.
    pub(super) fn check_all_came(&self) {
        for (id, publication) in &self.publications {
            for (name, subscription) in &publication.due {
                let Some(session) = self.sessions.get(name) else {
                    continue;
                };
                // A subscription that has ended may have missed it; ids are not reused.
                if session.subscribed.contains_key(subscription) {
                    let has = session.events.contains(&(*subscription, *id));
                    assert!(
                        has,
                        "{name} of node {} goes without {id} of {}, published by {} ({:?}), with {:?}",
                        session.place.node,
                        publication.topic,
                        publication.by,
                        self.sessions.get(&publication.by).map(|by| by.place.node),
                        PATTERNS[session.subscribed[subscription]]
                    );
                }
            }
        }
    }

    /// Checks that after all that every session receives events of every other.
    pub(super) fn check_all_is_well(&mut self) {
        for node in self.cluster.nodes.values() {
            assert_eq!(node.member.active().count(), self.cluster.setting.nodes - 1);
        }
        let names: Vec<_> = (0..self.cluster.setting.nodes)
            .map(|index| {
                let name = self.cluster.name();
                let node = self.cluster.nodes.get_mut(&index).expect("it is there");
                let key = node.join(self.cluster.now, name, ClientFeatures::default());
                let mut session = Session::at(Place { node: index, key });
                session.asked.push(5);
                self.sessions.insert(name, session);
                let request = self.cluster.request();
                let subscribe = Message::Subscribe {
                    request,
                    options: SubscribeOptions::matching(PATTERNS[5].0),
                    topic: PATTERNS[5].1.into(),
                };
                self.say(name, &subscribe);
                name
            })
            .collect();
        self.quiet();
        self.publications.clear();
        for _ in 0..self.cluster.setting.nodes * 4 {
            self.publish();
        }
        self.quiet();
        for name in names {
            assert_eq!(self.sessions[&name].subscribed.len(), 1);
        }
        self.check_all_came();
    }

    pub(super) fn count_crossed(&self) -> usize {
        let node = |name: &Name| self.sessions.get(name).map(|session| session.place.node);
        let mut crossed = 0;
        for (name, session) in &self.sessions {
            let of = session
                .events
                .iter()
                .filter_map(|(_, id)| self.publications.get(id));
            crossed += of.filter(|known| node(&known.by) != node(name)).count();
        }
        crossed
    }
}

//! The view of sessions that receive all meta events must equal the state.

use std::collections::{BTreeMap, BTreeSet};

use super::Asks;
use crate::Name;
use crate::fabric::play::Play;

/// The state by the meta events that a session received.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    sessions: BTreeSet<u64>,
    /// The kind, the id, and the session.
    parts: BTreeSet<(&'static str, u64, u64)>,
    registrations: BTreeSet<u64>,
    /// How often it received each event.
    told: BTreeMap<(String, Vec<u64>), usize>,
}

const KINDS: [&str; 2] = ["registration", "subscription"];

impl View {
    /// Takes a meta event; without losses it must be news.
    pub(super) fn take(&mut self, topic: &str, ids: &[u64], nothing_is_lost: bool) {
        let (what, event) = topic["wamp.".len()..].split_once('.').expect("it is one");
        let kind = KINDS.into_iter().find(|kind| *kind == what);
        let is_news = match (kind, event, ids) {
            (None, "on_join", [session]) => self.sessions.insert(*session),
            (None, "on_leave", [session, ..]) => self.sessions.remove(session),
            // If it begins on one node while it ends on another, the events arrive in any order.
            (Some("registration"), "on_create", [_, id]) => {
                self.registrations.insert(*id);
                true
            }
            (Some("registration"), "on_delete", [_, id]) => {
                self.registrations.remove(id);
                true
            }
            // Each node's are its own.
            (Some("subscription"), "on_create" | "on_delete", _) => true,
            (Some(kind), "on_register" | "on_subscribe", [session, id]) => {
                self.parts.insert((kind, *id, *session))
            }
            (Some(kind), "on_unregister" | "on_unsubscribe", [session, id]) => {
                self.parts.remove(&(kind, *id, *session))
            }
            other => panic!("nobody is told {other:?}"),
        };
        // If the last callees of several nodes leave at the same moment, each node detects the end by itself; a node
        // that learns of a new one before does not.
        if (kind, event) != (Some("registration"), "on_delete") {
            let told = self.told.entry((topic.to_owned(), ids.to_vec()));
            *told.or_default() += 1;
        }
        assert!(is_news || !nothing_is_lost, "{topic} {ids:?} is no news");
    }
}

impl Asks {
    /// Without losses every node has published the same.
    pub(super) fn check_told(&self) {
        let told: BTreeSet<_> = self.views.values().map(|view| &view.told).collect();
        assert!(told.len() == 1, "every node is told the same");
    }

    /// The actual state.
    pub(super) fn there(&self) -> View {
        let mut view = View::default();
        for (name, session) in &self.sessions {
            view.sessions.insert(session.id);
            // The router's own sessions are not announced.
            if self.watchers.contains_key(name) {
                continue;
            }
            for id in session.registered.values() {
                view.parts.insert((KINDS[0], id.0, session.id));
                view.registrations.insert(id.0);
            }
            let subscribed = session.subscribed.values();
            let subscribed = subscribed.map(|id| (KINDS[1], id.0, session.id));
            view.parts.extend(subscribed);
        }
        view
    }

    /// Begins a view: a session that knows the present state, and receives all meta events from now on.
    pub(super) fn begin_view(&mut self, name: Name) {
        let there = self.there();
        self.views.insert(name, there);
        self.views.values_mut().for_each(|view| view.told.clear());
    }

    /// Once all nodes have met again, whatever was lost before, each view equals the state.
    pub(super) fn check_views(&mut self) {
        if self.cluster.setting.faults {
            for index in 0..self.cluster.setting.nodes {
                self.detach(index);
            }
            self.quiet();
            self.quiet();
        }
        let mut there = self.there();
        let registrations = std::mem::take(&mut there.registrations);
        for (name, view) in &mut self.views {
            let created = std::mem::take(&mut view.registrations);
            let has_ended = created.is_subset(&registrations);
            let faults = self.cluster.setting.faults;
            assert!(has_ended || faults, "{name} was not told of an end");
            let told = std::mem::take(&mut view.told);
            assert_eq!(*view, there, "{name} knows what there is");
            view.told = told;
        }
    }
}

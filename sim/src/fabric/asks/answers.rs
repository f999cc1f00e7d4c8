//! The questions, and their expected answers.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_wamp::Value;

use super::{Asks, PROCEDURES, TOPICS};
use crate::Name;
use crate::fabric::play::Play;

/// Ids in a page of a list.
const PAGE: usize = 3;

impl Asks {
    /// Asks something while things move: it is answered, and that is all.
    pub(super) fn ask_something(&mut self) {
        let (Some(name), Some(other)) = (self.somebody(), self.somebody()) else {
            return;
        };
        let id = self.sessions[&other].id;
        match self.cluster.chance.below(8) {
            0 => self.ask(name, "wamp.session.count", "[]", ""),
            1 => self.ask(name, "wamp.session.list", "[]", r#"{"offset":1,"limit":5}"#),
            2 => self.ask(name, "wamp.session.get", &format!("[{id}]"), ""),
            3 => self.ask(name, "wamp.session.kill", &format!("[{id}]"), ""),
            4 => self.ask(name, "wamp.subscription.list", "[]", ""),
            5 => self.ask(name, "wamp.subscription.match", r#"["a.b"]"#, ""),
            6 => self.ask(name, "wamp.registration.list", &format!("[{id}]"), ""),
            _ => self.ask(name, "wamp.session.kill_by_authrole", r#"["nobody"]"#, ""),
        };
    }

    /// Every question has been answered.
    pub(super) fn check_answered(&self) {
        for (name, session) in &self.sessions {
            assert!(session.asked.is_empty(), "{name} waits for an answer");
        }
    }

    /// Asks everything, of any node, and compares.
    pub(super) fn check_answers(&mut self) {
        if self.sessions.is_empty() {
            return;
        }
        let ids: BTreeSet<_> = self.sessions.values().map(|session| session.id).collect();
        assert_eq!(
            self.answer("wamp.session.count", "[]", ""),
            Some(Value::from(ids.len() as u64))
        );
        let listed = self.answer("wamp.session.list", "[]", "");
        assert_eq!(set(listed.as_ref()), ids);
        self.check_pages(&ids);
        for id in ids {
            let told = self.answer("wamp.session.get", &format!("[{id}]"), "");
            let told = told.and_then(|told| told.get("session").and_then(Value::as_u64));
            assert_eq!(told, Some(id));
        }
        let mut all = BTreeMap::new();
        for (place, (policy, topic)) in TOPICS.iter().enumerate() {
            let ids: BTreeSet<_> = self.subscribers(place).map(|(_, id)| id).collect();
            assert!(ids.len() <= 1, "its id is the same on all nodes");
            let policy = policy.name();
            let options = format!(r#"["{topic}",{{"match":"{policy}"}}]"#);
            let found = self.answer("wamp.subscription.lookup", &options, "");
            let known = ids.first().copied();
            assert_eq!(found.and_then(|id| id.as_u64()), known);
            all.entry(policy).or_insert_with(BTreeSet::new).extend(ids);
            if let Some(id) = known {
                let members: BTreeSet<_> = self.subscribers(place).map(|(name, _)| name).collect();
                self.check_members("subscription", ("subscribers", id), &members);
            }
        }
        let listed = self.answer("wamp.subscription.list", "[]", "");
        for (policy, ids) in all {
            let of_it = listed.as_ref().and_then(|listed| listed.get(policy));
            // The watchers have subscribed to a prefix, too.
            let mut of_it = set(of_it);
            if policy == "prefix" {
                of_it.retain(|id| ids.contains(id));
            }
            assert_eq!(of_it, ids, "{policy}");
        }
        for (place, procedure) in PROCEDURES.iter().enumerate() {
            let callees: Vec<_> = self
                .sessions
                .values()
                .filter_map(|session| Some((session.id, session.registered.get(&place)?.0)))
                .collect();
            let ids: BTreeSet<_> = callees.iter().map(|(_, id)| *id).collect();
            assert!(ids.len() <= 1, "its id is the same on all nodes");
            let found = self.answer(
                "wamp.registration.match",
                &format!(r#"["{procedure}"]"#),
                "",
            );
            assert_eq!(
                found.and_then(|id| id.as_u64()),
                ids.first().copied(),
                "{procedure}"
            );
            if let Some(id) = ids.first() {
                let members = callees.iter().map(|(name, _)| *name).collect();
                self.check_members("registration", ("callees", *id), &members);
            }
        }
    }

    fn check_pages(&mut self, ids: &BTreeSet<u64>) {
        let Some(name) = self.somebody() else {
            return;
        };
        let mut paged = BTreeSet::new();
        let mut offset = 0;
        loop {
            let part = format!(r#"{{"offset":{offset},"limit":{PAGE}}}"#);
            let part = self.answer_to(name, "wamp.session.list", "[]", &part);
            let part = set(part.as_ref());
            let is_last = part.len() < PAGE;
            paged.extend(part);
            offset += PAGE;
            if is_last {
                break;
            }
        }
        assert_eq!(&paged, ids);
    }

    fn check_members(&mut self, of: &str, (whom, id): (&str, u64), members: &BTreeSet<u64>) {
        let id = format!("[{id}]");
        let listed = self.answer(&format!("wamp.{of}.list_{whom}"), &id, "");
        assert_eq!(set(listed.as_ref()), *members);
        let counted = self.answer(&format!("wamp.{of}.count_{whom}"), &id, "");
        assert_eq!(counted, Some(Value::from(members.len() as u64)));
        let told = self.answer(&format!("wamp.{of}.get"), &id, "");
        assert!(told.is_some_and(|told| told.get("created").is_some()));
    }

    /// Sessions, and their subscription to that.
    fn subscribers(&self, place: usize) -> impl Iterator<Item = (u64, u64)> {
        let sessions = self.sessions.values();
        sessions.filter_map(move |session| Some((session.id, session.subscribed.get(&place)?.0)))
    }

    /// The answer to a session; `None`: an error, or no session could ask.
    fn answer(&mut self, procedure: &str, args: &str, kwargs: &str) -> Option<Value> {
        let names: Vec<_> = self.sessions.keys().copied().collect();
        let name = self.cluster.chance.pick_any(&names)?;
        self.answer_to(name, procedure, args, kwargs)
    }

    fn answer_to(
        &mut self,
        name: Name,
        procedure: &str,
        args: &str,
        kwargs: &str,
    ) -> Option<Value> {
        let node = self.sessions.get(&name)?.place.node;
        let request = self.ask(name, procedure, args, kwargs);
        for _ in 0..2 {
            while self.step() {}
            self.tick();
        }
        assert!(!self.sessions.get(&name)?.asked.contains(&request));
        self.answered += 1;
        let node = self.cluster.nodes.get_mut(&node)?;
        node.answers.remove(&request)
    }
}

/// The ids of a list.
fn set(list: Option<&Value>) -> BTreeSet<u64> {
    match list {
        Some(Value::List(ids)) => {
            let set: BTreeSet<_> = ids.iter().filter_map(Value::as_u64).collect();
            assert_eq!(set.len(), ids.len(), "no id comes twice");
            set
        }
        _ => BTreeSet::new(),
    }
}

//! The engine: servers with a line to each client and to each other, in each of which order is kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crosstie_fabric::{Engine, Refused, pack};

use crate::Chance;

pub(super) type NodeIndex = usize;
type ServerIndex = usize;

/// A message of a client.
#[derive(Clone, Debug)]
enum Said {
    Subscribe(u64, String),
    Unsubscribe(u64),
    Publish(String, Vec<u8>),
    Ping,
}

/// A message to a client.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Message(String, Vec<u8>),
    Pong,
}

/// A message between servers.
#[derive(Clone, Debug)]
enum Passed {
    Wanted(String),
    Unwanted(String),
    Message(String, Vec<u8>),
}

/// A client's connection: cutting it loses everything in it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) server: ServerIndex,
    said: VecDeque<Said>,
    told: VecDeque<Told>,
    /// The subscriptions that the server knows of.
    wanted: BTreeMap<u64, String>,
}

#[derive(Debug, Default)]
pub(super) struct Servers {
    count: usize,
    pub(super) clients: BTreeMap<NodeIndex, Client>,
    routes: BTreeMap<(ServerIndex, ServerIndex), VecDeque<Passed>>,
    /// The subscriptions of the second server that the first knows of.
    known: BTreeMap<(ServerIndex, ServerIndex), BTreeSet<String>>,
}

/// One line in which something waits.
#[derive(Clone, Copy, Debug)]
enum Line {
    Said(NodeIndex),
    Told(NodeIndex),
    Route(ServerIndex, ServerIndex),
}

impl Engine for Client {
    fn subscribe(&mut self, sid: u64, pattern: &str) {
        self.said
            .push_back(Said::Subscribe(sid, pattern.to_owned()));
    }

    fn unsubscribe(&mut self, sid: u64) {
        self.said.push_back(Said::Unsubscribe(sid));
    }

    fn publish(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        let said = Said::Publish(subject.to_owned(), frame.to_vec());
        self.said.push_back(said);
        Ok(())
    }

    fn pack(&mut self, subject: &str, frame: &[u8]) -> Result<(), Refused> {
        let packed = [&pack::length(frame)[..], frame].concat();
        match self.said.back_mut() {
            // No frame begins so.
            Some(Said::Publish(last, said)) if last == subject && said[0] == 0 => {
                said.extend(packed);
                Ok(())
            }
            _ => self.publish(subject, &packed),
        }
    }

    fn ping(&mut self) {
        self.said.push_back(Said::Ping);
    }
}

impl Servers {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            ..Self::default()
        }
    }

    pub(super) fn connect(&mut self, node: NodeIndex, server: ServerIndex) {
        let client = Client {
            server,
            said: VecDeque::new(),
            told: VecDeque::new(),
            wanted: BTreeMap::new(),
        };
        self.clients.insert(node, client);
    }

    /// Cuts a client off: messages in both directions are lost.
    pub(super) fn cut(&mut self, node: NodeIndex) {
        if let Some(client) = self.clients.remove(&node) {
            for pattern in client.wanted.into_values() {
                self.unwant(client.server, pattern);
            }
        }
    }

    /// Loses the messages between two servers; they exchange their subscriptions again.
    pub(super) fn cut_route(&mut self, from: ServerIndex, to: ServerIndex) {
        for (one, other) in [(from, to), (to, from)] {
            let wanted = self.wanted(one);
            let line: VecDeque<_> = wanted.into_iter().map(Passed::Wanted).collect();
            self.routes.insert((one, other), line);
            self.known.remove(&(other, one));
        }
    }

    /// Lets one thing happen, by chance; returns what a node is told by it. `None`: nothing is left to happen.
    pub(super) fn step(&mut self, chance: &mut Chance) -> Option<Option<(NodeIndex, Told)>> {
        let said = self.clients.iter().filter(|(_, c)| !c.said.is_empty());
        let mut lines: Vec<_> = said.map(|(node, _)| Line::Said(*node)).collect();
        let told = self.clients.iter().filter(|(_, c)| !c.told.is_empty());
        lines.extend(told.map(|(node, _)| Line::Told(*node)));
        let routes = self.routes.iter().filter(|(_, route)| !route.is_empty());
        lines.extend(routes.map(|((from, to), _)| Line::Route(*from, *to)));
        if lines.is_empty() {
            return None;
        }
        match lines[chance.below(lines.len())] {
            Line::Told(node) => {
                let client = self.clients.get_mut(&node)?;
                return Some(client.told.pop_front().map(|told| (node, told)));
            }
            Line::Said(node) => self.hear(node),
            Line::Route(from, to) => self.pass(from, to),
        }
        Some(None)
    }

    fn hear(&mut self, node: NodeIndex) {
        let Some(client) = self.clients.get_mut(&node) else {
            return;
        };
        let server = client.server;
        match client.said.pop_front() {
            Some(Said::Subscribe(sid, pattern)) => {
                client.wanted.insert(sid, pattern.clone());
                self.tell_others(server, &Passed::Wanted(pattern));
            }
            Some(Said::Unsubscribe(sid)) => {
                if let Some(pattern) = client.wanted.remove(&sid) {
                    self.unwant(server, pattern);
                }
            }
            Some(Said::Ping) => client.told.push_back(Told::Pong),
            Some(Said::Publish(subject, frame)) => {
                self.deliver(server, Some(node), &subject, &frame);
                for other in (0..self.count).filter(|other| *other != server) {
                    let known = self.known.get(&(server, other));
                    let is_wanted =
                        known.is_some_and(|known| known.iter().any(|p| matches(p, &subject)));
                    if is_wanted {
                        let message = Passed::Message(subject.clone(), frame.clone());
                        self.routes
                            .entry((server, other))
                            .or_default()
                            .push_back(message);
                    }
                }
            }
            None => {}
        }
    }

    fn pass(&mut self, from: ServerIndex, to: ServerIndex) {
        let line = self.routes.entry((from, to)).or_default();
        let known = self.known.entry((to, from)).or_default();
        match line.pop_front() {
            Some(Passed::Wanted(pattern)) => {
                known.insert(pattern);
            }
            Some(Passed::Unwanted(pattern)) => {
                known.remove(&pattern);
            }
            Some(Passed::Message(subject, frame)) => self.deliver(to, None, &subject, &frame),
            None => {}
        }
    }

    /// Delivers to each subscription of the server's clients, except those of the sender.
    fn deliver(&mut self, server: ServerIndex, by: Option<NodeIndex>, subject: &str, frame: &[u8]) {
        for (node, client) in &mut self.clients {
            if client.server != server || by == Some(*node) {
                continue;
            }
            let times = client
                .wanted
                .values()
                .filter(|p| matches(p, subject))
                .count();
            for _ in 0..times {
                let message = Told::Message(subject.to_owned(), frame.to_vec());
                client.told.push_back(message);
            }
        }
    }

    fn unwant(&mut self, server: ServerIndex, pattern: String) {
        if !self.wanted(server).contains(&pattern) {
            self.tell_others(server, &Passed::Unwanted(pattern));
        }
    }

    fn wanted(&self, server: ServerIndex) -> BTreeSet<String> {
        let clients = self.clients.values().filter(|c| c.server == server);
        clients.flat_map(|c| c.wanted.values().cloned()).collect()
    }

    fn tell_others(&mut self, server: ServerIndex, passed: &Passed) {
        for other in (0..self.count).filter(|other| *other != server) {
            let route = self.routes.entry((server, other)).or_default();
            route.push_back(passed.clone());
        }
    }
}

/// Whether a subject is one of a pattern's.
fn matches(pattern: &str, subject: &str) -> bool {
    let (mut words, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (words.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some(word), Some(other)) if word == "*" || word == other => {}
            _ => return false,
        }
    }
}

//! Machines with a node and a log server each, the links between them, and time.
//!
//! Everything is an event at a time; events at the same time happen in the order in which they were made. A seed decides
//! about every delay, loss and fault.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::chance::Chance;
use crate::faults::Faults;
use crate::node::{Beat, Node};
use crate::oracle::Oracle;
use crate::server::{Answer, Letter, Question, Server, Sync};
use crate::support::NOW;

/// A question of a node, on one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) node: usize,
    pub(crate) connection: u64,
    pub(crate) number: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Between servers.
    Letter(Letter),
    /// To the server on the receiving machine.
    Asked(Ticket, Question),
    /// To the node that has asked.
    Answered(Ticket, Answer),
    /// Between nodes.
    Beat(Beat),
}

/// What a handler sends.
#[derive(Default)]
pub(crate) struct Post {
    sent: Vec<(usize, usize, Body)>,
}

#[derive(Debug)]
struct Event {
    at: u64,
    order: u64,
    from: usize,
    to: usize,
    body: Body,
}

/// A machine. Both its programs end with it, and a cut link isolates both from the other machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub(crate) is_node_up: bool,
    pub(crate) is_server_up: bool,
    pub(crate) is_cut: bool,
    /// Its server will not come back.
    pub(crate) is_server_lost: bool,
    /// The node is stopped until then; what arrives waits.
    pub(crate) asleep_until: u64,
    /// Messages from and to it take up to this much longer.
    pub(crate) slow_ms: u64,
}

pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) chance: Chance,
    pub(crate) machines: Vec<Machine>,
    pub(crate) servers: Vec<Server>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) oracle: Oracle,
    pub(crate) faults: Faults,
    queue: BinaryHeap<Reverse<Event>>,
    order: u64,
    events: u64,
    /// When the last message from one machine to another arrives: most keep their order.
    arrivals: Vec<Vec<u64>>,
}

/// Several times what a run needs: nodes do not ask again and again at once.
const EVENTS_MAX: u64 = 200_000;

impl Post {
    pub(crate) fn send(&mut self, from: usize, to: usize, body: Body) {
        self.sent.push((from, to, body));
    }

    pub(crate) fn answer(&mut self, from: usize, ticket: Ticket, answer: Answer) {
        self.send(from, ticket.node, Body::Answered(ticket, answer));
    }
}

impl World {
    /// `replicas` servers, on as many of the machines.
    pub(crate) fn new(seed: u64, machines: usize, replicas: usize, syncs: &[Sync]) -> Self {
        let mut chance = Chance::new(seed);
        let server = |(place, sync): (usize, &Sync)| {
            let chance = &mut chance;
            Server::new(place, replicas, *sync, chance)
        };
        let servers: Vec<_> = syncs
            .iter()
            .take(replicas)
            .enumerate()
            .map(server)
            .collect();
        let mut machine = Machine {
            is_node_up: true,
            ..Machine::default()
        };
        let machines: Vec<_> = (0..machines)
            .map(|place| {
                machine.is_server_up = place < replicas;
                machine.clone()
            })
            .collect();
        let count = machines.len();
        Self {
            now: NOW.0,
            nodes: (0..count).map(|place| Node::new(place, NOW.0)).collect(),
            machines,
            servers,
            oracle: Oracle::default(),
            faults: Faults::new(&mut chance),
            chance,
            queue: BinaryHeap::new(),
            order: 0,
            events: 0,
            arrivals: vec![vec![0; count]; count],
        }
    }

    /// Lets time pass up to `until`.
    pub(crate) fn run(&mut self, until: u64) {
        loop {
            self.events += 1;
            assert!(self.events < EVENTS_MAX, "too many messages");
            let event = self.queue.peek().map_or(u64::MAX, |event| event.0.at);
            let (server, server_due) = self.next_server();
            let (node, node_due) = self.next_node();
            let next = event.min(server_due).min(node_due).min(self.faults.due());
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            let mut post = Post::default();
            match next {
                at if at == event => {
                    if let Some(Reverse(event)) = self.queue.pop() {
                        self.deliver(event, &mut post);
                    }
                }
                at if at == server_due => {
                    self.servers[server].handle_timeout(self.now, &mut self.chance, &mut post);
                }
                at if at == node_due => self.tick(node, &mut post),
                _ => self.strike(),
            }
            self.post(post);
            self.oracle.watch(&self.servers);
        }
    }

    /// Whether a message can go from one machine to another.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        from == to || !(self.machines[from].is_cut || self.machines[to].is_cut)
    }

    pub(crate) fn reaches_server(&self, from: usize, to: usize) -> bool {
        self.machines[to].is_server_up && self.reaches(from, to)
    }

    /// Asks the servers that a machine reaches whether they sync. A majority that does not prevents a claim; a tie does
    /// not.
    pub(crate) fn syncs(&self, from: usize) -> bool {
        let answers = self.servers.iter();
        let answers = answers.filter(|server| self.reaches_server(from, server.place));
        let (mut synced, mut count) = (0, 0);
        for server in answers {
            count += 1;
            synced += u32::from(server.sync == Sync::Always);
        }
        2 * synced >= count
    }

    fn next_server(&self) -> (usize, u64) {
        let up = self.servers.iter();
        let up = up.filter(|server| self.machines[server.place].is_server_up);
        let due = up.map(|server| (server.place, server.due()));
        due.min_by_key(|(_, due)| *due).unwrap_or((0, u64::MAX))
    }

    fn next_node(&self) -> (usize, u64) {
        let up = self.nodes.iter();
        let up = up.filter(|node| self.machines[node.place].is_node_up);
        let due = up.map(|node| {
            let awake = self.machines[node.place].asleep_until;
            (node.place, node.due().max(awake))
        });
        due.min_by_key(|(_, due)| *due).unwrap_or((0, u64::MAX))
    }

    fn deliver(&mut self, mut event: Event, post: &mut Post) {
        let Event { from, to, .. } = event;
        let is_to_node = matches!(event.body, Body::Answered(..) | Body::Beat(_));
        if is_to_node && self.machines[to].asleep_until > self.now {
            event.at = self.machines[to].asleep_until;
            self.queue.push(Reverse(event));
            return;
        }
        if !self.reaches(from, to) {
            return;
        }
        match event.body {
            Body::Letter(letter) if self.machines[to].is_server_up => {
                let (now, chance) = (self.now, &mut self.chance);
                self.servers[to].handle_letter(now, (from, letter), chance, post);
            }
            Body::Asked(ticket, question) if self.machines[to].is_server_up => {
                self.servers[to].handle_question(ticket, question, post);
            }
            Body::Answered(ticket, answer) => self.answered(to, ticket, answer, post),
            Body::Beat(beat) if self.machines[to].is_node_up => {
                let now = self.now;
                self.nodes[to].hear(now, beat);
                self.act(to, post);
            }
            Body::Letter(_) | Body::Asked(..) | Body::Beat(_) => {}
        }
    }

    /// Schedules what was sent; some of it is lost, and some overtakes what was sent before.
    pub(crate) fn post(&mut self, post: Post) {
        for (from, to, body) in post.sent {
            if self.chance.percent(1) || !self.reaches(from, to) {
                continue;
            }
            let slow = self.machines[from].slow_ms.max(self.machines[to].slow_ms);
            let delay = self.chance.within(1..4) + self.chance.within(0..slow + 1);
            let mut at = self.now + delay;
            if !self.chance.percent(2) {
                at = at.max(self.arrivals[from][to]);
                self.arrivals[from][to] = at;
            }
            self.order += 1;
            self.queue.push(Reverse(Event {
                at,
                order: self.order,
                from,
                to,
                body,
            }));
        }
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

//! The course of a simulation, and its judgement.

use std::collections::BTreeMap;

use crosstie_collections::SplitMix;
use crosstie_mqtt::{Options, PacketId, Properties, QoS, ReasonCode, Version, topic};
use crosstie_topics::{
    Arrival, Connect, ConnectionKey, Content, Received, Space, SpaceConfig, SpaceLimits, Time,
    Wanted,
};

use super::client::{Client, Message, Up};
use super::network::Network;
use super::store::Store;

#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) restarts: usize,
    pub(crate) cuts: usize,
    pub(crate) failures: usize,
    pub(crate) taken_over: u64,
    pub(crate) repeated: usize,
    pub(crate) acknowledged: usize,
}

pub(crate) struct World {
    seed: u64,
    random: SplitMix,
    now: Time,
    config: SpaceConfig,
    space: Space<u32>,
    store: Store,
    network: Network,
    clients: Vec<Client>,
    /// Of connections that the node believes to be open: client and key.
    open: BTreeMap<u32, (usize, ConnectionKey)>,
    /// A message that its owner has not authorized.
    pending: BTreeMap<u32, (Message, PacketId)>,
    connections_made: u32,
    restarts: usize,
    cuts: usize,
    failures: usize,
    taken_over: u64,
}

/// Clients by what they subscribe to. Those with a group share one filter.
const FILTERS: &[&str] = &[
    "",
    "",
    "",
    "#",
    "a/+",
    "a/b",
    "$share/g/#",
    "$share/g/#",
    "$share/g/#",
];
const PUBLISHERS: usize = 3;
const TOPICS: &[&str] = &["a/b", "a/c", "d"];

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = SplitMix(seed);
        let config = SpaceConfig {
            is_stored: true,
            limits: SpaceLimits {
                steps_max: 1 + (random.number() % 40) as usize,
                postponed_max: 1 + (random.number() % 60) as usize,
                in_flight_max: 1 + (random.number() % 4) as u16,
                ..SpaceLimits::default()
            },
            ..SpaceConfig::default()
        };
        let mut world = Self {
            seed,
            random,
            now: Time(1 << 20),
            space: Space::new(config.clone(), seed),
            config,
            store: Store::default(),
            network: Network::default(),
            clients: FILTERS.iter().map(|_| Client::default()).collect(),
            open: BTreeMap::new(),
            pending: BTreeMap::new(),
            connections_made: 0,
            restarts: 0,
            cuts: 0,
            failures: 0,
            taken_over: 0,
        };
        for (client, filter) in FILTERS.iter().enumerate() {
            world.connect(client);
            world.commit(usize::MAX);
            if !filter.is_empty() {
                world.subscribe(client, filter);
            }
        }
        world.commit(usize::MAX);
        world
    }

    pub(crate) fn play(mut self, totals: &mut Totals) {
        for _ in 0..3_000 {
            self.step(true);
        }
        // From here on nothing fails any more.
        let mut steps = 0;
        while !self.is_quiet() {
            self.step(false);
            steps += 1;
            assert!(
                steps < 200_000,
                "seed {}: it does not come to rest",
                self.seed
            );
        }
        self.judge();
        self.end();
        totals.restarts += self.restarts;
        totals.cuts += self.cuts;
        totals.failures += self.failures;
        totals.taken_over += self.taken_over + self.space.counts().taken_over;
        totals.repeated += self
            .clients
            .iter()
            .map(|client| client.repeated)
            .sum::<usize>();
        let acknowledged = self.clients.iter().map(|client| client.acknowledged.len());
        totals.acknowledged += acknowledged.sum::<usize>();
    }

    fn pick(&mut self, count: usize) -> usize {
        (self.random.number() % count as u64) as usize
    }

    fn step(&mut self, may_fail: bool) {
        self.now.0 += self.random.number() % 20;
        let client = self.pick(FILTERS.len());
        match self.pick(1000) {
            0..250 => self.take_up(client),
            250..550 => self.take_down(client),
            550..700 if may_fail => {
                let publisher = self.pick(PUBLISHERS);
                let topic = TOPICS[self.pick(TOPICS.len())];
                let qos = [QoS::AtLeastOnce, QoS::ExactlyOnce][self.pick(2)];
                if self.clients[publisher].connection.is_some() {
                    self.clients[publisher].publish(publisher, topic, qos);
                }
            }
            700..850 => {
                let inputs_max = 1 + self.pick(6);
                self.commit(inputs_max);
            }
            850..930 => {
                let steps = 1 + self.pick(4);
                self.space.work(self.now, steps, &mut self.network);
                self.after_input();
            }
            930..975 => {
                if self.clients[client].connection.is_none() {
                    self.connect(client);
                }
            }
            975..985 if may_fail => self.cut(client),
            // The client has noticed, and the node has not.
            985..993 if may_fail => self.clients[client].cut(),
            993..995 if may_fail => self.leave(client),
            995..996 if may_fail => self.restart(),
            996..998 if may_fail => self.fail(),
            _ => {
                let due = self.space.next_timeout().is_some_and(|at| at <= self.now);
                if due {
                    self.space.handle_timeout(self.now, &mut self.network);
                    self.after_input();
                }
            }
        }
    }

    fn connect(&mut self, client: usize) {
        self.connections_made += 1;
        let connection = self.connections_made;
        let client_id = format!("client{client}");
        let connect = Connect {
            version: Version::V5,
            client_id: &client_id,
            is_clean: false,
            session_expiry_s: 3600,
            receive_max: 3,
            packet_bytes_max: u32::MAX,
            topic_alias_max: 0,
            will: None,
        };
        self.network.down.insert(connection, Default::default());
        let answer = self
            .space
            .connect(self.now, connection, &connect, &mut self.network);
        let connected = answer.expect("there is room");
        let is_first = self.connections_made as usize <= FILTERS.len();
        assert_eq!(connected.is_present, !is_first, "seed {}", self.seed);
        self.forget_closed();
        self.open.insert(connection, (client, connected.key));
        self.clients[client].connect(connection);
        self.space.open(self.now, &connected, &mut self.network);
        self.after_input();
    }

    /// The owner learns of the connections that the space has ended.
    fn forget_closed(&mut self) {
        for closed in std::mem::take(&mut self.network.closed) {
            self.pending.remove(&closed);
            let (_, key) = self.open.remove(&closed).expect("was open");
            self.space.lose(self.now, key, &mut self.network);
        }
    }

    fn subscribe(&mut self, client: usize, filter: &str) {
        let connection = self.clients[client].connection.expect("is connected");
        let (_, key) = self.open[&connection];
        let options = Options {
            qos: QoS::ExactlyOnce,
            ..Options::default()
        };
        let wanted = Wanted {
            filter,
            options,
            refusal: None,
        };
        let mut codes = Vec::new();
        self.space
            .subscribe(self.now, key, 0, &[wanted], &mut codes, &mut self.network)
            .expect("is valid");
        assert_eq!(codes, [ReasonCode::GrantedQoS2]);
        self.after_input();
    }

    /// The node takes a packet of a client.
    fn take_up(&mut self, client: usize) {
        let Some(connection) = self.clients[client].connection else {
            return;
        };
        let Some((_, key)) = self.open.get(&connection).copied() else {
            return;
        };
        if !self.network.opened.contains(&connection) {
            return;
        }
        if let Some((message, id)) = self.pending.remove(&connection) {
            self.authorize(key, &message, id);
            return self.after_input();
        }
        let Some(packet) = self.clients[client].up.pop_front() else {
            return;
        };
        let (now, out) = (self.now, &mut self.network);
        match packet {
            Up::Publish(message, id) => {
                let arrival = Arrival {
                    topic: &message.topic,
                    alias: None,
                    qos: message.qos,
                    packet_id: Some(id),
                };
                let received = self.space.receive(key, arrival, out);
                if received.expect("is within the bounds") == Received::New(None) {
                    match self.random.number() % 3 {
                        0 => drop(self.pending.insert(connection, (message, id))),
                        _ => self.authorize(key, &message, id),
                    }
                }
            }
            Up::PubAck(id) => self.space.handle_puback(now, key, id, out),
            Up::PubRec(id) => {
                let reason = ReasonCode::Success;
                self.space.handle_pubrec(now, key, id, reason, out);
            }
            Up::PubRel(id) => self.space.handle_pubrel(key, id, out),
            Up::PubComp(id) => self.space.handle_pubcomp(now, key, id, out),
        }
        self.after_input();
    }

    fn authorize(&mut self, key: ConnectionKey, message: &Message, id: PacketId) {
        let payload = message.payload();
        let content = Content {
            topic: &message.topic,
            qos: message.qos,
            retain: false,
            expiry_s: None,
            properties: Properties::EMPTY,
            payload: payload.as_bytes(),
        };
        self.space
            .publish(self.now, key, Some(id), &content, &mut self.network);
    }

    /// A client takes a packet of the node.
    fn take_down(&mut self, client: usize) {
        let Some(connection) = self.clients[client].connection else {
            return;
        };
        let Some(line) = self.network.down.get_mut(&connection) else {
            // The node has closed it.
            return self.clients[client].cut();
        };
        if let Some(packet) = line.pop_front() {
            self.clients[client].handle(packet);
            if let Some((_, key)) = self.open.get(&connection).copied() {
                self.space.resume(self.now, key, &mut self.network);
                self.after_input();
            }
        }
    }

    /// Both sides notice that a connection has ended.
    fn cut(&mut self, client: usize) {
        let Some(connection) = self.clients[client].connection else {
            return;
        };
        self.clients[client].cut();
        self.network.down.remove(&connection);
        self.pending.remove(&connection);
        if let Some((_, key)) = self.open.remove(&connection) {
            self.cuts += 1;
            self.space.lose(self.now, key, &mut self.network);
            self.after_input();
        }
    }

    /// A client disconnects, and keeps its session.
    fn leave(&mut self, client: usize) {
        let Some(connection) = self.clients[client].connection else {
            return;
        };
        self.clients[client].cut();
        self.network.down.remove(&connection);
        self.pending.remove(&connection);
        if let Some((_, key)) = self.open.remove(&connection) {
            let (now, out) = (self.now, &mut self.network);
            let left = self
                .space
                .disconnect(now, key, ReasonCode::Success, None, out);
            left.expect("is valid");
            self.after_input();
        }
    }

    fn restart(&mut self) {
        self.restarts += 1;
        self.taken_over += self.space.counts().taken_over;
        self.store.lose_uncommitted();
        self.open.clear();
        self.pending.clear();
        self.network = Network::default();
        self.clients.iter_mut().for_each(Client::cut);
        self.space = Space::new(self.config.clone(), self.random.number());
        self.space
            .restore(self.now, self.store.records(), &mut self.network);
        self.after_input();
    }

    fn after_input(&mut self) {
        let journal = self.space.journal();
        let records = std::mem::take(&mut journal.records);
        if !records.is_empty() {
            self.store.take(journal.position, records);
        }
    }

    fn commit(&mut self, inputs_max: usize) {
        if let Some(position) = self.store.commit(inputs_max) {
            self.space
                .handle_committed(self.now, position, &mut self.network);
            self.after_input();
        }
    }

    /// The store keeps what it cannot commit.
    fn fail(&mut self) {
        let inputs_max = 1 + self.pick(6);
        if let Some(position) = self.store.uncommitted(inputs_max) {
            self.failures += 1;
            self.space
                .handle_not_committed(self.now, position, &mut self.network);
            self.forget_closed();
            self.after_input();
        }
    }

    fn is_quiet(&self) -> bool {
        let is_done = |client: &Client| client.connection.is_some() && client.is_quiet();
        let is_empty = self.network.down.values().all(|line| line.is_empty());
        self.clients.iter().all(is_done)
            && is_empty
            && !self.space.has_backlog()
            && self.space.counts().queued == 0
            && self.pending.is_empty()
    }

    fn judge(&self) {
        let seed = self.seed;
        for publisher in &self.clients[..PUBLISHERS] {
            assert_eq!(publisher.acknowledged.len(), publisher.published as usize);
            for message in &publisher.acknowledged {
                let payload = message.payload();
                let mut in_group = 0;
                for (client, filter) in self.clients.iter().zip(FILTERS) {
                    let count = client.counts().get(&*payload).copied().unwrap_or_default();
                    if filter.starts_with("$share") {
                        in_group += count;
                    } else if topic::matches(filter, &message.topic) {
                        judge_count(seed, filter, message, count);
                    } else {
                        assert_eq!(count, 0, "seed {seed}: {payload} to {filter}");
                    }
                }
                judge_count(seed, "the group", message, in_group);
            }
        }
        for (client, filter) in self.clients.iter().zip(FILTERS) {
            self.judge_order(client, filter);
        }
    }

    /// The first arrivals of a publisher's messages with one topic and QoS are in its order. A repeated message of QoS 1
    /// may go to another member of a group than before, for which it then is the first.
    fn judge_order(&self, client: &Client, filter: &str) {
        let mut lasts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        for payload in &client.arrived {
            if !seen.insert(payload) {
                continue;
            }
            let (line, number) = payload.rsplit_once(' ').expect("has a number");
            if filter.starts_with("$share") && line.ends_with('1') {
                continue;
            }
            let number = number.parse().expect("is a number");
            let last = lasts.entry(line).or_default();
            assert!(
                *last < number,
                "seed {}: {payload} after {last} to {filter}",
                self.seed
            );
            *last = number;
        }
    }

    /// All sessions end: nothing is left.
    fn end(&mut self) {
        for client in 0..self.clients.len() {
            let client_id = format!("client{client}");
            let reason = ReasonCode::AdministrativeAction;
            let (now, out) = (self.now, &mut self.network);
            assert!(self.space.end_session(now, &client_id, reason, out));
            self.after_input();
        }
        while self.space.has_backlog() {
            self.space.work(self.now, 10, &mut self.network);
        }
        self.after_input();
        self.commit(usize::MAX);
        while self.space.has_backlog() {
            self.space.work(self.now, 10, &mut self.network);
        }
        assert!(
            self.space.is_empty(),
            "seed {}: {:?} and {} bytes",
            self.seed,
            self.space.counts(),
            self.space.kept_bytes()
        );
        let subjects = self.store.subjects();
        assert!(subjects.is_empty(), "seed {}: {subjects:?}", self.seed);
        assert!(self.network.held.values().all(|bytes| *bytes == 0));
    }
}

fn judge_count(seed: u64, to: &str, message: &Message, count: usize) {
    let is_right = match message.qos {
        QoS::ExactlyOnce => count == 1,
        _ => count >= 1,
    };
    assert!(
        is_right,
        "seed {seed}: {} has come {count} times to {to}",
        message.payload()
    );
}

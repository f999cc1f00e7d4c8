//! Inputs at random, of clients that keep to no rule: the space keeps to its own.
//!
//! Whatever comes, packets are valid and go to connections that are open, no packet identifier is used twice at a time,
//! no receiver is sent more or larger packets than it takes, and in the end nothing is left.

#[path = "script/store.rs"]
mod store;

#[path = "random_inputs/receivers.rs"]
mod receivers;

use std::collections::BTreeMap;

use crosstie_collections::SplitMix;
use crosstie_mqtt::{Options, PacketId, Properties, QoS, ReasonCode, RetainHandling, Version};
use crosstie_topics::{
    Arrival, Connect, ConnectionKey, Content, Received, Reply, Space, SpaceConfig, SpaceLimits,
    Time, Wanted, Will,
};

use receivers::{Receiver, Receivers};
use store::Store;

struct World {
    seed: u64,
    random: SplitMix,
    now: Time,
    config: SpaceConfig,
    space: Space<u32>,
    store: Store,
    out: Receivers,
    keys: BTreeMap<u32, ConnectionKey>,
    /// Connections that have ended, whose keys come again.
    ended: Vec<ConnectionKey>,
    made: u32,
}

const TOPICS: &[&str] = &["a", "a/b", "a/b/c", "b", "/", "$s/a", "a//b"];
const FILTERS: &[&str] = &[
    "a",
    "a/b",
    "#",
    "+/b",
    "a/#",
    "+",
    "a/+/c",
    "$s/#",
    "/",
    "$share/g/#",
    "$share/g/a/b",
    "$share/h/a/+",
    "$share/",
    "a/b/c/d/e/f",
];
const QUALITIES: &[QoS] = &[QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

impl World {
    fn new(seed: u64) -> Self {
        let mut random = SplitMix(seed);
        let config = SpaceConfig {
            is_stored: random.number().is_multiple_of(2),
            tells_unmatched: true,
            limits: SpaceLimits {
                sessions_max: 12,
                session_subscriptions_max: 8,
                subscriptions_max: 40,
                filter_levels_max: 20,
                levels_max: 4,
                retained_max: 4,
                queued_max: 6,
                queued_bytes_max: 1_500,
                in_flight_max: 3,
                receive_max: 5,
                unreleased_max: 5,
                topic_alias_max: 2,
                session_expiry_max_s: 100,
                session_expiry_3_s: 20,
                steps_max: 1 + (random.number() % 30) as usize,
                postponed_max: 20,
                ..SpaceLimits::default()
            },
        };
        Self {
            seed,
            random,
            now: Time(1 << 20),
            space: Space::new(config.clone(), seed),
            config,
            store: Store::default(),
            out: Receivers::default(),
            keys: BTreeMap::new(),
            ended: Vec::new(),
            made: 0,
        }
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.random.number() % of.len() as u64) as usize]
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random.number().is_multiple_of(one_in)
    }

    /// A connection, mostly one that is open.
    fn some_key(&mut self) -> Option<(u32, ConnectionKey)> {
        if self.chance(20) && !self.ended.is_empty() {
            let at = self.random.number() as usize % self.ended.len();
            return Some((0, self.ended[at]));
        }
        let at = self.random.number() as usize % self.keys.len().max(1);
        let (number, key) = self.keys.iter().nth(at)?;
        // Nothing is read before CONNACK.
        let is_open = self.out.open.get(number).is_some_and(|one| one.is_open);
        is_open.then_some((*number, *key))
    }

    fn id(&mut self) -> PacketId {
        let id = 1 + (self.random.number() % 6) as u16;
        PacketId::new(id).expect("is not 0")
    }

    fn content(&mut self) -> Content<'static> {
        Content {
            topic: self.pick(TOPICS),
            qos: self.pick(QUALITIES),
            retain: self.chance(5),
            expiry_s: self.pick(&[None, None, Some(0), Some(3), Some(u32::MAX)]),
            properties: Properties::EMPTY,
            payload: self.pick(&[b"", &[b'x'; 20], &[b'y'; 200]]),
        }
    }

    fn step(&mut self) {
        self.now.0 += self.random.number() % 200;
        match self.random.number() % 100 {
            0..10 => self.connect(),
            10..40 => self.publish(),
            40..50 => self.subscribe(),
            50..75 => self.acknowledge(),
            75..78 => self.unsubscribe(),
            78..82 => self.end_connection(),
            82..85 => {
                let content = self.content();
                self.space
                    .publish_from_outside(self.now, &content, &mut self.out);
            }
            85..88 => self.space.handle_timeout(self.now, &mut self.out),
            88..90 => {
                // One receiver takes no more, or takes all again.
                if let Some((number, key)) = self.some_key()
                    && let Some(receiver) = self.out.open.get_mut(&number)
                {
                    receiver.is_full = !receiver.is_full;
                    self.space.resume(self.now, key, &mut self.out);
                }
            }
            90..96 => {
                let steps = 1 + (self.random.number() % 5) as usize;
                self.space.work(self.now, steps, &mut self.out);
            }
            96 if self.chance(10) => {
                let client_id = format!("c{}", self.random.number() % 15);
                let reason = ReasonCode::AdministrativeAction;
                self.space
                    .end_session(self.now, &client_id, reason, &mut self.out);
            }
            97 if self.chance(20) && self.config.is_stored => return self.restart(),
            97 if self.chance(5) => self.fail(),
            _ => self.commit(2),
        }
        self.after_input();
    }

    fn connect(&mut self) {
        self.made += 1;
        let number = self.made;
        let client_id = match self.chance(10) {
            true => String::new(),
            false => format!("c{}", self.random.number() % 15),
        };
        let will = Will {
            content: self.content(),
            delay_s: self.pick(&[0, 2, 1000]),
        };
        let connect = Connect {
            version: self.pick(&Version::ALL),
            client_id: &client_id,
            is_clean: self.chance(3),
            session_expiry_s: self.pick(&[0, 5, u32::MAX]),
            receive_max: self.pick(&[1, 2, u16::MAX]),
            packet_bytes_max: self.pick(&[30, 100, u32::MAX]),
            topic_alias_max: self.pick(&[0, 1, 3]),
            will: self.chance(3).then_some(will),
        };
        let window = connect.receive_max.min(self.config.limits.in_flight_max);
        self.out
            .open
            .insert(number, Receiver::new(&connect, window));
        let connected = self
            .space
            .connect(self.now, number, &connect, &mut self.out);
        match connected {
            Ok(connected) => {
                self.keys.insert(number, connected.key);
                self.space.open(self.now, &connected, &mut self.out);
            }
            Err(_) => drop(self.out.open.remove(&number)),
        }
    }

    fn publish(&mut self) {
        let Some((number, key)) = self.some_key() else {
            return;
        };
        let mut content = self.content();
        let packet_id = (content.qos > QoS::AtMostOnce).then(|| self.id());
        let is_v5 = self
            .out
            .open
            .get(&number)
            .is_some_and(|one| one.version.is_v5());
        let alias = match is_v5 && self.chance(4) {
            true => Some(self.pick(&[1, 2, 1, 2, 1, 2, 3])),
            false => None,
        };
        let is_bare = alias.is_some() && self.chance(2);
        let arrival = Arrival {
            topic: if is_bare { "" } else { content.topic },
            alias,
            qos: content.qos,
            packet_id,
        };
        let received = match self.space.receive(key, arrival, &mut self.out) {
            Ok(Received::New(topic)) => topic,
            Ok(Received::Answered) => return,
            Err(_) => return self.lose(number, key),
        };
        content.topic = received.as_deref().unwrap_or(content.topic);
        if self.chance(6) {
            let reason = ReasonCode::NotAuthorized;
            self.space
                .refuse(key, content.qos, packet_id, reason, &mut self.out);
        } else if !self.chance(30) {
            self.space
                .publish(self.now, key, packet_id, &content, &mut self.out);
        }
    }

    fn subscribe(&mut self) {
        let Some((number, key)) = self.some_key() else {
            return;
        };
        let handling = [
            RetainHandling::Always,
            RetainHandling::New,
            RetainHandling::Never,
        ];
        let wanted = [(); 2].map(|()| Wanted {
            filter: self.pick(FILTERS),
            options: Options {
                qos: self.pick(QUALITIES),
                no_local: self.chance(8),
                retain_as_published: self.chance(2),
                retain_handling: self.pick(&handling),
            },
            refusal: None,
        });
        let identifier = self.pick(&[0, 1, 2, 268_435_455]);
        let mut codes = Vec::new();
        let (now, out) = (self.now, &mut self.out);
        let subscribed = self
            .space
            .subscribe(now, key, identifier, &wanted, &mut codes, out);
        match subscribed {
            Ok(()) => {
                assert_eq!(codes.len(), 2);
                let reply = Reply::SubAck(PacketId::FIRST, codes.into());
                self.space.reply(now, key, reply, &mut self.out);
            }
            Err(_) => self.lose(number, key),
        }
    }

    fn unsubscribe(&mut self) {
        if let Some((_, key)) = self.some_key() {
            let filter = self.pick(FILTERS);
            let mut codes = Vec::new();
            self.space
                .unsubscribe(key, [filter], &mut codes, &mut self.out);
            let reply = Reply::UnsubAck(PacketId::FIRST, codes.into());
            self.space.reply(self.now, key, reply, &mut self.out);
        }
    }

    fn acknowledge(&mut self) {
        let Some((number, key)) = self.some_key() else {
            return;
        };
        // Mostly one that was sent.
        let sent = self.out.open.get(&number).and_then(Receiver::oldest);
        let (id, stage) = sent.unwrap_or_else(|| (self.id(), 0));
        let (now, out) = (self.now, &mut self.out);
        let choice = match self.random.number() % 8 {
            0 => self.random.number() % 4,
            _ => stage,
        };
        let refuses = self.random.number().is_multiple_of(6);
        match choice {
            0 => self.space.handle_pubrel(key, id, out),
            1 => {
                out.forget(number, id, QoS::AtLeastOnce);
                self.space.handle_puback(now, key, id, out);
            }
            2 => {
                let reason = match refuses {
                    true => ReasonCode::QuotaExceeded,
                    false => ReasonCode::Success,
                };
                out.note_pubrec(number, id, refuses);
                self.space.handle_pubrec(now, key, id, reason, out);
            }
            _ => {
                out.note_pubcomp(number, id);
                self.space.handle_pubcomp(now, key, id, out);
            }
        }
    }

    fn end_connection(&mut self) {
        let Some((number, key)) = self.some_key() else {
            return;
        };
        if self.chance(2) {
            return self.lose(number, key);
        }
        let reason = self.pick(&[ReasonCode::Success, ReasonCode::DisconnectWithWill]);
        let expiry_s = self.pick(&[None, Some(0), Some(7)]);
        let (now, out) = (self.now, &mut self.out);
        match self.space.disconnect(now, key, reason, expiry_s, out) {
            Ok(()) => self.forget(number, key),
            Err(_) => self.lose(number, key),
        }
    }

    fn lose(&mut self, number: u32, key: ConnectionKey) {
        self.space.lose(self.now, key, &mut self.out);
        self.forget(number, key);
    }

    fn forget(&mut self, number: u32, key: ConnectionKey) {
        self.out.open.remove(&number);
        self.keys.remove(&number);
        self.ended.push(key);
    }

    fn after_input(&mut self) {
        for closed in std::mem::take(&mut self.out.closed) {
            if let Some(key) = self.keys.remove(&closed) {
                self.ended.push(key);
            }
        }
        let journal = self.space.journal();
        let records = std::mem::take(&mut journal.records);
        assert!(self.config.is_stored || records.is_empty());
        if !records.is_empty() {
            self.store.take(journal.position, records);
        }
        let counts = self.space.counts();
        assert_eq!(counts.connected, self.keys.len(), "seed {}", self.seed);
        assert!(counts.sessions <= 12 && counts.subscriptions <= 40 && counts.retained <= 4);
    }

    fn commit(&mut self, inputs_max: usize) {
        if let Some(position) = self.store.commit(inputs_max) {
            self.space
                .handle_committed(self.now, position, &mut self.out);
        }
    }

    /// The store keeps what it cannot commit.
    fn fail(&mut self) {
        if let Some(position) = self.store.uncommitted(2) {
            let (now, out) = (self.now, &mut self.out);
            self.space.handle_not_committed(now, position, out);
        }
    }

    fn restart(&mut self) {
        self.store.lose_uncommitted();
        self.keys.clear();
        self.ended.clear();
        self.out = Receivers::default();
        self.space = Space::new(self.config.clone(), self.random.number());
        self.space
            .restore(self.now, self.store.records(), &mut self.out);
        self.after_input();
    }

    fn end(mut self) {
        for session in self.space.sessions(0, usize::MAX).items {
            let listed = self
                .space
                .subscriptions(&session.client_id, 0, usize::MAX)
                .items;
            assert_eq!(listed.len(), session.subscriptions);
            let reason = ReasonCode::AdministrativeAction;
            let (now, out) = (self.now, &mut self.out);
            self.space.end_session(now, &session.client_id, reason, out);
            self.after_input();
        }
        for topic in self.space.retained(None, usize::MAX).items {
            let content = Content {
                topic: &topic.topic,
                qos: QoS::AtMostOnce,
                retain: true,
                expiry_s: None,
                properties: Properties::EMPTY,
                payload: &[],
            };
            self.space
                .publish_from_outside(self.now, &content, &mut self.out);
        }
        while self.space.has_backlog() {
            self.space.work(self.now, 100, &mut self.out);
        }
        self.after_input();
        self.commit(usize::MAX);
        while self.space.has_backlog() {
            self.space.work(self.now, 100, &mut self.out);
        }
        let seed = self.seed;
        assert!(
            self.space.is_empty(),
            "seed {seed}: {} bytes, {:?}",
            self.space.kept_bytes(),
            self.space.counts()
        );
        let subjects = self.store.subjects();
        assert!(subjects.is_empty(), "seed {seed}: {subjects:?}");
        assert!(
            self.out.held.values().all(|bytes| *bytes == 0),
            "seed {seed}"
        );
        assert!(self.out.interests.is_empty(), "seed {seed}");
    }
}

#[test]
fn the_space_keeps_to_its_rules() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..2_000 {
            world.step();
        }
        world.end();
    }
}

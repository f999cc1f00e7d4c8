//! Event history, judged by a naive one: a list of everything that was published, walked for each question.

use crosstie_routing::{
    ClientFeatures, CloseReason, Identity, Outbox, Realm, RealmConfig, Recording, Refused,
    SessionKey, Time,
};
use crosstie_sim::Chance;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    CallOptions, MatchPolicy, Message, Payload, PublishOptions, Receivers, RequestId, Serializer,
    SessionId, Value,
};

const TOPICS: [&str; 5] = ["a", "a.b", "a.b.c", "a.c", "b.c"];
const RECORDED: [(MatchPolicy, &str); 4] = [
    (MatchPolicy::Exact, "a.b"),
    (MatchPolicy::Prefix, "a"),
    (MatchPolicy::Wildcard, ".c"),
    (MatchPolicy::Prefix, ""),
];
const AUTHIDS: [&str; 2] = ["ann", "bob"];

/// What the realm has said last.
#[derive(Default)]
struct Said {
    publication: u64,
    result: Option<Value>,
    error: bool,
}

impl Outbox<usize> for Said {
    fn send(&mut self, _: &usize, message: &Message<'_>) -> Result<(), Refused> {
        match message {
            Message::Published { publication, .. } => self.publication = publication.0,
            Message::Result { payload, .. } => {
                let read =
                    codec::decode_value(payload.serializer, payload.args, &Limits::default());
                self.result = Some(read.expect("is JSON"));
            }
            Message::Error { .. } => self.error = true,
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn publish(&mut self, _: &Message<'_>, receivers: &mut dyn Iterator<Item = &usize>) {
        assert_eq!(receivers.count(), 0, "nobody has subscribed");
    }

    fn close(&mut self, _: &usize, _: CloseReason) {}
}

/// A publication, as the naive history has it.
struct Published {
    topic: &'static str,
    time_ms: u64,
    number: u64,
    publication: u64,
    /// Whom alone it may reach, by authid.
    eligible: Option<&'static str>,
}

struct Case {
    realm: Realm<usize>,
    sessions: Vec<SessionKey>,
    requests: u64,
    all: Vec<Published>,
    recordings: Vec<Recording>,
    now_ms: u64,
}

fn fits(policy: MatchPolicy, pattern: &str, topic: &str) -> bool {
    match policy {
        MatchPolicy::Exact => pattern == topic,
        MatchPolicy::Prefix => topic.starts_with(pattern),
        MatchPolicy::Wildcard => {
            let (pattern, topic) = (pattern.split('.'), topic.split('.'));
            let parts: Vec<_> = pattern.clone().zip(topic.clone()).collect();
            pattern.count() == topic.count()
                && parts.iter().all(|(part, of)| part.is_empty() || part == of)
        }
    }
}

impl Case {
    fn new(chance: &mut Chance) -> Self {
        let recordings = RECORDED.map(|(match_policy, uri)| Recording {
            uri: uri.to_owned(),
            match_policy,
            events_max: chance.pick(&[1, 3, 20]),
            age_ms_max: chance.pick(&[0, 0, 40]),
        });
        let mut config = RealmConfig::open("realm1");
        config.history = recordings.to_vec();
        let mut realm = Realm::new(config, chance.below(1 << 30) as u64);
        let sessions = AUTHIDS.iter().enumerate().map(|(name, authid)| {
            let identity = Identity::new(*authid, "anonymous", "anonymous", "static");
            let joined = realm.join(Time(0), name, identity, ClientFeatures::default());
            joined.expect("is open").0
        });
        Self {
            sessions: sessions.collect(),
            realm,
            requests: 0,
            all: Vec::new(),
            recordings: recordings.to_vec(),
            now_ms: 0,
        }
    }

    fn handle(&mut self, who: usize, message: impl FnOnce(RequestId) -> Message<'static>) -> Said {
        self.requests += 1;
        let mut said = Said::default();
        let message = message(RequestId(self.requests));
        let now = Time(self.now_ms * 1_000);
        let handled = self
            .realm
            .handle(now, self.sessions[who], &message, &mut said);
        handled.expect("is no violation");
        self.realm.check_invariants();
        said
    }

    fn publish(&mut self, chance: &mut Chance) {
        let topic = chance.pick(&TOPICS);
        let eligible = chance.one_in(3).then(|| chance.pick(&AUTHIDS));
        let is_listed = chance.one_in(6);
        let receivers = Receivers {
            eligible_authid: eligible.map(|authid| vec![authid.to_owned()]),
            exclude: is_listed.then(|| vec![SessionId(1)]),
            ..Receivers::default()
        };
        let options = PublishOptions {
            acknowledge: true,
            receivers: Some(Box::new(receivers)),
            ..PublishOptions::default()
        };
        let number = self.requests + 1;
        let args: &'static [u8] = format!("[{number}]").into_bytes().leak();
        let said = self.handle(0, |request| Message::Publish {
            request,
            options,
            topic: topic.into(),
            payload: Payload::new(Serializer::Json, args, &[]),
        });
        // What has a list of sessions is not kept at all.
        if !is_listed {
            self.all.push(Published {
                topic,
                time_ms: self.now_ms,
                number,
                publication: said.publication,
                eligible,
            });
        }
    }

    /// What there is of a history.
    fn kept(&self, place: usize) -> Vec<&Published> {
        let Recording {
            uri,
            match_policy,
            events_max,
            age_ms_max,
        } = &self.recordings[place];
        let fits = |event: &&Published| fits(*match_policy, uri, event.topic);
        let matching: Vec<_> = self.all.iter().filter(fits).collect();
        let old = matching.len().saturating_sub(*events_max);
        let fresh = matching.into_iter().skip(old);
        fresh
            .filter(|event| *age_ms_max == 0 || self.now_ms - event.time_ms <= *age_ms_max)
            .collect()
    }

    fn ask(&mut self, chance: &mut Chance) {
        let place = chance.below(self.recordings.len());
        let (kept, now_ms) = (self.kept(place), self.now_ms);
        let reader = chance.below(AUTHIDS.len());
        let mut keywords = Vec::new();
        let limit = chance.one_in(2).then(|| 1 + chance.below(4));
        let is_crossbars = chance.one_in(3);
        let mut expected: Vec<&Published> = kept.clone();
        let mut is_reversed = is_crossbars;
        if !is_crossbars {
            is_reversed = chance.one_in(2);
            keywords.push(("reverse", Value::Bool(is_reversed)));
            if chance.one_in(3) {
                let topic = chance.pick(&TOPICS);
                expected.retain(|event| event.topic == topic);
                keywords.push(("topic", Value::from(topic)));
            }
            let names = ["from", "after", "before", "until"];
            if chance.one_in(2) {
                let (name, at_ms) = (
                    chance.pick(&names),
                    chance.below(now_ms as usize + 2) as u64,
                );
                expected.retain(|event| within(name, event.time_ms, at_ms));
                let time = format!(
                    "1970-01-01T00:{:02}:{:02}.{:03}Z",
                    at_ms / 60_000,
                    at_ms / 1_000 % 60,
                    at_ms % 1_000
                );
                let name: &'static str = format!("{name}_time").leak();
                keywords.push((name, Value::String(time)));
            }
            if chance.one_in(2) && !kept.is_empty() {
                let name = chance.pick(&names);
                let at = kept[chance.below(kept.len())];
                expected.retain(|event| within(name, event.number, at.number));
                let name: &'static str = format!("{name}_publication").leak();
                keywords.push((name, Value::from(at.publication)));
            }
            keywords.extend(limit.map(|limit| ("limit", Value::from(limit as u64))));
        }
        expected.retain(|event| {
            event
                .eligible
                .is_none_or(|authid| authid == AUTHIDS[reader])
        });
        if is_reversed {
            expected.reverse();
        }
        expected.truncate(limit.unwrap_or(if is_crossbars { 10 } else { usize::MAX }));
        let expected: Vec<_> = expected
            .iter()
            .map(|event| (event.number, event.publication))
            .collect();

        let limit = limit.filter(|_| is_crossbars);
        let shown = format!("{limit:?} {keywords:?} of {place} at {now_ms}");
        let told = self.told(reader, place, limit, keywords);
        assert_eq!(told, expected, "{shown}");
    }

    /// What the realm answers: the number and the publication of each event.
    fn told(
        &mut self,
        reader: usize,
        place: usize,
        limit: Option<usize>,
        keywords: Vec<(&'static str, Value)>,
    ) -> Vec<(u64, u64)> {
        let mut args = vec![Value::from(place as u64 + 1)];
        args.extend(limit.map(|limit| Value::from(limit as u64)));
        let keywords: Vec<_> = keywords
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let shown = format!("{args:?} {keywords:?}");
        let json = |value| -> &'static [u8] {
            let mut bytes = Vec::new();
            codec::encode_value(&value, Serializer::Json, &mut bytes).expect("has a form");
            bytes.leak()
        };
        let (args, kwargs) = (json(Value::List(args)), json(Value::Dict(keywords)));
        let said = self.handle(reader, |request| Message::Call {
            request,
            options: CallOptions::default(),
            procedure: "wamp.subscription.get_events".into(),
            payload: Payload::new(Serializer::Json, args, kwargs),
        });
        assert!(!said.error, "{shown}");
        let Some(Value::List(mut results)) = said.result else {
            panic!("{shown}: no result");
        };
        let Some(Value::List(events)) = results.pop() else {
            panic!("{shown}: no list");
        };
        let number = |event: &Value, name| match event.get(name) {
            Some(Value::List(args)) => args[0].as_u64(),
            Some(value) => value.as_u64(),
            None => None,
        };
        let told = events.iter().map(|event| {
            let both = (number(event, "args"), number(event, "publication"));
            (both.0.expect("a number"), both.1.expect("an id"))
        });
        told.collect()
    }
}

fn within(name: &str, at: u64, bound: u64) -> bool {
    match name {
        "from" => at >= bound,
        "after" => at > bound,
        "before" => at < bound,
        _ => at <= bound,
    }
}

#[test]
fn histories_answer_as_a_naive_one_does() {
    for seed in 0..300 {
        let mut chance = Chance::new(seed);
        let mut case = Case::new(&mut chance);
        for _ in 0..120 {
            match chance.below(4) {
                0 => case.now_ms += chance.below(20) as u64,
                1 => case.ask(&mut chance),
                _ => case.publish(&mut chance),
            }
        }
    }
}

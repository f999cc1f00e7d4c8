//! Announcements between links through the realms that they share.
//!
//! Each link announces its mirrors in a realm with the realms that they came through, before the mirrors exist; and it
//! announces their end. A new link requests the announcements of others. A session without announcements is not a link,
//! and a link that announces nothing (Crossbar.io's) counts as a session.

use crosstie_wamp::{
    Message, Payload, PublishOptions, Receivers, SessionId, SubscribeOptions, Value,
};

use crate::interests::{Key, Path};
use crate::leg::Asked;
use crate::link::Link;
use crate::mirror::State;
use crate::requests::{arguments, id, match_policy, payload, text, written};
use crate::sides::{Ended, Kind, Outbox, Side};

/// `[session, [[kind, match, uri, path or null], …]]`; `[session, null]` requests all announcements.
const TOPIC: &str = "crosstie.rlink.on_mirror";
/// Maximum number of announcements in one publication.
const TOLD_MAX: usize = 128;

impl Link {
    /// Subscribes to other links' announcements in a realm, and requests their mirrors there.
    pub(crate) fn join_announcements(
        &mut self,
        side: Side,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let leg = &mut self.legs[side as usize];
        leg.demand(side, Asked::Announcements, out, |request| {
            Message::Subscribe {
                request,
                options: SubscribeOptions::default(),
                topic: TOPIC.into(),
            }
        })?;
        self.tell(side, Value::Null, None, out);
        Ok(())
    }

    /// Announces a new mirror, or a mirror with a new path.
    pub(crate) fn announce(&mut self, side: Side, kind: Kind, key: &Key, out: &mut dyn Outbox) {
        let mirror = self.legs[side as usize].mirrors[kind as usize].get(key);
        if let Some(mirror) = mirror {
            let path = mirror.path.iter().map(|realm| Value::from(realm.as_str()));
            let told = told(kind, key, Value::List(path.collect()));
            self.tell(side, Value::List(vec![told]), None, out);
        }
    }

    /// Announces the end of a mirror.
    pub(crate) fn announce_end(&mut self, side: Side, kind: Kind, key: &Key, out: &mut dyn Outbox) {
        let told = told(kind, key, Value::Null);
        self.tell(side, Value::List(vec![told]), None, out);
    }

    pub(crate) fn handle_announcement(
        &mut self,
        side: Side,
        said: &Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let mut said = arguments(said).into_iter();
        let session = said.next().as_ref().and_then(id).map(SessionId);
        let own = self.legs[side as usize].end.session;
        let Some(session) = session.filter(|session| *session != own) else {
            return Ok(());
        };
        match said.next() {
            Some(Value::Null) => {
                self.tell_all(side, session, out);
                Ok(())
            }
            Some(Value::List(told)) => {
                for told in told.iter().take(TOLD_MAX) {
                    let Some((kind, key, path)) = read(told) else {
                        continue;
                    };
                    let announced_max = self.settings.mirrors_max;
                    let interests = &mut self.legs[side as usize].interests[kind as usize];
                    interests.announce(session, &key, path, announced_max);
                    self.decide(kind, &key, out)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sends all announcements to a new link.
    fn tell_all(&mut self, side: Side, to: SessionId, out: &mut dyn Outbox) {
        let mut all = Vec::new();
        for kind in Kind::BOTH {
            for (key, mirror) in &self.legs[side as usize].mirrors[kind as usize] {
                if matches!(mirror.state, State::Asking | State::Held(_)) {
                    let path = mirror.path.iter().map(|realm| Value::from(realm.as_str()));
                    all.push(told(kind, key, Value::List(path.collect())));
                }
            }
        }
        while !all.is_empty() {
            let rest = all.split_off(all.len().min(TOLD_MAX));
            let part = std::mem::replace(&mut all, rest);
            self.tell(side, Value::List(part), Some(to), out);
        }
    }

    fn tell(&mut self, side: Side, what: Value, to: Option<SessionId>, out: &mut dyn Outbox) {
        let leg = &mut self.legs[side as usize];
        let (own, serializer) = (leg.end.session, leg.end.serializer);
        let args = written(serializer, vec![Value::from(own.0), what]);
        let receivers = to.map(|to| {
            Box::new(Receivers {
                eligible: Some(vec![to]),
                ..Receivers::default()
            })
        });
        let request = leg.next_request();
        // If the announcement fails, the others take the link for a session.
        let _ = out.say(
            side,
            &Message::Publish {
                request,
                options: PublishOptions {
                    receivers,
                    ..PublishOptions::default()
                },
                topic: TOPIC.into(),
                payload: payload(serializer, &args),
            },
        );
    }
}

fn told(kind: Kind, key: &Key, path: Value) -> Value {
    Value::List(vec![
        Value::from(kind.name()),
        Value::from(key.match_policy.name()),
        Value::from(&*key.uri),
        path,
    ])
}

fn read(told: &Value) -> Option<(Kind, Key, Option<Path>)> {
    let Value::List(told) = told else {
        return None;
    };
    let name = text(told.first())?;
    let kind = Kind::BOTH.into_iter().find(|kind| kind.name() == name)?;
    let key = Key {
        match_policy: match_policy(text(told.get(1))?)?,
        uri: text(told.get(2))?.into(),
    };
    let path = match told.get(3)? {
        Value::List(path) => {
            let path = path
                .iter()
                .map(|realm| text(Some(realm)).map(str::to_owned));
            Some(path.collect::<Option<Path>>()?)
        }
        _ => None,
    };
    Some((kind, key, path))
}

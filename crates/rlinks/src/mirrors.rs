//! Decides the mirrors of a link.
//!
//! A topic or procedure is mirrored from its source realm to the target realm while a holder exists in the source: a
//! session, or another link whose mirror did not come from the target. It is not mirrored twice: not if another link
//! from the same source mirrors it already; and no procedure is mirrored that the target has itself.

use crosstie_wamp::{RegistrationId, RequestId, SubscriptionId};

use crate::counts::Count;
use crate::interests::{Entry, Key, Path};
use crate::leg::{Asked, Leg, Subscribed};
use crate::link::Link;
use crate::mirror::{Mirror, State};
use crate::requests::{give_up, hold};
use crate::sides::{Ended, Kind, Outbox, Side, is_reserved};

/// Maximum number of realms that a mirror may have come through.
const REALMS_MAX: usize = 16;

impl Link {
    /// Adjusts the mirrors of a key on both sides after a change.
    pub(crate) fn decide(
        &mut self,
        kind: Kind,
        key: &Key,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        for source in Side::BOTH {
            let target = source.other();
            let mirrors = &mut self.legs[target as usize].mirrors[kind as usize];
            if let Some(mirror) = mirrors.get_mut(key) {
                mirror.is_refused = false;
            }
            self.decide_from(source, kind, key, out)?;
        }
        Ok(())
    }

    fn decide_from(
        &mut self,
        source: Side,
        kind: Kind,
        key: &Key,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let target = source.other();
        let wanted = self.wanted(source, kind, key);
        let mirrors = &mut self.legs[target as usize].mirrors[kind as usize];
        let Some(mirror) = mirrors.get_mut(key) else {
            return match wanted {
                Some(path) => self.hold(target, kind, key, path, out),
                None => Ok(()),
            };
        };
        match (mirror.state, wanted) {
            (State::Idle, None) => {
                mirrors.remove(key);
                Ok(())
            }
            (State::Idle, Some(path)) if !mirror.is_refused => {
                self.hold(target, kind, key, path, out)
            }
            (State::Held(id), None) => self.give_up(target, kind, key, id, out),
            (State::Held(_), Some(path)) if path != mirror.path => {
                mirror.path = path;
                self.announce(target, kind, key, out);
                Ok(())
            }
            // Already requested or correct, or its answer is pending.
            _ => Ok(()),
        }
    }

    /// The path of a mirror of `key` to the other side, if there should be one.
    fn wanted(&self, source: Side, kind: Kind, key: &Key) -> Option<Path> {
        let target = source.other();
        if !self.settings.mirrors(source, kind) || is_reserved(&key.uri) {
            return None;
        }
        let (from, to) = (&self.legs[source as usize], &self.legs[target as usize]);
        let interests = &from.interests[kind as usize];
        let entry = interests.of_key(key)?;
        let own = from.end.session;
        let others = entry.members.iter().filter(|member| **member != own);
        let ways = others.filter_map(|member| match interests.path(*member, key) {
            None => Some(&[][..]),
            // It came from the target, or through too many realms.
            Some(path) if path.contains(&to.end.realm) || path.len() >= REALMS_MAX => None,
            Some(path) => Some(&path[..]),
        });
        let mut best: Option<&[String]> = entry.is_crowded.then_some(&[]);
        for way in ways {
            if best.is_none_or(|best| way.len() < best.len()) {
                best = Some(way);
            }
            if way.is_empty() {
                break;
            }
        }
        let best = best?;
        if self.is_there(source, kind, key) {
            return None;
        }
        let through = best.iter().cloned();
        Some(through.chain([from.end.realm.clone()]).collect())
    }

    /// Whether the target has it by other means.
    fn is_there(&self, source: Side, kind: Kind, key: &Key) -> bool {
        let target = source.other();
        let leg = &self.legs[target as usize];
        let interests = &leg.interests[kind as usize];
        let Some(entry) = interests.of_key(key) else {
            return false;
        };
        let own = leg.end.session;
        let mirror = leg.mirrors[kind as usize].get(key);
        let is_held = mirror.is_some_and(|mirror| matches!(mirror.state, State::Held(_)));
        let from = &self.legs[source as usize].end.realm;
        let others = entry.members.iter().filter(|member| **member != own);
        let mut others = others.map(|member| (member, interests.path(*member, key)));
        others.any(|(member, path)| match (kind, path) {
            // A session of the realm itself.
            (Kind::Subscription, None) => false,
            (Kind::Registration, None) => true,
            // Of two links the one with the lower session id continues.
            (Kind::Subscription, Some(path)) => {
                path.last() == Some(from) && (!is_held || *member < own)
            }
            (Kind::Registration, Some(_)) => !is_held || *member < own,
        })
    }

    fn hold(
        &mut self,
        target: Side,
        kind: Kind,
        key: &Key,
        path: Path,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let source = &self.legs[target.other() as usize].interests[kind as usize];
        let invoke = source.of_key(key).map_or_else(Default::default, invoke);
        let mirror = Mirror {
            state: State::Asking,
            path,
            is_refused: false,
        };
        self.legs[target as usize].mirrors[kind as usize].insert(key.clone(), mirror);
        // Announced before it exists, so that no other link takes it for a session's own.
        self.announce(target, kind, key, out);
        let asked = Asked::Hold {
            kind,
            key: key.clone(),
        };
        let leg = &mut self.legs[target as usize];
        let said = leg.ask(target, asked, out, |request| {
            hold(kind, key, invoke, request)
        });
        match said {
            Ok(_) => Ok(()),
            Err(why) => self.handle_not_held(target, kind, key, &why, out),
        }
    }

    fn give_up(
        &mut self,
        target: Side,
        kind: Kind,
        key: &Key,
        id: u64,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let leg = &mut self.legs[target as usize];
        if let Some(mirror) = leg.mirrors[kind as usize].get_mut(key) {
            mirror.state = State::Dropping;
        }
        leg.forget_held(kind, id);
        let asked = Asked::Drop {
            kind,
            key: key.clone(),
        };
        leg.demand(target, asked, out, |request| give_up(kind, id, request))?;
        self.announce_end(target, kind, key, out);
        Ok(())
    }

    /// Handles SUBSCRIBED or REGISTERED.
    pub(crate) fn handle_held(
        &mut self,
        side: Side,
        request: RequestId,
        id: u64,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        match self.legs[side as usize].answered(request) {
            Some(Asked::Watch(topic)) => {
                self.handle_watched(side, id, Subscribed::Meta(topic));
                Ok(())
            }
            Some(Asked::Announcements) => {
                self.handle_watched(side, id, Subscribed::Announcements);
                Ok(())
            }
            Some(Asked::Hold { kind, key }) => {
                let leg = &mut self.legs[side as usize];
                if let Some(mirror) = leg.mirrors[kind as usize].get_mut(&key) {
                    mirror.state = State::Held(id);
                }
                match kind {
                    Kind::Subscription => {
                        let what = Subscribed::Mirror(key.clone());
                        leg.subscribed.insert(SubscriptionId(id), what);
                    }
                    Kind::Registration => {
                        leg.registered.insert(RegistrationId(id), key.clone());
                    }
                }
                self.decide_from(side.other(), kind, &key, out)
            }
            // Other requests have no such answer.
            _ => Ok(()),
        }
    }

    /// Handles the refusal of a mirror.
    pub(crate) fn handle_not_held(
        &mut self,
        side: Side,
        kind: Kind,
        key: &Key,
        why: &str,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        out.count(Count::MirrorsRefused);
        // Another callee there has it, which its entry shows.
        if !why.starts_with("wamp.error.procedure_already_exists") {
            out.warn(&format!(
                "the {} realm refuses the {} of '{}': {why}",
                side.name(),
                kind.name(),
                key.uri
            ));
        }
        let mirrors = &mut self.legs[side as usize].mirrors[kind as usize];
        if let Some(mirror) = mirrors.get_mut(key) {
            mirror.state = State::Idle;
            mirror.is_refused = true;
        }
        self.announce_end(side, kind, key, out);
        self.decide_from(side.other(), kind, key, out)
    }

    /// Handles UNSUBSCRIBED or UNREGISTERED for a mirror.
    pub(crate) fn handle_dropped(
        &mut self,
        side: Side,
        request: RequestId,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        match self.legs[side as usize].answered(request) {
            Some(Asked::Drop { kind, key }) => self.handle_gone(side, kind, &key, out),
            _ => Ok(()),
        }
    }

    pub(crate) fn handle_gone(
        &mut self,
        side: Side,
        kind: Kind,
        key: &Key,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        if let Some(mirror) = self.legs[side as usize].mirrors[kind as usize].get_mut(key) {
            mirror.state = State::Idle;
        }
        self.decide_from(side.other(), kind, key, out)
    }

    /// Handles a revocation by the realm.
    pub(crate) fn handle_revoked(
        &mut self,
        side: Side,
        kind: Kind,
        id: u64,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        match self.legs[side as usize].forget_held(kind, id) {
            Some(Subscribed::Mirror(key)) => {
                self.handle_not_held(side, kind, &key, "it was taken from the link", out)
            }
            Some(Subscribed::Meta(topic)) => Err(Ended(format!(
                "the {} realm has ended the subscription to {topic}",
                side.name()
            ))),
            Some(Subscribed::Announcements) | None => Ok(()),
        }
    }
}

impl Leg {
    /// Forgets the session's mirror of that id.
    fn forget_held(&mut self, kind: Kind, id: u64) -> Option<Subscribed> {
        match kind {
            Kind::Subscription => self.subscribed.remove(&SubscriptionId(id)),
            Kind::Registration => {
                let key = self.registered.remove(&RegistrationId(id));
                key.map(Subscribed::Mirror)
            }
        }
    }
}

fn invoke(entry: &Entry) -> crosstie_wamp::InvocationPolicy {
    entry.invoke
}

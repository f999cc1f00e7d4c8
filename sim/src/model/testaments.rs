//! Testaments, naively.

use crosstie_routing::{RoleLimits, error};
use crosstie_wamp::{PublishOptions, Value};

use super::broker::of_trustlevel;
use super::reflection::is_undefined;
use super::{Model, Testament};
use crate::{Name, Sent};

impl Model {
    /// A bound of a member's role, if it has one; it is drawn smaller than the realm's.
    pub(super) fn bound(
        &self,
        from: Name,
        bound: impl Fn(&RoleLimits) -> Option<usize>,
    ) -> Option<usize> {
        let authrole = &self.member(from).authrole;
        let role = self.config.roles.iter().find(|role| role.name == *authrole);
        role.and_then(|role| bound(&role.limits))
    }

    pub(super) fn add_testament(
        &mut self,
        from: Name,
        request: u64,
        (topic, payload, options): (&str, u64, &PublishOptions),
        scope: Option<&str>,
    ) -> Result<Value, &'static str> {
        let is_detached = is_detached(scope)?;
        self.may_publish(from, options, topic)?;
        let limits = &self.config.limits;
        if self.member(from).testaments.len() >= limits.testaments_max {
            return Err(error::TESTAMENTS_MAX);
        }
        let told = self.actual.iter().find_map(|(to, sent)| match sent {
            Sent::Result {
                request: answered,
                payload,
                ..
            } if *to == from && *answered == request => Some(*payload),
            _ => None,
        });
        if let Some(id) = told {
            self.use_publication(id);
        }
        self.member_mut(from).testaments.push(Testament {
            is_detached,
            topic: topic.to_owned(),
            payload,
            options: PublishOptions {
                acknowledge: false,
                exclude_me: true,
                ..options.clone()
            },
            publication: told,
        });
        Ok(Value::from(told.unwrap_or(0)))
    }

    pub(super) fn flush_testaments(
        &mut self,
        from: Name,
        scope: Option<&str>,
    ) -> Result<Value, &'static str> {
        let is_detached = is_detached(scope)?;
        let testaments = &mut self.member_mut(from).testaments;
        let before = testaments.len();
        testaments.retain(|testament| testament.is_detached != is_detached);
        Ok(Value::from((before - testaments.len()) as u64))
    }

    /// A session has left, and still has its name.
    pub(super) fn publish_testaments(&mut self, name: Name) {
        let testaments = std::mem::take(&mut self.member_mut(name).testaments);
        let (first, last): (Vec<_>, Vec<_>) = testaments.into_iter().partition(|t| t.is_detached);
        let in_order: Vec<_> = first.into_iter().chain(last).collect();
        let payloads = in_order.iter().map(|testament| testament.payload);
        let payloads = payloads.collect();
        self.in_order.push((self.member(name).id, payloads));
        for testament in in_order {
            let Testament {
                topic,
                payload,
                options,
                publication,
                ..
            } = testament;
            let Ok((disclosed, trustlevel)) = self.may_publish(name, &options, &topic) else {
                continue;
            };
            let options = PublishOptions {
                passthru: of_trustlevel(trustlevel),
                ..options
            };
            let told = publication.or_else(|| self.told_publication(payload));
            if let Some(id) = told.filter(|_| publication.is_none()) {
                self.use_publication(id);
            }
            self.send_events(name, told, disclosed, &options, &topic, payload);
        }
    }

    /// A subscriber to a session's end first receives the ends of its subscriptions and definitions, then its
    /// testaments in order, then that it has left.
    pub(super) fn check_order(&mut self) -> Result<(), String> {
        for (session, payloads) in std::mem::take(&mut self.in_order) {
            let (lost, left) = (format!("[{session},"), format!("[{session},\""));
            let place = |sent: &Sent| match sent {
                Sent::Event {
                    payload,
                    retained: false,
                    ..
                } => Some(1 + payloads.iter().position(|known| known == payload)?),
                undefined if is_undefined(undefined, session) => Some(0),
                Sent::MetaEvent { arguments, .. } if arguments.starts_with(&left) => {
                    Some(usize::MAX)
                }
                Sent::MetaEvent { arguments, .. } if arguments.starts_with(&lost) => Some(0),
                _ => None,
            };
            for (member, _) in &self.actual {
                let heard = self.actual.iter().filter(|(to, _)| to == member);
                if !heard.filter_map(|(_, sent)| place(sent)).is_sorted() {
                    return Err(format!(
                        "{member} heard of the end of {session} in another order"
                    ));
                }
            }
        }
        Ok(())
    }
}

fn is_detached(scope: Option<&str>) -> Result<bool, &'static str> {
    match scope {
        Some("detached") => Ok(true),
        None | Some("destroyed") => Ok(false),
        Some(_) => Err(error::TESTAMENT_ERROR),
    }
}

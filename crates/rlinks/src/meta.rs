//! A realm's subscriptions and registrations: lists at the start, events from then on.
//!
//! The link subscribes to the events before it requests the lists, so that it misses nothing. An answer is ordered
//! among the events: earlier events are contained in it, and later ones change it.

use crosstie_wamp::{
    CallOptions, InvocationPolicy, Message, Payload, SessionId, SubscribeOptions, Value,
};

use crate::counts::Count;
use crate::interests::Key;
use crate::leg::{Asked, Subscribed};
use crate::link::Link;
use crate::meta_questions::{MetaTopic, Question, What};
use crate::requests::{arguments, id, match_policy, payload, text, written};
use crate::sides::{Ended, Kind, Outbox, Side, is_reserved};

/// Maximum number of open questions to a realm.
const QUESTIONS_MAX: usize = 64;

impl Link {
    /// Subscribes to a realm's meta events of a kind, and requests the list.
    pub(crate) fn watch(
        &mut self,
        side: Side,
        kind: Kind,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        for what in [What::Created, What::Entered, What::Exited, What::Deleted] {
            let topic = MetaTopic { kind, what };
            let leg = &mut self.legs[side as usize];
            leg.demand(side, Asked::Watch(topic), out, |request| {
                Message::Subscribe {
                    request,
                    options: SubscribeOptions::default(),
                    topic: topic.uri().into(),
                }
            })?;
        }
        self.question(side, Question::List(kind));
        self.ask_more(side, out)
    }

    fn question(&mut self, side: Side, question: Question) {
        self.legs[side as usize].questions.push_back(question);
    }

    /// Sends waiting questions, up to the maximum.
    pub(crate) fn ask_more(&mut self, side: Side, out: &mut dyn Outbox) -> Result<(), Ended> {
        let leg = &mut self.legs[side as usize];
        while leg.questions_asked < QUESTIONS_MAX {
            let Some(question) = leg.questions.pop_front() else {
                return Ok(());
            };
            let serializer = leg.end.serializer;
            let args = match question {
                Question::List(_) => Vec::new(),
                Question::Get(_, id) | Question::Members(_, id) => {
                    written(serializer, vec![Value::from(id)])
                }
            };
            leg.demand(side, Asked::Question(question), out, |request| {
                Message::Call {
                    request,
                    options: CallOptions::default(),
                    procedure: question.procedure().into(),
                    payload: payload(serializer, &args),
                }
            })?;
            leg.questions_asked += 1;
        }
        Ok(())
    }

    pub(crate) fn handle_answer(
        &mut self,
        side: Side,
        question: Question,
        answer: &Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let answer = arguments(answer).into_iter().next();
        match (question, answer) {
            (Question::List(kind), Some(Value::Dict(lists))) => {
                for (_, list) in lists {
                    for id in ids(&list) {
                        self.meet(side, kind, id, out);
                    }
                }
                Ok(())
            }
            (Question::Get(kind, id), Some(Value::Dict(details))) => {
                let Some((_, key, invoke)) = described(&details) else {
                    return Err(nonsense(side, question));
                };
                self.describe(side, kind, id, key, invoke, out)
            }
            (Question::Members(kind, id), Some(members @ Value::List(_))) => {
                let interests = &mut self.legs[side as usize].interests[kind as usize];
                interests.set_members(id, ids(&members).map(SessionId));
                self.decide_id(side, kind, id, out)
            }
            (Question::Members(kind, id), Some(Value::Null)) => self.forget(side, kind, id, out),
            _ => Err(nonsense(side, question)),
        }
    }

    /// Handles an error as the answer to a question.
    pub(crate) fn handle_no_answer(
        &mut self,
        side: Side,
        question: Question,
        why: &str,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        match question {
            // Without the list a link knows nothing.
            Question::List(_) => Err(Ended(format!(
                "the {} realm does not answer {question}: {why}",
                side.name()
            ))),
            // The entry is gone, or this session may not read it.
            Question::Get(kind, id) => self.forget(side, kind, id, out),
            Question::Members(kind, id) if why.starts_with("wamp.error.no_such_") => {
                self.forget(side, kind, id, out)
            }
            // Too many members for one answer.
            Question::Members(kind, id) => {
                self.legs[side as usize].interests[kind as usize].crowd(id);
                self.decide_id(side, kind, id, out)
            }
        }
    }

    pub(crate) fn handle_meta_event(
        &mut self,
        side: Side,
        topic: MetaTopic,
        said: &Payload<'_>,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let said = arguments(said);
        let session = said.first().and_then(id).map(SessionId);
        let about = said.get(1);
        let kind = topic.kind;
        match (topic.what, session, about) {
            (What::Created, _, Some(Value::Dict(details))) => {
                let Some((id, key, invoke)) = described(details) else {
                    return Ok(());
                };
                let interests = &mut self.legs[side as usize].interests[kind as usize];
                if interests.entry(id, self.settings.mirrors_max).is_none() {
                    out.count(Count::MirrorsBeyond);
                    return Ok(());
                }
                interests.describe(id, key, invoke);
                Ok(())
            }
            (What::Entered, Some(session), Some(entry)) => {
                let Some(id) = id(entry) else {
                    return Ok(());
                };
                if !self.meet(side, kind, id, out) {
                    return self.ask_more(side, out);
                }
                self.legs[side as usize].interests[kind as usize].enter(id, session);
                self.decide_id(side, kind, id, out)
            }
            (What::Exited, Some(session), Some(entry)) => {
                let Some(id) = id(entry) else {
                    return Ok(());
                };
                let interests = &mut self.legs[side as usize].interests[kind as usize];
                match interests.exit(id, session) {
                    Some(key) => self.decide(kind, &key, out),
                    None => Ok(()),
                }
            }
            (What::Deleted, _, Some(entry)) => match id(entry) {
                Some(id) => self.forget(side, kind, id, out),
                None => Ok(()),
            },
            // Not an event of the meta API.
            _ => Ok(()),
        }
    }

    /// Creates an entry and requests its description, unless known. Returns whether it is known.
    fn meet(&mut self, side: Side, kind: Kind, id: u64, out: &mut dyn Outbox) -> bool {
        let interests = &mut self.legs[side as usize].interests[kind as usize];
        match interests.entry(id, self.settings.mirrors_max) {
            Some((_, false)) => true,
            Some((_, true)) => {
                self.question(side, Question::Get(kind, id));
                false
            }
            None => {
                out.count(Count::MirrorsBeyond);
                false
            }
        }
    }

    fn describe(
        &mut self,
        side: Side,
        kind: Kind,
        id: u64,
        key: Key,
        invoke: InvocationPolicy,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let interests = &mut self.legs[side as usize].interests[kind as usize];
        match is_reserved(&key.uri) {
            true => self.forget(side, kind, id, out),
            false => {
                interests.describe(id, key, invoke);
                self.question(side, Question::Members(kind, id));
                Ok(())
            }
        }
    }

    fn forget(
        &mut self,
        side: Side,
        kind: Kind,
        id: u64,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let key = self.legs[side as usize].interests[kind as usize].remove(id);
        key.map_or(Ok(()), |key| self.decide(kind, &key, out))
    }

    fn decide_id(
        &mut self,
        side: Side,
        kind: Kind,
        id: u64,
        out: &mut dyn Outbox,
    ) -> Result<(), Ended> {
        let entry = self.legs[side as usize].interests[kind as usize].find(id);
        let key = entry.and_then(|entry| entry.key.clone());
        key.map_or(Ok(()), |key| self.decide(kind, &key, out))
    }

    /// A subscription of the session itself is established.
    pub(crate) fn handle_watched(&mut self, side: Side, id: u64, what: Subscribed) {
        let id = crosstie_wamp::SubscriptionId(id);
        self.legs[side as usize].subscribed.insert(id, what);
    }
}

fn nonsense(side: Side, question: Question) -> Ended {
    Ended(format!(
        "the {} realm answers {question} with something else",
        side.name()
    ))
}

fn ids(value: &Value) -> impl Iterator<Item = u64> {
    let list = match value {
        Value::List(list) => list.as_slice(),
        _ => &[],
    };
    list.iter().filter_map(id)
}

/// A subscription or registration in the meta API's form.
fn described(details: &[(String, Value)]) -> Option<(u64, Key, InvocationPolicy)> {
    let found = |name: &str| {
        let found = details.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    };
    let key = Key {
        match_policy: match_policy(text(found("match")).unwrap_or("exact"))?,
        uri: text(found("uri"))?.into(),
    };
    let said = text(found("invoke"));
    let mut policies = InvocationPolicy::ALL.into_iter();
    let invoke = policies.find(|policy| said == Some(policy.name()));
    let invoke = invoke.unwrap_or_default();
    Some((found("id").and_then(id)?, key, invoke))
}

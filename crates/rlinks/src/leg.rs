//! One session of a link: its requests, and its mirrors.

use std::collections::{HashMap, VecDeque};

use crosstie_wamp::{Message, RegistrationId, RequestId, SubscriptionId};

use crate::interests::{Interests, Key};
use crate::meta_questions::{MetaTopic, Question};
use crate::mirror::{Mirror, State};
use crate::sides::{End, Ended, Kind, Outbox, Side};

/// The purpose of a request.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A subscription to meta events.
    Watch(MetaTopic),
    /// A subscription to other links' announcements.
    Announcements,
    Question(Question),
    /// Subscribes or registers a mirror.
    Hold {
        kind: Kind,
        key: Key,
    },
    /// Gives a mirror up.
    Drop {
        kind: Kind,
        key: Key,
    },
    /// A call of the other side, by its invocation there.
    Call {
        invocation: RequestId,
    },
    Publish,
}

/// The purpose of a subscription.
#[derive(Clone, Debug)]
pub(crate) enum Subscribed {
    Meta(MetaTopic),
    Announcements,
    Mirror(Key),
}

#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) end: End,
    request_last: u64,
    pub(crate) asked: HashMap<RequestId, Asked>,
    /// Number of these that are calls and publications.
    pub(crate) carried: usize,
    pub(crate) subscribed: HashMap<SubscriptionId, Subscribed>,
    pub(crate) registered: HashMap<RegistrationId, Key>,
    /// Invocations received here, and their calls on the other side.
    pub(crate) invoked: HashMap<RequestId, RequestId>,
    /// Subscriptions and registrations of the realm's sessions, by kind.
    pub(crate) interests: [Interests; 2],
    /// Mirrors that the link holds here for the other side, by kind.
    pub(crate) mirrors: [HashMap<Key, Mirror>; 2],
    /// Waiting questions to the meta API, and the number of open ones.
    pub(crate) questions: VecDeque<Question>,
    pub(crate) questions_asked: usize,
    /// Number of open requests of the initial inventory and its mirrors.
    opening: usize,
}

impl Leg {
    pub(crate) fn new(end: End) -> Self {
        Self {
            end,
            request_last: 0,
            asked: HashMap::new(),
            carried: 0,
            subscribed: HashMap::new(),
            registered: HashMap::new(),
            invoked: HashMap::new(),
            interests: Default::default(),
            mirrors: Default::default(),
            questions: VecDeque::new(),
            questions_asked: 0,
            opening: 0,
        }
    }

    /// Sends a request with the next id.
    pub(crate) fn ask<'m>(
        &mut self,
        side: Side,
        asked: Asked,
        out: &mut dyn Outbox,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Result<RequestId, String> {
        let request = RequestId(self.request_last + 1);
        let (is_carried, is_opening) = (asked.is_carried(), asked.is_opening());
        self.asked.insert(request, asked);
        match out.say(side, &message(request)) {
            Ok(()) => {
                self.request_last = request.0;
                self.carried += usize::from(is_carried);
                self.opening += usize::from(is_opening);
                Ok(request)
            }
            Err(why) => {
                self.asked.remove(&request);
                Err(why)
            }
        }
    }

    /// The same for a request that no realm refuses.
    pub(crate) fn demand<'m>(
        &mut self,
        side: Side,
        asked: Asked,
        out: &mut dyn Outbox,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Result<RequestId, Ended> {
        let request = self.ask(side, asked, out, message);
        request.map_err(|why| Ended(format!("{} side: {why}", side.name())))
    }

    /// The next id, for a message without an answer.
    pub(crate) fn next_request(&mut self) -> RequestId {
        self.request_last += 1;
        RequestId(self.request_last)
    }

    /// Removes an answered request.
    pub(crate) fn answered(&mut self, request: RequestId) -> Option<Asked> {
        let asked = self.asked.remove(&request)?;
        self.carried -= usize::from(asked.is_carried());
        self.opening -= usize::from(asked.is_opening());
        self.questions_asked -= usize::from(matches!(asked, Asked::Question(_)));
        Some(asked)
    }

    pub(crate) fn held(&self, kind: Kind) -> usize {
        let mirrors = self.mirrors[kind as usize].values();
        let held = mirrors.filter(|mirror| matches!(mirror.state, State::Held(_)));
        held.count()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.questions.is_empty() && self.opening == 0
    }
}

impl Asked {
    fn is_carried(&self) -> bool {
        matches!(self, Self::Call { .. } | Self::Publish)
    }

    fn is_opening(&self) -> bool {
        matches!(self, Self::Watch(_) | Self::Question(_) | Self::Hold { .. })
    }
}

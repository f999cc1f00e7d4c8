//! The naive model: computes the messages to each session by scanning flat lists.
//!
//! Free choices of the realm (ids, the `random` callee) are taken from its messages, and must be kept: an id stays with
//! its subscription, a callee must be one of those asked.

mod broker;
mod call_queue;
mod choice;
mod dealer;
mod decisions;
mod definition;
mod meta;
mod open_call;
mod patterns;
mod queue;
mod reflection;
mod reroute;
mod retained;
mod shards;
mod testaments;

use crosstie_routing::{ClientFeatures, RealmConfig, Refused, RequestIdCheck};
use crosstie_wamp::{ID_MAX, InvocationPolicy, MatchPolicy, PublishOptions};

use self::decisions::{ASKED, Decisions};
use self::definition::Definition;
use self::open_call::Call;
use self::queue::{Queue, Waiting};
use self::retained::RetainedEvent;
use self::shards::Placement;
use crate::{Defined, Kind, Name, Operation, Refusing, Request, Sent};

/// A realm, for the eye.
#[derive(Debug)]
pub struct Model {
    config: RealmConfig,
    now_ms: u64,
    pub(crate) members: Vec<Member>,
    pub(crate) subscribers: Vec<Entry>,
    /// In the order of registration.
    pub(crate) callees: Vec<Entry>,
    pub(crate) calls: Vec<Call>,
    pub(crate) waiting: Vec<Waiting>,
    queues: Vec<Queue>,
    /// Registrations that served a call by roundrobin: the order number of its last callee.
    turns: Vec<(u64, u64)>,
    /// Which shard a resource had last, of registrations and of subscriptions.
    shards: Vec<Placement>,
    event_shards: Vec<Placement>,
    /// Callers that were given a callee of a sticky registration: its order number.
    companions: Vec<(Name, u64)>,
    order_last: u64,
    /// Ids that a subscription or registration has had, and may not have again.
    ids_used: Vec<(&'static str, u64)>,
    publications_used: Vec<u64>,
    /// The oldest first.
    retained: Vec<RetainedEvent>,
    decisions: Decisions,
    /// In the order in which they were said.
    pub(crate) definitions: Vec<Definition>,
    /// The expected messages of the present operation, and the actual ones.
    expected: Vec<(Name, Sent)>,
    actual: Vec<(Name, Sent)>,
    doomed: Vec<Name>,
    /// The sessions that it kills, which may or may not receive meta events about each other.
    dying: Vec<Name>,
    /// The sessions that lost their part in a registration or subscription by this operation.
    exited: Vec<(Kind, u64, u64)>,
    /// The definitions that sessions lost by this operation.
    undefined: Vec<(Defined, String, u64)>,
    /// The sessions that have left by it, with the payloads of their testaments, in order.
    in_order: Vec<(u64, Vec<u64>)>,
    complaint: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: Name,
    pub(crate) id: u64,
    authid: String,
    pub(crate) authrole: String,
    pub(crate) features: ClientFeatures,
    pub(crate) refusing: Option<Refusing>,
    closed: bool,
    pub(crate) request_last: u64,
    pub(crate) invocation_last: u64,
    /// Progressive calls that ended before their last part.
    pub(crate) unfinished: Vec<u64>,
    /// Whether it was announced.
    pub(crate) welcomed: bool,
    pub(crate) testaments: Vec<Testament>,
}

/// One session's part in a subscription or a registration.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) member: Name,
    pub(crate) policy: MatchPolicy,
    pub(crate) uri: String,
    pub(crate) id: u64,
    order: u64,
    pub(crate) invoke: InvocationPolicy,
    forward_timeout: bool,
    disclosed: bool,
    /// 0 means no bound.
    concurrency: u32,
    /// The shard that its callee serves.
    nkey: Option<Box<str>>,
    /// The order number of the first callee that its registration had.
    born: u64,
    /// When its subscription or registration came to be.
    created_ms: u64,
}

/// A member's publications for the time when it has left.
#[derive(Clone, Debug)]
pub(crate) struct Testament {
    is_detached: bool,
    topic: String,
    payload: u64,
    pub(crate) options: PublishOptions,
    publication: Option<u64>,
}

impl Model {
    pub fn new(config: RealmConfig) -> Self {
        Self {
            config,
            now_ms: 0,
            members: Vec::new(),
            subscribers: Vec::new(),
            callees: Vec::new(),
            calls: Vec::new(),
            waiting: Vec::new(),
            queues: Vec::new(),
            turns: Vec::new(),
            shards: Vec::new(),
            event_shards: Vec::new(),
            companions: Vec::new(),
            order_last: 0,
            ids_used: Vec::new(),
            publications_used: Vec::new(),
            retained: Vec::new(),
            decisions: Decisions::default(),
            definitions: Vec::new(),
            expected: Vec::new(),
            actual: Vec::new(),
            doomed: Vec::new(),
            dying: Vec::new(),
            exited: Vec::new(),
            undefined: Vec::new(),
            in_order: Vec::new(),
            complaint: None,
        }
    }

    /// Lets a session in, under the id that the realm gave it.
    pub fn join(&mut self, name: Name, id: u64, operation: &Operation) {
        let Operation::Join {
            authid,
            authrole,
            features,
            ..
        } = operation
        else {
            unreachable!("only Join lets a session in");
        };
        assert!(
            self.members.iter().all(|member| member.id != id),
            "session id {id} is taken"
        );
        self.members.push(Member {
            name,
            id,
            authid: authid.clone(),
            authrole: authrole.clone(),
            features: *features,
            refusing: None,
            closed: false,
            request_last: 0,
            invocation_last: 0,
            unfinished: Vec::new(),
            welcomed: false,
            testaments: Vec::new(),
        });
    }

    /// Does an operation, and compares the realm's messages, whether it reported a violation, and about which session
    /// it asked an authorizer. After a violation its session has to leave.
    pub fn check(
        &mut self,
        operation: &Operation,
        actual: Vec<(Name, Sent)>,
        (actual_violation, actual_asked): (bool, Option<Name>),
    ) -> Result<(), String> {
        self.actual = actual;
        let violation = match operation {
            Operation::Join {
                welcomed: false, ..
            } => false,
            Operation::Join { name, .. } | Operation::Welcome { name } => {
                self.welcome(*name);
                false
            }
            Operation::Leave { name } => {
                self.leave(*name);
                false
            }
            Operation::Send { from, request } => self.send(*from, request),
            Operation::Judge {
                name,
                request,
                verdict,
            } => {
                let is_in = self.members.iter().any(|member| member.name == *name);
                self.decisions.given = Some(verdict.clone());
                let violation = is_in && self.send(*name, request);
                self.decisions.given = None;
                violation
            }
            Operation::Refuse { name, refusing } => {
                if let Some(member) = self.members.iter_mut().find(|m| m.name == *name) {
                    member.refusing = *refusing;
                }
                false
            }
            Operation::Pass { milliseconds } => {
                self.now_ms += milliseconds;
                self.end_retained();
                self.pass();
                false
            }
            Operation::StopRole { authrole } => {
                self.leave_all(|member| member.authrole == *authrole);
                self.decisions.forget(authrole);
                false
            }
            Operation::End => {
                self.leave_all(|_| true);
                false
            }
        };
        self.settle();
        let asked = self.decisions.asked.take();
        if asked != actual_asked {
            return Err(format!("asked about {actual_asked:?}, expected {asked:?}"));
        }
        if let Some(name) = asked
            && let Operation::Send { request, .. } = operation
        {
            // It comes again, with the same number.
            let number = request.number().or_else(|| request.call_number());
            self.member_mut(name).request_last = number.unwrap_or(1) - 1;
        }
        self.compare(violation, actual_violation)
    }

    pub fn is_idle(&self) -> bool {
        self.members.is_empty()
            && self.subscribers.is_empty()
            && self.callees.is_empty()
            && self.calls.is_empty()
            && self.waiting.is_empty()
            && self.definitions.is_empty()
    }

    pub fn next_timeout_ms(&self) -> Option<u64> {
        let waiting = self.waiting.iter().filter_map(Waiting::deadline_ms);
        let open = self.calls.iter().filter_map(Call::deadline_ms);
        open.chain(waiting).chain(self.next_end_ms()).min()
    }

    fn compare(&mut self, violation: bool, actual_violation: bool) -> Result<(), String> {
        self.check_order()?;
        self.exited.clear();
        self.undefined.clear();
        let mut expected = std::mem::take(&mut self.expected);
        let mut actual = std::mem::take(&mut self.actual);
        let dying = std::mem::take(&mut self.dying);
        let is_certain =
            |(to, sent): &(Name, Sent)| !dying.contains(to) || matches!(sent, Sent::Goodbye { .. });
        expected.retain(is_certain);
        actual.retain(is_certain);
        // Within one operation the order of messages to one session says nothing.
        expected.sort();
        actual.sort();
        if let Some(complaint) = self.complaint.take() {
            return Err(complaint);
        }
        if violation != actual_violation {
            return Err(format!(
                "violation: expected {violation}, came {actual_violation}"
            ));
        }
        if expected == actual {
            return Ok(());
        }
        let missing = expected
            .iter()
            .filter(|sent| !actual.contains(sent))
            .collect::<Vec<_>>();
        let extra = actual
            .iter()
            .filter(|sent| !expected.contains(sent))
            .collect::<Vec<_>>();
        Err(format!(
            "missing {missing:#?}\nnot expected {extra:#?}\nof {actual:#?}"
        ))
    }

    /// Whether the message is a violation.
    fn send(&mut self, from: Name, request: &Request) -> bool {
        if let Some(number) = request.number()
            && !self.take_request(from, number)
        {
            return true;
        }
        match request {
            Request::Call {
                request,
                options,
                procedure,
                payload,
            } => return self.call(from, *request, options, procedure, *payload),
            Request::Meta { request, ask } => return self.ask(from, *request, ask),
            Request::Yield {
                invocation,
                progress,
                payload,
            } => return self.answer(from, *invocation, *progress, Ok(*payload)),
            Request::Error {
                invocation,
                is_unavailable,
                payload,
            } => return self.fail(from, *invocation, *is_unavailable, *payload),
            Request::Nonsense => return true,
            Request::Cancel { request, mode } => self.cancel(from, *request, *mode),
            Request::Publish {
                request,
                options,
                topic,
                payload,
            } => self.publish(from, *request, options, topic, *payload),
            Request::Subscribe {
                request,
                options,
                topic,
            } => self.subscribe(from, *request, options, topic),
            Request::Unsubscribe {
                request,
                subscription,
            } => self.unsubscribe(from, *request, *subscription),
            Request::Register {
                request,
                options,
                procedure,
            } => self.register(from, *request, options, procedure),
            Request::Unregister {
                request,
                registration,
            } => self.unregister(from, *request, *registration),
        }
        false
    }

    fn leave(&mut self, name: Name) {
        self.member_mut(name).closed = true;
        self.end_calls_of(name);
        for kind in [Kind::Registrations, Kind::Subscriptions] {
            let of_it = self.of(kind).iter().filter(|entry| entry.member == name);
            let ids: Vec<u64> = of_it.map(|entry| entry.id).collect();
            for id in ids {
                self.take_entry(kind, id, name);
            }
        }
        self.undefine_all(name);
        self.publish_testaments(name);
        let place = self.members.iter().position(|member| member.name == name);
        let member = self.members.remove(place.expect("it is in the realm"));
        self.tell_left(&member);
    }

    /// Sessions that leave together are not told of one another.
    fn leave_all(&mut self, leaves: impl Fn(&Member) -> bool) {
        let leaving = self.members.iter_mut().filter(|member| leaves(member));
        let close = |member: &mut Member| {
            member.closed = true;
            member.name
        };
        let names: Vec<_> = leaving.map(close).collect();
        names.into_iter().for_each(|name| self.leave(name));
    }

    /// Whether the request id may be used.
    fn take_request(&mut self, from: Name, request: u64) -> bool {
        let strict = self.config.request_id_check == RequestIdCheck::Strict;
        let member = self.member_mut(from);
        let good = !strict || request == member.request_last + 1;
        if good {
            member.request_last = request;
        }
        good
    }

    /// Decides whether a message to a session is delivered.
    fn deliver(&mut self, to: Name, sent: Sent) -> Result<(), Refused> {
        let member = self.member(to);
        let refusal = if member.closed {
            Some(Refused::Gone)
        } else {
            member
                .refusing
                .and_then(|refusing| refusing.refusal(sent.carries_payload()))
        };
        match refusal {
            Some(refused) => Err(refused),
            None => {
                self.expected.push((to, sent));
                Ok(())
            }
        }
    }

    /// Like [`Model::deliver`], for an answer that the session waits for.
    fn reply(&mut self, to: Name, sent: Sent) -> Result<(), Refused> {
        let outcome = self.deliver(to, sent);
        if outcome == Err(Refused::Full) {
            self.member_mut(to).closed = true;
            self.expected.push((to, Sent::Closed));
            self.doomed.push(to);
        }
        outcome
    }

    fn refuse(&mut self, to: Name, kind: &'static str, request: u64, uri: &str) {
        if uri == ASKED {
            return;
        }
        let error = Sent::Error {
            kind,
            request,
            uri: uri.to_owned(),
            payload: None,
        };
        let _ = self.reply(to, error);
    }

    /// The id of a subscription or registration, once an answer of the realm has named it. Until
    /// then (its first session could not be told) it has a number that no realm gives.
    fn learn_id(&mut self, what: &'static str, known: Option<u64>, told: Option<u64>) -> u64 {
        let unknown = |id: &u64| *id > ID_MAX;
        if let Some(id) = known.filter(|id| !unknown(id)) {
            return id;
        }
        let Some(id) = told else {
            self.order_last += 1;
            return known.unwrap_or(ID_MAX + self.order_last);
        };
        if self.ids_used.contains(&(what, id)) || unknown(&id) {
            self.complaint = Some(format!("{what} id {id} is used again or too large"));
        }
        self.ids_used.push((what, id));
        for entry in self
            .subscribers
            .iter_mut()
            .filter(|_| what == "subscription")
        {
            if Some(entry.id) == known {
                entry.id = id;
            }
        }
        for entry in self.callees.iter_mut().filter(|_| what == "registration") {
            if Some(entry.id) == known {
                entry.id = id;
            }
        }
        id
    }

    pub(crate) fn member(&self, name: Name) -> &Member {
        self.members
            .iter()
            .find(|member| member.name == name)
            .expect("it is in the realm")
    }

    fn member_mut(&mut self, name: Name) -> &mut Member {
        self.members
            .iter_mut()
            .find(|member| member.name == name)
            .expect("it is in the realm")
    }
}

//! The meta API: queries about a realm's sessions, registrations and subscriptions, and actions on them (WAMP advanced
//! profile, "Session Meta API", "Registration Meta API", "Subscription Meta API"; Crossbar.io's additions beside them).
//!
//! ```text
//!   CALL wamp.… ──► dealer: no callee ──► mod.rs: procedures ──► sessions.rs  entries.rs
//!                                                    (arguments.rs)          testaments.rs
//!                                                                            kill.rs, in turns
//!                                    with other nodes: cluster_query.rs, merge.rs
//!   SUBSCRIBE, REGISTER, a session that joins or leaves ──► crate::events ──► broker ──► EVENT
//! ```
//!
//! The realm answers a call itself if no callee was found, so that other calls pay nothing for it.

mod arguments;
mod asked;
mod cluster_query;
mod entries;
mod event_queue;
mod history;
mod kill;
mod merge;
mod open_queries;
mod reflection;
mod remote_index;
mod remote_sessions;
mod retained_sync;
mod sessions;
mod testament_custody;
mod testaments;

pub(crate) use self::entries::Entries;
pub(crate) use self::kill::Kill;
pub(crate) use self::open_queries::ClusterQueries;
pub(crate) use self::remote_index::RemoteIndex;

use crosstie_wamp::{Payload, RequestId, Value};

use self::arguments::Arguments;
use self::entries::{Question, remove_member};
use self::kill::Target;
use self::merge::Merge;
use self::open_queries::{Asked, Asker};
use self::reflection::Reflected;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::recall::Recalled;
use crate::reflection::Kind;
use crate::{Outbox, Realm, Time};

/// The procedures of the meta API.
#[derive(Clone, Copy)]
enum Procedure {
    CountSessions,
    ListSessions,
    GetSession,
    Kill,
    AddTestament,
    FlushTestaments,
    KillMany(fn(&Arguments) -> Result<Target, Fault>),
    Registrations(Question),
    Subscriptions(Question),
    RemoveCallee,
    RemoveSubscriber,
    ForgetDecisions,
    Events,
    Reflect(Reflected),
}

/// The outcome of a call.
enum Answer {
    /// The argument of its RESULT.
    Now(Value),
    /// Recorded events.
    Recalled(Recalled),
    /// The RESULT follows when the work is done.
    Later,
}

type Row = (&'static str, &'static [&'static str], Procedure);

/// Every procedure, with its parameters in order.
#[rustfmt::skip]
static PROCEDURES: &[Row] = &[
    ("wamp.session.count", &["filter_authroles"], Procedure::CountSessions),
    ("wamp.session.list", &["filter_authroles", "offset", "limit"], Procedure::ListSessions),
    ("wamp.session.get", &["session_id"], Procedure::GetSession),
    ("wamp.session.kill", &["session_id", "reason", "message"], Procedure::Kill),
    (
        "wamp.session.kill_by_authid",
        &["authid", "reason", "message"],
        Procedure::KillMany(|arguments| Ok(Target::Authid(arguments.text("authid")?.to_owned()))),
    ),
    (
        "wamp.session.kill_by_authrole",
        &["authrole", "reason", "message"],
        Procedure::KillMany(|arguments| {
            Ok(Target::Authrole(arguments.text("authrole")?.to_owned()))
        }),
    ),
    ("wamp.session.kill_all", &["reason", "message"], Procedure::KillMany(|_| Ok(Target::All))),
    ("wamp.session.add_testament", &["topic", "args", "kwargs", "publish_options", "scope"], Procedure::AddTestament),
    ("wamp.session.flush_testaments", &["scope"], Procedure::FlushTestaments),
    ("wamp.registration.list", &["session_id", "offset", "limit"], Procedure::Registrations(Question::List)),
    ("wamp.registration.lookup", &["procedure", "options"], Procedure::Registrations(Question::Lookup)),
    ("wamp.registration.match", &["procedure"], Procedure::Registrations(Question::Match)),
    ("wamp.registration.get", &["registration_id"], Procedure::Registrations(Question::Get)),
    (
        "wamp.registration.list_callees",
        &["registration_id", "offset", "limit"],
        Procedure::Registrations(Question::Members),
    ),
    ("wamp.registration.count_callees", &["registration_id"], Procedure::Registrations(Question::CountMembers)),
    ("wamp.registration.remove_callee", &["registration_id", "callee_id", "reason"], Procedure::RemoveCallee),
    ("wamp.subscription.list", &["session_id", "offset", "limit"], Procedure::Subscriptions(Question::List)),
    ("wamp.subscription.lookup", &["topic", "options"], Procedure::Subscriptions(Question::Lookup)),
    ("wamp.subscription.match", &["topic"], Procedure::Subscriptions(Question::Match)),
    ("wamp.subscription.get", &["subscription_id"], Procedure::Subscriptions(Question::Get)),
    (
        "wamp.subscription.list_subscribers",
        &["subscription_id", "offset", "limit"],
        Procedure::Subscriptions(Question::Members),
    ),
    ("wamp.subscription.count_subscribers", &["subscription_id"], Procedure::Subscriptions(Question::CountMembers)),
    (
        "wamp.subscription.remove_subscriber",
        &["subscription_id", "subscriber_id", "reason"],
        Procedure::RemoveSubscriber,
    ),
    history::ROW,
    ("wamp.reflect.define", &["uri", "description", "kind"], Procedure::Reflect(Reflected::Define)),
    ("wamp.reflect.undefine", &["uri", "kind"], Procedure::Reflect(Reflected::Undefine)),
    ("wamp.reflect.describe", &["uri", "kind"], Procedure::Reflect(Reflected::Describe)),
    ("wamp.reflection.procedure.list", &[], Procedure::Reflect(Reflected::List(Kind::Procedure))),
    ("wamp.reflection.procedure.describe", &["uri"], Procedure::Reflect(Reflected::DescribeOne(Kind::Procedure))),
    ("wamp.reflection.topic.list", &[], Procedure::Reflect(Reflected::List(Kind::Topic))),
    ("wamp.reflection.topic.describe", &["uri"], Procedure::Reflect(Reflected::DescribeOne(Kind::Topic))),
    ("wamp.reflection.error.list", &[], Procedure::Reflect(Reflected::List(Kind::Error))),
    ("wamp.reflection.error.describe", &["uri"], Procedure::Reflect(Reflected::DescribeOne(Kind::Error))),
    (FORGET_DECISIONS, &["authrole", "uri", "authid"], Procedure::ForgetDecisions),
];

/// Not a part of the meta API, and available without it.
const FORGET_DECISIONS: &str = "crosstie.authorizer.invalidate";

/// The procedures that do not depend on their caller; testaments and definitions belong to theirs.
pub fn meta_procedures() -> impl Iterator<Item = &'static str> {
    let rows = PROCEDURES.iter().filter(|(_, _, procedure)| {
        !matches!(
            procedure,
            Procedure::AddTestament
                | Procedure::FlushTestaments
                | Procedure::ForgetDecisions
                | Procedure::Reflect(_)
        )
    });
    rows.map(|(name, ..)| *name)
}

fn is_always_there(procedure: &str) -> bool {
    procedure == FORGET_DECISIONS || procedure == history::GET_EVENTS
}

fn find(procedure: &str) -> Option<&'static Row> {
    PROCEDURES.iter().find(|(name, ..)| *name == procedure)
}

impl Procedure {
    /// How the answers of all nodes are merged; `None` if this node knows everything, or the procedure concerns its
    /// caller.
    fn merge(self, arguments: &Arguments) -> Option<Merge> {
        let of_session = arguments.get("session_id").is_some();
        Some(match self {
            Self::CountSessions
            | Self::ListSessions
            | Self::KillMany(_)
            | Self::ForgetDecisions => Merge::Together,
            Self::GetSession | Self::Kill | Self::RemoveCallee | Self::RemoveSubscriber => {
                Merge::First
            }
            Self::Registrations(Question::List | Question::Lookup | Question::Match)
                if !of_session =>
            {
                return None;
            }
            Self::Registrations(Question::List) => Merge::First,
            Self::Registrations(question) | Self::Subscriptions(question) => match question {
                Question::List if of_session => Merge::First,
                Question::List => Merge::ByPolicy,
                Question::Lookup => Merge::FirstFound,
                Question::Match => Merge::Distinct,
                Question::Get => Merge::Earliest,
                Question::Members | Question::CountMembers => Merge::Together,
            },
            Self::AddTestament | Self::FlushTestaments | Self::Events | Self::Reflect(_) => {
                return None;
            }
        })
    }

    /// Whether an answer may have very many ids.
    fn is_list(self) -> bool {
        match self {
            Self::ListSessions | Self::KillMany(_) => true,
            Self::Registrations(question) | Self::Subscriptions(question) => {
                matches!(question, Question::List | Question::Members)
            }
            _ => false,
        }
    }
}

impl<H> Realm<H> {
    /// Answers a call that the caller may make; if there is no such procedure, with the given fault.
    #[cold]
    pub(crate) fn call_meta(
        &mut self,
        now: Time,
        from: SessionIndex,
        request: RequestId,
        (procedure, otherwise): (&str, Fault),
        payload: &Payload<'_>,
        out: &mut dyn Outbox<H>,
    ) {
        let found = find(procedure).filter(|_| self.config.meta_api || is_always_there(procedure));
        let asked = Asked {
            by: Asker::Session(self.sessions.key(from)),
            request,
            serializer: payload.serializer,
        };
        let answer = found.ok_or(otherwise).and_then(|(name, parameters, what)| {
            let arguments = Arguments::read(payload, parameters)?;
            match self.sessions.neighbours.is_any_there() {
                true => self.gather(now, (from, asked), (name, *what), arguments, out),
                false => self.ask(now, (Some(from), asked), *what, &arguments, out),
            }
        });
        self.answer_to(now, asked, answer, out);
        self.settle(now, out);
    }

    fn answer_to(
        &mut self,
        now: Time,
        asked: Asked,
        answer: Result<Answer, Fault>,
        out: &mut dyn Outbox<H>,
    ) {
        match answer {
            Ok(Answer::Later) => self.work(now, self.steps_at_once_max, out),
            Ok(Answer::Now(value)) => self.answer_meta(now, asked, Ok(value), out),
            Ok(Answer::Recalled(recalled)) => self.answer_recalled(now, recalled, out),
            Err(fault) => self.answer_meta(now, asked, Err(fault), out),
        }
    }

    fn ask(
        &mut self,
        now: Time,
        (from, asked): (Option<SessionIndex>, Asked),
        procedure: Procedure,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Answer, Fault> {
        let value = match procedure {
            Procedure::CountSessions => self.count_sessions(arguments)?,
            Procedure::ListSessions => self.list_sessions(arguments)?,
            Procedure::GetSession => self.get_session(arguments, out)?,
            Procedure::Kill => {
                self.kill(from, arguments, out)?;
                self.work(now, self.steps_at_once_max, out);
                Value::Null
            }
            Procedure::AddTestament => self.add_testament(now, own(from)?, arguments, out)?,
            Procedure::FlushTestaments => self.flush_testaments(own(from)?, arguments, out)?,
            Procedure::KillMany(whom) => {
                self.kill_many((from, asked), whom(arguments)?, arguments, out)?;
                return Ok(Answer::Later);
            }
            Procedure::Registrations(question) => {
                let (_, dealer, mut context) = self.split(now, out);
                question.answer(dealer, &mut context, arguments)?
            }
            Procedure::Subscriptions(question) => {
                let (broker, _, mut context) = self.split(now, out);
                question.answer(broker, &mut context, arguments)?
            }
            Procedure::RemoveCallee => {
                let (_, dealer, mut context) = self.split(now, out);
                remove_member(dealer, &mut context, arguments)?;
                Value::Null
            }
            Procedure::RemoveSubscriber => {
                let (broker, _, mut context) = self.split(now, out);
                remove_member(broker, &mut context, arguments)?;
                Value::Null
            }
            Procedure::ForgetDecisions => {
                let forgotten = self.forget_decisions(arguments)?;
                out.keep(self.roles.decision_bytes());
                forgotten
            }
            Procedure::Reflect(what) => self.reflect(now, own(from)?, what, arguments, out)?,
            Procedure::Events => {
                let asker = (own(from)?, asked.request);
                return self.events(now, asker, arguments, out);
            }
        };
        Ok(Answer::Now(value))
    }
}

impl<H> Realm<H> {
    /// Invalidates cached decisions of authorizers; returns how many.
    fn forget_decisions(&mut self, arguments: &Arguments) -> Result<Value, Fault> {
        let authrole = arguments.optional_text("authrole")?;
        let uri = arguments.optional_text("uri")?;
        let authid = arguments.optional_text("authid")?;
        let forgotten = self.roles.forget_decisions(authrole, uri, authid);
        let Some((forgotten, seen)) = forgotten else {
            let name = authrole.unwrap_or_default();
            let text = format!("the realm has no role {name} with an authorizer");
            return Err(Fault::new(error::NO_SUCH_ROLE, text));
        };
        let steps = forgotten + seen / DECISIONS_PER_STEP;
        self.steps = self.steps.saturating_add(steps as u32);
        Ok(Value::from(forgotten as u64))
    }
}

/// The caller, for procedures about it: other nodes do not call these.
fn own(from: Option<SessionIndex>) -> Result<SessionIndex, Fault> {
    from.ok_or_else(|| Fault::new(error::NO_SUCH_PROCEDURE, "it is its caller's own"))
}

/// Decisions examined per step.
const DECISIONS_PER_STEP: usize = 8;

/// A list of ids.
fn ids(ids: impl IntoIterator<Item = u64>) -> Value {
    Value::List(ids.into_iter().map(Value::from).collect())
}

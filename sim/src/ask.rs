//! The calls of a session to the meta API, as they are written into a CALL.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    Dict, MatchPolicy, Message, Payload, PublishOptions, RequestId, Serializer, Value,
};

use crate::reflect::Reflect;

/// One question, or one order.
#[derive(Clone, Debug)]
pub enum Ask {
    CountSessions {
        authroles: Option<Vec<String>>,
    },
    ListSessions {
        authroles: Option<Vec<String>>,
        offset: Option<u64>,
        limit: Option<u64>,
    },
    GetSession {
        session: u64,
    },
    Kill {
        session: u64,
        reason: Option<String>,
    },
    KillMany {
        whom: Whom,
        reason: Option<String>,
    },
    AddTestament {
        topic: String,
        payload: u64,
        options: PublishOptions,
        scope: Option<String>,
    },
    FlushTestaments {
        scope: Option<String>,
    },
    Entries {
        kind: Kind,
        about: About,
    },
    Reflection(Reflect),
}

/// Sessions that are to be killed.
#[derive(Clone, Debug)]
pub enum Whom {
    Authid(String),
    Authrole(String),
    All,
}

/// The tables of the meta API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Registrations,
    Subscriptions,
}

/// The questions about them.
#[derive(Clone, Debug)]
pub enum About {
    List {
        session: Option<u64>,
    },
    Lookup {
        policy: MatchPolicy,
        uri: String,
    },
    Match {
        uri: String,
    },
    Get {
        id: u64,
    },
    Members {
        id: u64,
    },
    CountMembers {
        id: u64,
    },
    Remove {
        id: u64,
        session: u64,
        reason: Option<String>,
    },
}

impl Ask {
    pub fn procedure(&self) -> String {
        let name = match self {
            Self::CountSessions { .. } => "session.count",
            Self::ListSessions { .. } => "session.list",
            Self::GetSession { .. } => "session.get",
            Self::Kill { .. } => "session.kill",
            Self::KillMany { whom, .. } => match whom {
                Whom::Authid(_) => "session.kill_by_authid",
                Whom::Authrole(_) => "session.kill_by_authrole",
                Whom::All => "session.kill_all",
            },
            Self::AddTestament { .. } => "session.add_testament",
            Self::FlushTestaments { .. } => "session.flush_testaments",
            Self::Reflection(reflect) => return format!("wamp.{}", reflect.procedure()),
            Self::Entries { kind, about } => {
                let (of, member) = match kind {
                    Kind::Registrations => ("registration", "callee"),
                    Kind::Subscriptions => ("subscription", "subscriber"),
                };
                let verb = match about {
                    About::List { .. } => "list".to_owned(),
                    About::Lookup { .. } => "lookup".to_owned(),
                    About::Match { .. } => "match".to_owned(),
                    About::Get { .. } => "get".to_owned(),
                    About::Members { .. } => format!("list_{member}s"),
                    About::CountMembers { .. } => format!("count_{member}s"),
                    About::Remove { .. } => format!("remove_{member}"),
                };
                return format!("wamp.{of}.{verb}");
            }
        };
        format!("wamp.{name}")
    }

    /// The arguments, as JSON.
    pub fn arguments(&self) -> String {
        json(Value::List(match self {
            Self::CountSessions { authroles } => vec![texts(authroles)],
            Self::ListSessions {
                authroles,
                offset,
                limit,
            } => vec![texts(authroles), number(*offset), number(*limit)],
            Self::GetSession { session } => vec![Value::from(*session)],
            Self::Kill { session, reason } => vec![Value::from(*session), text(reason)],
            Self::KillMany { whom, reason } => match whom {
                Whom::Authid(name) | Whom::Authrole(name) => {
                    vec![Value::from(name.as_str()), text(reason)]
                }
                Whom::All => vec![text(reason)],
            },
            Self::AddTestament {
                topic,
                payload,
                options,
                scope,
            } => vec![
                Value::from(topic.as_str()),
                Value::List(vec![Value::from(*payload)]),
                Value::Null,
                Value::Dict(publish_options(options)),
                text(scope),
            ],
            Self::FlushTestaments { scope } => vec![text(scope)],
            Self::Reflection(reflect) => reflect.arguments(),
            Self::Entries { about, .. } => match about {
                About::List { session } => vec![number(*session)],
                About::Lookup { policy, uri } => {
                    let policy = ("match".to_owned(), Value::from(policy.name()));
                    vec![Value::from(uri.as_str()), Value::Dict(vec![policy])]
                }
                About::Match { uri } => vec![Value::from(uri.as_str())],
                About::Get { id } | About::Members { id } | About::CountMembers { id } => {
                    vec![Value::from(*id)]
                }
                About::Remove {
                    id,
                    session,
                    reason,
                } => vec![Value::from(*id), Value::from(*session), text(reason)],
            },
        }))
    }
}

/// One value as text, to be sent or compared.
pub(crate) fn json(value: Value) -> String {
    let mut bytes = Vec::new();
    codec::encode_value(&value, Serializer::Json, &mut bytes).expect("it has a form in JSON");
    String::from_utf8(bytes).expect("JSON is text")
}

/// The options as a PUBLISH has them.
fn publish_options(options: &PublishOptions) -> Dict {
    let publish = Message::Publish {
        request: RequestId(1),
        options: options.clone(),
        topic: "a".into(),
        payload: Payload::EMPTY,
    };
    let mut bytes = Vec::new();
    codec::encode(&publish, Serializer::Json, &mut bytes).expect("it has a form in JSON");
    match codec::decode_value(Serializer::Json, &bytes, &Limits::default()) {
        Ok(Value::List(mut elements)) => match elements.swap_remove(2) {
            Value::Dict(options) => options,
            other => panic!("{other:?} are no options"),
        },
        other => panic!("{other:?} is no message"),
    }
}

fn number(number: Option<u64>) -> Value {
    number.map_or(Value::Null, Value::from)
}

fn text(text: &Option<String>) -> Value {
    text.as_deref().map_or(Value::Null, Value::from)
}

fn texts(texts: &Option<Vec<String>>) -> Value {
    texts.as_ref().map_or(Value::Null, |texts| {
        Value::List(
            texts
                .iter()
                .map(|text| Value::from(text.as_str()))
                .collect(),
        )
    })
}

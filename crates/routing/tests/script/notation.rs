//! Messages as scripts write them: `NAME id {options} uri [args] {kwargs}`.

use std::borrow::Cow;
use std::fmt::Write;

use crosstie_routing::{ClientFeature, ClientFeatures};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{
    CallOptions, CancelMode, CancelOptions, Dict, Disclosed, FORWARD_FOR, InvocationPolicy,
    MatchPolicy, Message, MessageType, Payload, PublicationId, PublishOptions, Receivers,
    RegisterOptions, RegistrationId, RequestId, ResultDetails, Runmode, Serializer, SessionId,
    SubscribeOptions, SubscriptionId, TRUSTLEVEL, Unsupported, Value, YieldOptions,
};

/// A message that a client sends.
pub(super) fn read(text: &str) -> Result<Message<'_>, String> {
    let mut words = Words(text.split(' ').filter(|word| !word.is_empty()));
    let name = words.next()?;
    let kind = kind(name)?;
    Ok(match kind {
        MessageType::Publish => Message::Publish {
            request: words.request()?,
            options: publish_options(words.next()?)?,
            topic: words.uri()?,
            payload: words.payload(),
        },
        MessageType::Subscribe => Message::Subscribe {
            request: words.request()?,
            options: subscribe_options(words.next()?)?,
            topic: words.uri()?,
        },
        MessageType::Unsubscribe => Message::Unsubscribe {
            request: words.request()?,
            subscription: SubscriptionId(words.number()?),
        },
        MessageType::Call => Message::Call {
            request: words.request()?,
            options: call_options(words.next()?)?,
            procedure: words.uri()?,
            payload: words.payload(),
        },
        MessageType::Cancel => {
            let request = words.request()?;
            let mode = match words.next()? {
                "{}" => CancelMode::default(),
                "{mode=skip}" => CancelMode::Skip,
                "{mode=kill}" => CancelMode::Kill,
                "{mode=killnowait}" => CancelMode::KillNoWait,
                other => return Err(format!("no such mode: {other}")),
            };
            Message::Cancel {
                request,
                options: CancelOptions { mode },
            }
        }
        MessageType::EventReceived => Message::EventReceived {
            publication: PublicationId(words.number()?),
        },
        MessageType::Register => Message::Register {
            request: words.request()?,
            options: register_options(words.next()?)?,
            procedure: words.uri()?,
        },
        MessageType::Unregister => Message::Unregister {
            request: words.request()?,
            registration: RegistrationId(words.number()?),
        },
        MessageType::Yield => {
            let request = words.request()?;
            let mut options = YieldOptions::default();
            for (key, value) in options_of(words.next()?)? {
                match key {
                    "progress" => options.progress = flag(value),
                    _ => pass(&mut options.passthru, key, value)?,
                }
            }
            Message::Yield {
                request,
                options,
                payload: words.payload(),
            }
        }
        MessageType::Error => {
            let request_type = self::kind(words.next()?)?;
            let request = words.request()?;
            let mut details = None;
            for (key, value) in options_of(words.next()?)? {
                pass(&mut details, key, value)?;
            }
            Message::Error {
                request_type,
                request,
                details: details.map(|details| *details).unwrap_or_default(),
                error: words.uri()?,
                payload: words.payload(),
            }
        }
        // What only a router sends, for the violations.
        MessageType::Welcome => Message::Welcome {
            session: SessionId(1),
            details: Dict::new(),
        },
        MessageType::Hello => Message::Hello {
            realm: "realm1".into(),
            details: Dict::new(),
        },
        MessageType::Goodbye => Message::Goodbye {
            details: Dict::new(),
            reason: "wamp.close.normal".into(),
        },
        MessageType::Result => Message::Result {
            request: RequestId(1),
            details: ResultDetails::default(),
            payload: Payload::EMPTY,
        },
        MessageType::Unsubscribed => Message::Unsubscribed {
            request: RequestId(1),
            revoked: None,
        },
        _ => return Err(format!("a script cannot send {name}")),
    })
}

/// A message that the realm sent.
pub(super) fn write(message: &Message<'_>) -> String {
    let name = message.kind().name();
    let mut text = match message {
        Message::Error {
            request_type,
            request,
            details,
            error,
            ..
        } => {
            let details = Writer::new().passed(Some(details)).close();
            format!("{name} {} {request} {details} {error}", request_type.name())
        }
        Message::Published {
            request,
            publication,
        } => format!("{name} {request} {publication}"),
        Message::Subscribed {
            request,
            subscription,
        } => format!("{name} {request} {subscription}"),
        Message::Registered {
            request,
            registration,
        } => format!("{name} {request} {registration}"),
        Message::Unsubscribed {
            request,
            revoked: None,
        }
        | Message::Unregistered {
            request,
            revoked: None,
        } => {
            format!("{name} {request}")
        }
        Message::Unsubscribed {
            request,
            revoked: Some(revoked),
        } => {
            let details = Writer::new()
                .given("subscription", Some(&revoked.id.to_string()))
                .given("reason", revoked.reason.as_deref())
                .close();
            format!("{name} {request} {details}")
        }
        Message::Unregistered {
            request,
            revoked: Some(revoked),
        } => {
            let details = Writer::new()
                .given("registration", Some(&revoked.id.to_string()))
                .given("reason", revoked.reason.as_deref())
                .close();
            format!("{name} {request} {details}")
        }
        Message::Event {
            subscription,
            publication,
            details,
            ..
        } => {
            let details = Writer::new()
                .given("topic", details.topic.as_deref())
                .disclosed("publisher", details.publisher.as_ref())
                .flag("retained", details.retained)
                .flag("x_acknowledged_delivery", details.acknowledged_delivery)
                .passed(details.passthru.as_deref())
                .close();
            format!("{name} {subscription} {publication} {details}")
        }
        Message::Result {
            request, details, ..
        } => {
            let details = Writer::new()
                .flag("progress", details.progress)
                .disclosed("callee", details.callee.as_deref())
                .passed(details.passthru.as_deref())
                .close();
            format!("{name} {request} {details}")
        }
        Message::Invocation {
            request,
            registration,
            details,
            ..
        } => {
            let timeout = (details.timeout_ms > 0).then(|| details.timeout_ms.to_string());
            let details = Writer::new()
                .given("procedure", details.procedure.as_deref())
                .disclosed("caller", details.caller.as_ref())
                .given("timeout", timeout.as_deref())
                .flag("receive_progress", details.receive_progress)
                .flag("progress", details.progress)
                .passed(details.passthru.as_deref())
                .close();
            format!("{name} {request} {registration} {details}")
        }
        Message::Interrupt { request, options } => {
            let mode = options.mode.map(|mode| match mode {
                CancelMode::Skip => "skip",
                CancelMode::Kill => "kill",
                CancelMode::KillNoWait => "killnowait",
            });
            let options = Writer::new()
                .given("mode", mode)
                .given("reason", options.reason.as_deref())
                .close();
            format!("{name} {request} {options}")
        }
        other => format!("{other:?}"),
    };
    if let Some(payload) = message.payload().filter(|payload| !payload.is_empty()) {
        let args = String::from_utf8_lossy(payload.args);
        let kwargs = String::from_utf8_lossy(payload.kwargs);
        write!(text, " {args} {kwargs}").expect("text takes all");
    }
    text.trim_end().to_owned()
}

pub(super) fn match_policy(name: &str) -> Option<MatchPolicy> {
    match name {
        "exact" => Some(MatchPolicy::Exact),
        "prefix" => Some(MatchPolicy::Prefix),
        "wildcard" => Some(MatchPolicy::Wildcard),
        _ => None,
    }
}

/// A dictionary as JSON, without spaces.
pub(super) fn dict(json: &str) -> Result<Dict, String> {
    match codec::decode_value(Serializer::Json, json.as_bytes(), &Limits::default()) {
        Ok(Value::Dict(dict)) => Ok(dict),
        other => Err(format!("{json} is no dictionary: {other:?}")),
    }
}

pub(super) fn features(list: &str) -> Result<ClientFeatures, String> {
    let feature = |name: &str| {
        let known = ClientFeature::ALL.into_iter().find(|feature| {
            let (role, of_role) = feature.name();
            name.split_once('.') == Some((role, of_role))
        });
        known.ok_or_else(|| format!("no such feature: {name}"))
    };
    list.split(',').map(feature).collect()
}

struct Words<'t, I: Iterator<Item = &'t str>>(I);

impl<'t, I: Iterator<Item = &'t str>> Words<'t, I> {
    fn next(&mut self) -> Result<&'t str, String> {
        self.0
            .next()
            .ok_or_else(|| "the line is too short".to_owned())
    }

    fn number(&mut self) -> Result<u64, String> {
        let word = self.next()?;
        word.parse().map_err(|_| format!("{word} is not a number"))
    }

    fn request(&mut self) -> Result<RequestId, String> {
        self.number().map(RequestId)
    }

    /// A URI; `-` is the empty one.
    fn uri(&mut self) -> Result<Cow<'t, str>, String> {
        self.next()
            .map(|word| if word == "-" { "".into() } else { word.into() })
    }

    fn payload(&mut self) -> Payload<'t> {
        let mut bytes = || self.0.next().unwrap_or("").as_bytes();
        Payload::new(Serializer::Json, bytes(), bytes())
    }
}

struct Writer(String);

impl Writer {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn given(mut self, key: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            let comma = if self.0.len() > 1 { "," } else { "" };
            write!(self.0, "{comma}{key}={value}").expect("text takes all");
        }
        self
    }

    fn flag(mut self, key: &str, set: bool) -> Self {
        if set {
            let comma = if self.0.len() > 1 { "," } else { "" };
            write!(self.0, "{comma}{key}").expect("text takes all");
        }
        self
    }

    fn disclosed(self, key: &str, who: Option<&Disclosed<'_>>) -> Self {
        let Some(who) = who else { return self };
        self.given(key, Some(&who.session.to_string()))
            .given(&format!("{key}_authid"), Some(&who.authid))
            .given(&format!("{key}_authrole"), Some(&who.authrole))
    }

    fn passed(self, passthru: Option<&Dict>) -> Self {
        passthru
            .into_iter()
            .flatten()
            .fold(self, |writer, (key, value)| {
                let number = value.as_u64().map(|number| number.to_string());
                writer.given(key, value.as_str().or(number.as_deref()))
            })
    }

    fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn kind(name: &str) -> Result<MessageType, String> {
    let known = MessageType::ALL
        .into_iter()
        .find(|kind| kind.name() == name);
    known.ok_or_else(|| format!("no such message: {name}"))
}

/// `{key=value,flag}` as pairs; a flag has no value.
fn options_of(word: &str) -> Result<Vec<(&str, &str)>, String> {
    let inner = word
        .strip_prefix('{')
        .and_then(|word| word.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("{word} is not {{options}}"))?;
    let items = inner.split(',').filter(|item| !item.is_empty());
    Ok(items
        .map(|item| item.split_once('=').unwrap_or((item, "")))
        .collect())
}

fn flag(value: &str) -> bool {
    value != "false"
}

fn pass(passthru: &mut Option<Box<Dict>>, key: &str, value: &str) -> Result<(), String> {
    if !["ppt_", "enc_", "_", TRUSTLEVEL, FORWARD_FOR]
        .iter()
        .any(|kept| key.starts_with(kept))
    {
        return Err(format!("no such option: {key}"));
    }
    passthru.get_or_insert_default().push((
        key.to_owned(),
        match value.parse::<u64>() {
            Ok(number) if key == TRUSTLEVEL => Value::from(number),
            _ => Value::from(value),
        },
    ));
    Ok(())
}

fn call_options(word: &str) -> Result<CallOptions, String> {
    let mut options = CallOptions::default();
    for (key, value) in options_of(word)? {
        match key {
            "timeout" => options.timeout_ms = value.parse().map_err(|_| "timeout is a number")?,
            "receive_progress" => options.receive_progress = flag(value),
            "progress" => options.progress = flag(value),
            "disclose_me" => options.disclose_me = Some(flag(value)),
            "rkey" => options.sharding.get_or_insert_default().rkey = Some(value.into()),
            "runmode" => {
                let mut all = Runmode::ALL.into_iter();
                let found = all.find(|known| known.name() == value);
                options.sharding.get_or_insert_default().runmode =
                    Some(found.ok_or("no such runmode")?);
            }
            "nkey" => {
                options.sharding.get_or_insert_default().unsupported = Some(Unsupported::Nkey)
            }
            _ => pass(&mut options.passthru, key, value)?,
        }
    }
    Ok(options)
}

/// Whether the option is one that the router does not have.
fn unsupported(option: &mut Option<Unsupported>, key: &str) -> bool {
    *option = Unsupported::from_name(key).or(*option);
    Unsupported::from_name(key).is_some()
}

fn subscribe_options(word: &str) -> Result<SubscribeOptions, String> {
    let mut options = SubscribeOptions::default();
    for (key, value) in options_of(word)? {
        match key {
            "match" => options.match_policy = match_policy(value).ok_or("no such policy")?,
            "get_retained" => options.get_retained = flag(value),
            "nkey" => options.nkey = Some(Box::from(value)).into(),
            "forward_for" => options.is_forwarded = true,
            "x_acknowledged_delivery" => options.acknowledged_delivery = flag(value),
            _ if unsupported(&mut options.unsupported, key) => {}
            _ => return Err(format!("no such option: {key}={value}")),
        }
    }
    Ok(options)
}

fn register_options(word: &str) -> Result<RegisterOptions, String> {
    let mut options = RegisterOptions::default();
    for (key, value) in options_of(word)? {
        match (key, value) {
            ("match", policy) => {
                options.match_policy = match_policy(policy).ok_or("no such policy")?;
            }
            ("invoke", policy) => {
                let mut all = InvocationPolicy::ALL.into_iter();
                let found = all.find(|known| known.name() == policy);
                options.invoke = found.ok_or("no such policy")?;
            }
            ("forward_timeout", value) => options.forward_timeout = flag(value),
            ("force_reregister", value) => options.force_reregister = flag(value),
            ("forward_for", _) => options.is_forwarded = true,
            ("nkey", value) => options.nkey = Some(Box::from(value)).into(),
            ("concurrency", value) => {
                options.concurrency = value.parse().map_err(|_| "concurrency is a number")?;
            }
            _ if unsupported(&mut options.unsupported, key) => {}
            _ => return Err(format!("no such option: {key}={value}")),
        }
    }
    Ok(options)
}

fn publish_options(word: &str) -> Result<PublishOptions, String> {
    let mut options = PublishOptions::default();
    let names = |value: &str| {
        value
            .split('|')
            .filter(|v| !v.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let ids = |value: &str| {
        let ids = value
            .split('|')
            .filter(|v| !v.is_empty())
            .map(|id| id.parse().map(SessionId));
        ids.collect::<Result<Vec<_>, _>>()
            .map_err(|_| "a session id is a number")
    };
    for (key, value) in options_of(word)? {
        match key {
            "acknowledge" => options.acknowledge = flag(value),
            "exclude_me" => options.exclude_me = flag(value),
            "retain" => options.retain = flag(value),
            "retain_ms" => options.retain_ms = Some(value.parse().map_err(|_| "no number")?),
            "rkey" => options.sharding.get_or_insert_default().rkey = Some(value.into()),
            "nkey" | "runmode" => {
                let said = options.sharding.get_or_insert_default();
                unsupported(&mut said.unsupported, key);
            }
            "disclose_me" => options.disclose_me = Some(flag(value)),
            "exclude" => lists(&mut options).exclude = Some(ids(value)?),
            "exclude_authid" => lists(&mut options).exclude_authid = Some(names(value)),
            "exclude_authrole" => lists(&mut options).exclude_authrole = Some(names(value)),
            "eligible" => lists(&mut options).eligible = Some(ids(value)?),
            "eligible_authid" => lists(&mut options).eligible_authid = Some(names(value)),
            "eligible_authrole" => lists(&mut options).eligible_authrole = Some(names(value)),
            _ => pass(&mut options.passthru, key, value)?,
        }
    }
    Ok(options)
}

fn lists(options: &mut PublishOptions) -> &mut Receivers {
    options.receivers.get_or_insert_default()
}

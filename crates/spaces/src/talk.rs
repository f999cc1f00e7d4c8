//! A client's session in the realm: its login, and requests one after another, each with its answer.
//!
//! ```text
//! begin ─▶ log_in ─▶ publish / may_publish / may_subscribe
//!             │            │
//!             └─ Waits ────┴─▶ go_on (once reading is resumed)
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crosstie_front::end_reason::EndReason;
use crosstie_mqtt::{Connect, ReasonCode};
use crosstie_realms::entrance::Entrance;
use crosstie_realms::mqtt::MqttEndpoint;
use crosstie_realms::peer::{Peer, Wire};
use crosstie_realms::session::Session;
use crosstie_routing::{ClientFeature, ClientFeatures, RoleLimits, asking};
use crosstie_wamp::codec;
use crosstie_wamp::framing::Framing;
use crosstie_wamp::{Dict, Message, Payload, PublishOptions, RequestId, SubscribeOptions, Value};

use crate::client::{Client, SERIALIZER};
use crate::names::Pattern;
use crate::payloads::{ALGORITHM, Arguments};
use crate::scram::{Exchange, First, Proof};
use crate::space::Owner;

/// The session of a client, from its login on.
pub(crate) struct Talk {
    session: Session,
    pub(crate) client: Arc<Client>,
    request_last: u64,
    /// The last request is not answered.
    is_pending: bool,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Allowed,
    Refused(ReasonCode),
    /// The answer comes once reading is resumed.
    Waits,
    /// The session has ended.
    Over,
}

/// The credentials of a client that is challenged.
pub(crate) enum Proving<'a> {
    Password(Option<&'a [u8]>),
    /// By further packets.
    Exchange(&'a mut Exchange),
}

/// The method of WAMP with the proofs of SCRAM-SHA-256.
const SCRAM: &str = "wamp-scram";

/// A step of the login.
pub(crate) enum LoggedIn {
    /// In that realm.
    As(Owner, String),
    /// The client is sent a challenge.
    Challenged(String),
    Refused(ReasonCode),
    /// The client shall come back: it hears nothing.
    TurnedBack,
    Waits,
}

impl Talk {
    /// Begins the login of a client.
    pub(crate) fn begin(
        entrance: &Arc<Entrance>,
        endpoint: &Arc<MqttEndpoint>,
        client: Arc<Client>,
        (connect, scram): (&Connect<'_>, Option<&First>),
    ) -> (Self, ControlFlow<()>) {
        let takes_certificates = endpoint.auth.now().tls.is_some()
            && scram.is_none()
            && client.mailbox.peer_certificate().is_some();
        let mut methods = Vec::new();
        if takes_certificates {
            methods.push("tls");
        }
        let user = connect.user_name.filter(|_| connect.password.is_some());
        match (scram, user) {
            (Some(_), _) => methods.push(SCRAM),
            (None, Some(_)) => methods.extend(["ticket", "jwt"]),
            (None, None) => methods.push("anonymous"),
        }
        let user = scram.map_or(user, |first| Some(&*first.name));
        let described = described(connect.client_id, connect.will.map(|will| will.topic));
        let mut extra = vec![("mqtt".to_owned(), Value::Dict(described))];
        extra.extend(scram.map(First::extra));
        let (entrance, auth) = (Arc::clone(entrance), Arc::clone(&endpoint.auth));
        let session = Session::new(entrance, auth, peer_of(&client));
        let realm = endpoint.options.realm();
        Self::begin_as(session, client, realm, &hello(&methods, user, extra))
    }

    /// Begins another login of a client that has a session.
    pub(crate) fn begin_check(
        entrance: &Arc<Entrance>,
        endpoint: &Arc<MqttEndpoint>,
        client: Arc<Client>,
        (client_id, first): (&str, &First),
    ) -> (Self, ControlFlow<()>) {
        let described = described(client_id, None);
        let extra = vec![("mqtt".to_owned(), Value::Dict(described)), first.extra()];
        let (entrance, auth) = (Arc::clone(entrance), Arc::clone(&endpoint.auth));
        let session = Session::check(entrance, auth, peer_of(&client));
        let details = hello(&[SCRAM], Some(&first.name), extra);
        Self::begin_as(session, client, endpoint.options.realm(), &details)
    }

    fn begin_as(
        session: Session,
        client: Arc<Client>,
        realm: &str,
        details: &Dict,
    ) -> (Self, ControlFlow<()>) {
        let mut talk = Self {
            session,
            client,
            request_last: 0,
            is_pending: false,
        };
        let features = ClientFeatures::from_iter([ClientFeature::PublisherPayloadPassthruMode]);
        let flow = talk
            .session
            .begin_handshake(realm, details, features.elsewhere());
        (talk, flow)
    }

    /// Continues the login after an outcome of it.
    pub(crate) fn go_on_logging_in(&mut self, proof: Proving<'_>) -> LoggedIn {
        let flow = self.session.handle_elsewhere();
        self.log_in(flow, proof)
    }

    /// Sends the proof that the client's last message has.
    pub(crate) fn prove(&mut self, proof: Proof<'_>, exchange: &mut Exchange) -> LoggedIn {
        let message = Message::Authenticate {
            signature: proof.signature.into(),
            extra: vec![("nonce".to_owned(), Value::from(proof.nonce))],
        };
        let flow = self.session.handle(&message, &[], None, Instant::now());
        self.log_in(flow, Proving::Exchange(exchange))
    }

    /// Reads what the realm has answered to the login so far.
    pub(crate) fn log_in(
        &mut self,
        mut flow: ControlFlow<()>,
        mut proving: Proving<'_>,
    ) -> LoggedIn {
        loop {
            let mut said = None;
            let client = Arc::clone(&self.client);
            client.take_messages(|message| {
                said = Some(match message {
                    Message::Welcome { details, .. } => {
                        if let Proving::Exchange(exchange) = &mut proving {
                            exchange.conclude(details);
                        }
                        Login::Welcome(owner(details), text(details, "realm").to_owned())
                    }
                    Message::Challenge { extra, .. } => Login::Challenge(extra.clone()),
                    Message::Abort { reason, .. } => Login::Abort(refusal(reason)),
                    _ => return,
                });
            });
            match said {
                Some(Login::Welcome(owner, realm)) => return LoggedIn::As(owner, realm),
                Some(Login::Challenge(challenge)) => {
                    let password = match &mut proving {
                        Proving::Password(password) => *password,
                        Proving::Exchange(exchange) => {
                            let asked = exchange.ask(&challenge);
                            let refused = LoggedIn::Refused(ReasonCode::NotAuthorized);
                            return asked.map_or(refused, LoggedIn::Challenged);
                        }
                    };
                    // Checked to be UTF-8 before.
                    let password = password.and_then(|p| std::str::from_utf8(p).ok());
                    let message = Message::Authenticate {
                        signature: password.unwrap_or_default().into(),
                        extra: Dict::new(),
                    };
                    flow = self.session.handle(&message, &[], None, Instant::now());
                }
                Some(Login::Abort(Some(reason))) => {
                    let is_wrong = reason == ReasonCode::BadUserNameOrPassword;
                    return LoggedIn::Refused(match proving {
                        Proving::Exchange(_) if is_wrong => ReasonCode::NotAuthorized,
                        _ => reason,
                    });
                }
                Some(Login::Abort(None)) => return LoggedIn::TurnedBack,
                None if flow.is_continue() && self.session.waits() => return LoggedIn::Waits,
                None => return LoggedIn::TurnedBack,
            }
        }
    }

    /// Those of its role, its realm or its listener.
    pub(crate) fn limits(&self) -> RoleLimits {
        self.session.limits()
    }

    /// Publishes in the realm, in place of a packet.
    pub(crate) fn publish(
        &mut self,
        (now, packet_bytes): (Instant, usize),
        uri: &str,
        options: PublishOptions,
        payload: Payload<'_>,
    ) -> Said {
        let options = PublishOptions {
            acknowledge: true,
            ..options
        };
        let at = (now, packet_bytes);
        self.request(at, payload.serializer, |request| Message::Publish {
            request,
            options,
            topic: uri.into(),
            payload,
        })
    }

    /// The same for arguments, which may be a payload in their place.
    pub(crate) fn publish_arguments(
        &mut self,
        at: (Instant, usize),
        uri: &str,
        mut options: PublishOptions,
        arguments: &Arguments,
    ) -> Said {
        if arguments.is_encoded {
            let attributes = options.passthru.get_or_insert_default();
            attributes.push(("enc_algo".to_owned(), Value::from(ALGORITHM)));
        }
        self.publish(at, uri, options, arguments.as_payload())
    }

    /// Asks whether the client may publish there, in the trace of such options.
    pub(crate) fn may_publish(
        &mut self,
        at: (Instant, usize),
        uri: &str,
        options: PublishOptions,
    ) -> Said {
        let options = PublishOptions {
            passthru: options.passthru,
            ..asking()
        };
        self.publish(at, uri, options, Payload::EMPTY)
    }

    /// Asks whether the client may subscribe there: the realm makes no subscription for its session.
    pub(crate) fn may_subscribe(&mut self, at: (Instant, usize), pattern: &Pattern) -> Said {
        let options = SubscribeOptions::matching(pattern.policy);
        self.request(at, SERIALIZER, |request| Message::Subscribe {
            request,
            options,
            topic: pattern.uri.as_str().into(),
        })
    }

    fn request<'m>(
        &mut self,
        (now, packet_bytes): (Instant, usize),
        serializer: crosstie_wamp::Serializer,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Said {
        self.request_last += 1;
        self.is_pending = true;
        let mut bytes = Vec::new();
        if codec::encode(
            &message(RequestId(self.request_last)),
            serializer,
            &mut bytes,
        )
        .is_err()
        {
            self.is_pending = false;
            return Said::Refused(ReasonCode::PayloadFormatInvalid);
        }
        // The session reads requests in the serializer of their payload; its answers have another one.
        self.session.peer.wire.serializer = serializer;
        let flow = self.session.handle_in_place_of(packet_bytes, &bytes, now);
        self.answer(flow)
    }

    /// Continues after an outcome that the session has waited for.
    pub(crate) fn go_on(&mut self) -> Said {
        let flow = self.session.handle_elsewhere();
        self.answer(flow)
    }

    fn answer(&mut self, flow: ControlFlow<()>) -> Said {
        let mut answer = None;
        let mut is_over = flow.is_break();
        let last = RequestId(self.request_last);
        self.client.take_messages(|message| match message {
            Message::Published { request, .. } | Message::Subscribed { request, .. }
                if *request == last =>
            {
                answer = Some(Said::Allowed);
            }
            Message::Error { request, error, .. } if *request == last => {
                answer = Some(Said::Refused(reason(error)));
            }
            Message::Abort { .. } | Message::Goodbye { .. } => is_over = true,
            _ => {}
        });
        let said = match answer {
            _ if is_over => Said::Over,
            Some(answer) => answer,
            None if self.session.waits() => Said::Waits,
            None if !self.is_pending => Said::Allowed,
            None => Said::Over,
        };
        self.is_pending = said == Said::Waits && self.is_pending;
        said
    }

    /// The realm's steps for the requests since the last call.
    pub(crate) fn take_steps(&mut self) -> u32 {
        self.session.take_steps()
    }

    /// Whether the session handles no request now.
    pub(crate) fn waits(&self) -> bool {
        self.session.waits()
    }

    pub(crate) fn leave(&mut self, why: EndReason) {
        self.client.note_over();
        self.session.leave(why);
        self.client.mailbox.close();
    }
}

enum Login {
    /// In that realm.
    Welcome(Owner, String),
    Challenge(Dict),
    Abort(Option<ReasonCode>),
}

/// The peer of a client's session.
fn peer_of(client: &Client) -> Peer {
    Peer {
        connection: Arc::clone(&client.mailbox),
        wire: Wire {
            serializer: SERIALIZER,
            framing: Framing::Mqtt,
            message_bytes_max: u32::MAX,
        },
    }
}

/// The details of HELLO.
fn hello(methods: &[&str], authid: Option<&str>, extra: Dict) -> Dict {
    let methods = methods.iter().map(|method| Value::from(*method));
    let entry = |key: &str, value: Value| (key.to_owned(), value);
    let mut details = vec![
        entry("authmethods", Value::List(methods.collect())),
        entry("authextra", Value::Dict(extra)),
    ];
    details.extend(authid.map(|authid| entry("authid", Value::from(authid))));
    details
}

/// The client, in Crossbar.io's form.
fn described(client_id: &str, will_topic: Option<&str>) -> Dict {
    let entry = |key: &str, value: Value| (key.to_owned(), value);
    vec![
        entry("client_id", Value::from(client_id)),
        entry("will", Value::from(will_topic.is_some())),
        entry("will_topic", will_topic.map_or(Value::Null, Value::from)),
    ]
}

/// The user whose sessions the client may continue.
fn owner(details: &Dict) -> Owner {
    let authid = match text(details, "authmethod") {
        "anonymous" => "",
        _ => text(details, "authid"),
    };
    Owner::new(authid, text(details, "authrole"))
}

fn text<'d>(details: &'d Dict, key: &str) -> &'d str {
    let found = details.iter().find(|(name, _)| name == key);
    let found = found.and_then(|(_, value)| value.as_str());
    found.unwrap_or_default()
}

/// The reason for a client that is not let in; `None` if it shall come back.
fn refusal(reason: &str) -> Option<ReasonCode> {
    Some(match reason {
        "wamp.error.not_authorized" => ReasonCode::BadUserNameOrPassword,
        "crosstie.error.handshakes_pending_max"
        | "crosstie.error.too_many_failures"
        | "wamp.close.system_shutdown"
        | "wamp.close.close_realm"
        // The realm starts later, or will start again.
        | "wamp.error.no_such_realm"
        | "wamp.error.network_failure" => return None,
        reason if reason.ends_with("_max") => ReasonCode::QuotaExceeded,
        _ => ReasonCode::NotAuthorized,
    })
}

/// The reason for a request that the realm has refused.
fn reason(error: &str) -> ReasonCode {
    match error {
        "wamp.error.not_authorized" => ReasonCode::NotAuthorized,
        "wamp.error.invalid_uri" => ReasonCode::TopicNameInvalid,
        "wamp.error.invalid_argument" => ReasonCode::PayloadFormatInvalid,
        "wamp.error.payload_size_exceeded" => ReasonCode::QuotaExceeded,
        error if error.ends_with("_max") => ReasonCode::QuotaExceeded,
        error if error.contains("unreadable") || error.contains("unrepresentable") => {
            ReasonCode::PayloadFormatInvalid
        }
        _ => ReasonCode::ImplementationSpecificError,
    }
}

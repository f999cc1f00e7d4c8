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

/// A step of the login.
pub(crate) enum LoggedIn {
    /// In that realm.
    As(Owner, String),
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
        connect: &Connect<'_>,
    ) -> (Self, ControlFlow<()>) {
        let peer = Peer {
            connection: Arc::clone(&client.mailbox),
            wire: Wire {
                serializer: SERIALIZER,
                framing: Framing::Mqtt,
                message_bytes_max: u32::MAX,
            },
        };
        let auth = Arc::clone(&endpoint.auth);
        let takes_certificates =
            auth.now().tls.is_some() && client.mailbox.peer_certificate().is_some();
        let mut talk = Self {
            session: Session::new(Arc::clone(entrance), auth, peer),
            client,
            request_last: 0,
            is_pending: false,
        };
        let features = ClientFeatures::from_iter([ClientFeature::PublisherPayloadPassthruMode]);
        let details = hello(connect, takes_certificates);
        let realm = endpoint.options.realm();
        let flow = talk
            .session
            .begin_handshake(realm, &details, features.elsewhere());
        (talk, flow)
    }

    /// Continues the login after an outcome of it.
    pub(crate) fn go_on_logging_in(&mut self, connect: &Connect<'_>) -> LoggedIn {
        let flow = self.session.handle_elsewhere();
        self.log_in(flow, connect)
    }

    /// Reads what the realm has answered to the login so far.
    pub(crate) fn log_in(&mut self, mut flow: ControlFlow<()>, connect: &Connect<'_>) -> LoggedIn {
        loop {
            let mut said = None;
            let client = Arc::clone(&self.client);
            client.take_messages(|message| {
                said = Some(match message {
                    Message::Welcome { details, .. } => {
                        Login::Welcome(owner(details), text(details, "realm").to_owned())
                    }
                    Message::Challenge { .. } => Login::Challenge,
                    Message::Abort { reason, .. } => Login::Abort(refusal(reason)),
                    _ => return,
                });
            });
            match said {
                Some(Login::Welcome(owner, realm)) => return LoggedIn::As(owner, realm),
                Some(Login::Challenge) => {
                    // Checked to be UTF-8 before.
                    let password = connect.password.and_then(|p| std::str::from_utf8(p).ok());
                    let message = Message::Authenticate {
                        signature: password.unwrap_or_default().into(),
                        extra: Dict::new(),
                    };
                    flow = self.session.handle(&message, &[], None, Instant::now());
                }
                Some(Login::Abort(Some(reason))) => return LoggedIn::Refused(reason),
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

    /// Asks whether the client may publish there.
    pub(crate) fn may_publish(&mut self, at: (Instant, usize), uri: &str) -> Said {
        self.publish(at, uri, asking(), Payload::EMPTY)
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
    Challenge,
    Abort(Option<ReasonCode>),
}

/// The details of HELLO, in Crossbar.io's form.
fn hello(connect: &Connect<'_>, takes_certificates: bool) -> Dict {
    let entry = |key: &str, value: Value| (key.to_owned(), value);
    let user = connect.user_name.filter(|_| connect.password.is_some());
    let mut methods = Vec::new();
    if takes_certificates {
        methods.push(Value::from("tls"));
    }
    match user {
        Some(_) => methods.extend(["ticket", "jwt"].map(Value::from)),
        None => methods.push(Value::from("anonymous")),
    }
    let will = connect.will;
    let mqtt = vec![
        entry("client_id", Value::from(connect.client_id)),
        entry("will", Value::from(will.is_some())),
        entry(
            "will_topic",
            will.map_or(Value::Null, |will| Value::from(will.topic)),
        ),
    ];
    let mut details = vec![
        entry("authmethods", Value::List(methods)),
        entry(
            "authextra",
            Value::Dict(vec![entry("mqtt", Value::Dict(mqtt))]),
        ),
    ];
    details.extend(user.map(|user| entry("authid", Value::from(user))));
    details
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

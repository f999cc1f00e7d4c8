//! From `connection.start` to `connection.open` (section 2.2.4): authenticates the client, negotiates the parameters
//! and selects the vhost.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crosstie_amqp::method::{
    ConnectionOpen, ConnectionOpenOk, ConnectionStart, ConnectionStartOk, ConnectionTune,
    ConnectionTuneOk,
};
use crosstie_amqp::{Method, ReplyCode, Value, Version};
use crosstie_auth::sasl::{Mechanism, Response};
use crosstie_auth::{Refused, User};
use crosstie_config::{AmqpMechanism, AmqpTransport};
use crosstie_queues::Fault;
use crosstie_transport::{Connection, PeerAddress};

use super::broker::Broker;
use super::certificate;
use super::client::{CHANNELS_MIN, Capabilities, Client};
use super::let_in::LetIn;
use super::logins::{For, Waiting};
use super::peer;
use super::turned_away::{Tried, TurnedAway};

/// A client that has not entered a vhost yet.
pub(super) struct Negotiation {
    awaited: Awaited,
    /// The name in the client's certificate.
    certified_name: Option<String>,
    client: Client,
    tried: Tried,
    /// Set while `connection.start-ok` waits to be answered.
    waiting: Option<Waiting>,
    /// A refusal that is sent late.
    away: Option<Box<TurnedAway>>,
}

/// The step after a method of a client that has not entered a vhost.
pub(super) enum Next {
    /// Wait for the next method.
    Method,
    /// Handle the same method again once reading resumes.
    Again,
    Enter(Box<LetIn>),
}

/// The next expected method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    StartOk,
    TuneOk,
    Open,
}

/// Maximum frame size before the tuning: the size that every peer must accept.
pub(super) const FRAME_BYTES_MAX: u32 = crosstie_amqp::frame::FRAME_MIN_BYTES;

/// The only supported locale.
const LOCALE: &[u8] = b"en_US";

impl Negotiation {
    /// Starts the negotiation with `connection.start`.
    pub(super) fn begin(
        connection: &Arc<Connection>,
        version: Version,
        broker: &Broker,
        options: &AmqpTransport,
    ) -> Self {
        let certificate = connection.peer_certificate();
        let certified_name = certificate.and_then(|der| certificate::name(&der));
        let mechanisms = mechanisms(options, certified_name.is_some());
        let names: Vec<_> = mechanisms.iter().map(|m| m.name()).collect();
        let (version_major, version_minor) = version.numbers();
        peer::send(
            connection,
            version,
            &ConnectionStart {
                version_major,
                version_minor,
                server_properties: broker.server_properties.read().as_table(version),
                mechanisms: names.join(" ").as_bytes(),
                locales: LOCALE,
            },
        );
        Self {
            awaited: Awaited::StartOk,
            certified_name,
            client: Client {
                version,
                ..Client::default()
            },
            tried: Tried::default(),
            waiting: None,
            away: None,
        }
    }

    /// Handles the client's next method; the last one enters a vhost.
    pub(super) fn handle(
        &mut self,
        method: &Method<'_>,
        connection: &Arc<Connection>,
        broker: &Broker,
        options: &AmqpTransport,
    ) -> Result<Next, TurnedAway> {
        let handled = self.handle_next(method, connection, broker, options);
        handled.map_err(|away| TurnedAway {
            tried: Box::new(self.tried.clone()),
            ..away
        })
    }

    fn handle_next(
        &mut self,
        method: &Method<'_>,
        connection: &Arc<Connection>,
        broker: &Broker,
        options: &AmqpTransport,
    ) -> Result<Next, TurnedAway> {
        match (self.awaited, method) {
            (Awaited::StartOk, Method::ConnectionStartOk(start_ok)) => {
                self.handle_start_ok(start_ok, connection, broker, options)
            }
            (Awaited::TuneOk, Method::ConnectionTuneOk(tune_ok)) => {
                self.handle_tune_ok(tune_ok, options)?;
                self.awaited = Awaited::Open;
                Ok(Next::Method)
            }
            (Awaited::Open, Method::ConnectionOpen(open)) => {
                let let_in = self.handle_open(open, broker)?;
                Ok(Next::Enter(Box::new(let_in)))
            }
            _ => Err(self.unexpected(method)),
        }
    }

    /// Sends `connection.open-ok`.
    pub(super) fn welcome(connection: &Arc<Connection>, version: Version) {
        peer::send(connection, version, &ConnectionOpenOk { known_hosts: "" });
    }

    fn handle_start_ok(
        &mut self,
        start_ok: &ConnectionStartOk<'_>,
        connection: &Arc<Connection>,
        broker: &Broker,
        options: &AmqpTransport,
    ) -> Result<Next, TurnedAway> {
        let waited = self.take_waited()?;
        let mechanism = self.read_about(start_ok, options)?;
        let response = mechanism.read(start_ok.response);
        let (name, password) = match response {
            Ok(Response::Password { name, password }) => (name, password),
            Ok(Response::External) | Err(_) => ("", start_ok.response),
        };
        let certified = self.certified_name.as_deref().unwrap_or_default();
        self.tried = Tried {
            user: if name.is_empty() { certified } else { name }.to_owned(),
            mechanism: mechanism.name(),
            ..Tried::default()
        };
        let logins = &broker.logins;
        let guess = logins.guess(connection, name, password);
        // A certificate is not a guess.
        let is_guess = !matches!(response, Ok(Response::External));
        if is_guess && !logins.may_look(guess) {
            self.waiting = logins.await_place(connection, waited);
            return match self.waiting {
                Some(_) => Ok(Next::Again),
                None => Err(self.crowded()),
            };
        }
        let response = response.map_err(|e| e.to_string());
        match response.and_then(|response| self.authenticate(response, connection, broker)) {
            Ok(user) => {
                if is_guess {
                    logins.note_right(guess);
                }
                self.client.about.user = Arc::clone(&user.name);
                self.client.about.mechanism = mechanism.name();
                self.client.user = Some(user);
                self.awaited = Awaited::TuneOk;
                peer::send(connection, self.client.version, &tune(options));
                Ok(Next::Method)
            }
            Err(why) => {
                logins.failed.fetch_add(1, Ordering::Relaxed);
                let away = self.login_refused(mechanism, &why);
                let delay = match is_guess {
                    true => logins.note_wrong(guess),
                    false => Duration::ZERO,
                };
                self.waiting = logins.answer_later(connection, delay, waited);
                if self.waiting.is_none() {
                    return Err(away);
                }
                self.away = Some(Box::new(away));
                Ok(Next::Again)
            }
        }
    }

    /// The wait that is over, if any; an error if it was that of a late refusal.
    fn take_waited(&mut self) -> Result<Option<For>, TurnedAway> {
        if let Some(away) = self.away.take() {
            return Err(*away);
        }
        match self.waiting.take() {
            Some(waiting) => match waiting.for_what {
                For::Place { .. } if !waiting.is_over() => {
                    let text = "closed before its login attempt was checked";
                    let code = ReplyCode::ConnectionForced;
                    Err(TurnedAway::of::<ConnectionStartOk<'_>>(code, text))
                }
                for_what => Ok(Some(for_what)),
            },
            None => Ok(None),
        }
    }

    /// Reads the client's properties and credentials.
    fn read_about(
        &mut self,
        start_ok: &ConnectionStartOk<'_>,
        options: &AmqpTransport,
    ) -> Result<Mechanism, TurnedAway> {
        let properties = start_ok.client_properties;
        self.client.capabilities = Capabilities::of(properties);
        // In 0-8, the number of this method is that of `connection.close`.
        self.client.capabilities.connection_blocked &= self.client.version != Version::V0_8;
        let text = |name| properties.find(name).and_then(Value::as_str);
        let words = [text("product"), text("version")];
        self.client.about.client = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
        self.client.about.name = text("connection_name").unwrap_or_default().to_owned();

        let name = start_ok.mechanism;
        let offered = mechanisms(options, self.certified_name.is_some());
        let mechanism = Mechanism::find(name).filter(|mechanism| offered.contains(mechanism));
        mechanism.ok_or_else(|| {
            let text = format!("unknown authentication mechanism '{name}'");
            TurnedAway::of::<ConnectionStartOk<'_>>(ReplyCode::CommandInvalid, &text)
                .because("no_method")
        })
    }

    fn authenticate(
        &self,
        response: Response<'_>,
        connection: &Connection,
        broker: &Broker,
    ) -> Result<Arc<User>, String> {
        let is_loopback = is_loopback(connection.peer());
        let users = broker.users.now();
        let user = match response {
            Response::Password { name, password } => {
                users.authenticate(name, password, is_loopback)
            }
            Response::External => {
                let name = self.certified_name.as_deref().unwrap_or_default();
                users.authenticate_external(name, is_loopback)
            }
        };
        user.map_err(|refused: Refused| refused.to_string())
    }

    fn handle_tune_ok(
        &mut self,
        tune_ok: &ConnectionTuneOk,
        options: &AmqpTransport,
    ) -> Result<(), TurnedAway> {
        let negotiated = |name: &str, value: u32, min: u32, max: u32| {
            let is_lower = value != 0 && value < min;
            let is_higher = value == 0 || value > max;
            let (how, bound, allowed) = match () {
                () if is_lower => ("lower", "minimum", min),
                () if is_higher => ("higher", "maximum", max),
                () => return Ok(()),
            };
            let text = format!(
                "negotiated {name} = {value} is {how} than the {bound} allowed value ({allowed})"
            );
            let away = TurnedAway::of::<ConnectionTuneOk>(ReplyCode::NotAllowed, &text);
            Err(away.because("negotiation"))
        };
        negotiated(
            "frame_max",
            tune_ok.frame_max,
            crosstie_amqp::frame::FRAME_MIN_BYTES,
            options.frame_bytes_max,
        )?;
        negotiated(
            "channel_max",
            tune_ok.channel_max.into(),
            CHANNELS_MIN.into(),
            options.channels_max.into(),
        )?;
        self.client.frame_bytes_max = tune_ok.frame_max;
        self.client.channels_max = tune_ok.channel_max;
        self.client.heartbeat_s = tune_ok.heartbeat;
        self.client.about.channels_max = tune_ok.channel_max;
        self.client.about.heartbeat_s = tune_ok.heartbeat;
        Ok(())
    }

    fn handle_open(
        &mut self,
        open: &ConnectionOpen<'_>,
        broker: &Broker,
    ) -> Result<LetIn, TurnedAway> {
        let name = open.virtual_host;
        name.clone_into(&mut self.tried.vhost);
        let refused = |text: String, cause| {
            let code = ReplyCode::NotAllowed;
            TurnedAway::of::<ConnectionOpen<'_>>(code, &text).because(cause)
        };
        let user = &self.client.about.user;
        if !broker.has_vhost(name) {
            return Err(refused(format!("vhost {name} not found"), "no_such_vhost"));
        }
        let vhost = Arc::from(name);
        let seat = broker.take_seat(user, &vhost);
        let seat = seat.map_err(|text| refused(text, "limit"))?;
        let users = broker.users.now();
        let Some(permissions) = users.permissions(user, name) else {
            let text = format!("access to vhost '{name}' refused for user '{user}'");
            return Err(refused(text, "vhost_not_allowed"));
        };
        let tags = self.client.user.as_ref().map(|user| &user.tags);
        let is_impersonator = |tags: &Vec<String>| tags.iter().any(|tag| tag == "impersonator");
        Ok(LetIn {
            vhost,
            seat,
            permissions: Arc::clone(permissions),
            is_impersonator: tags.is_some_and(is_impersonator),
            client: self.client.clone(),
        })
    }

    /// The client gets the same text for every wrong login, or none if it would not understand the close.
    fn login_refused(&self, mechanism: Mechanism, why: &str) -> TurnedAway {
        let name = mechanism.name();
        let text = format!(
            "Login was refused using authentication mechanism {name}. \
             For details see the broker logfile."
        );
        TurnedAway {
            // The method is not named, as in RabbitMQ.
            fault: Fault::in_method(ReplyCode::AccessRefused, (0, 0), text),
            why: format!("{name} login refused: {why}"),
            tried: Box::default(),
            cause: "login",
            is_silent: !self.client.capabilities.authentication_failure_close,
        }
    }

    /// Refuses an attempt because too many others, of its address or for its user, have failed. The client may retry at
    /// once. Clients take a 403 for a wrong password and for final, so that this is a different code.
    fn crowded(&self) -> TurnedAway {
        let text =
            "too many failed attempts to log in are waiting for their answers: try again later";
        TurnedAway {
            is_silent: !self.client.capabilities.authentication_failure_close,
            cause: "too_many_failures",
            ..TurnedAway::of::<ConnectionStartOk<'_>>(ReplyCode::ConnectionForced, text)
        }
    }

    fn unexpected(&self, method: &Method<'_>) -> TurnedAway {
        let expected = match self.awaited {
            Awaited::StartOk => "connection.start-ok",
            Awaited::TuneOk => "connection.tune-ok",
            Awaited::Open => "connection.open",
        };
        let text = format!("expected {expected}, got {}", method.name());
        TurnedAway::with(ReplyCode::CommandInvalid, method.ids(), &text)
    }
}

fn tune(options: &AmqpTransport) -> ConnectionTune {
    let heartbeat = options.heartbeat.map_or(0, |interval| interval.as_secs());
    ConnectionTune {
        channel_max: options.channels_max,
        frame_max: options.frame_bytes_max,
        heartbeat: u16::try_from(heartbeat).unwrap_or(u16::MAX),
    }
}

fn mechanisms(options: &AmqpTransport, is_certified: bool) -> Vec<Mechanism> {
    let mechanisms = options.mechanisms.iter();
    let offered = mechanisms.filter_map(|mechanism| match mechanism {
        AmqpMechanism::Plain => Some(Mechanism::Plain),
        AmqpMechanism::AmqPlain => Some(Mechanism::AmqPlain),
        AmqpMechanism::External => is_certified.then_some(Mechanism::External),
        _ => None,
    });
    offered.collect()
}

pub(super) fn is_loopback(peer: PeerAddress) -> bool {
    match peer {
        PeerAddress::Tcp(address) => match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        },
        PeerAddress::Unix(_) => true,
    }
}

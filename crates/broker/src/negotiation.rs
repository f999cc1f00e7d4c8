//! From `connection.start` to `connection.open` (section 2.2.4): authenticates the client, negotiates the parameters
//! and selects the vhost.

use std::sync::Arc;
use std::time::Duration;

use crosstie_amqp::method::{
    ConnectionOpen, ConnectionOpenOk, ConnectionStart, ConnectionStartOk, ConnectionTune,
    ConnectionTuneOk,
};
use crosstie_amqp::{Method, ReplyCode, Version};
use crosstie_auth::Permissions;
use crosstie_auth::sasl::{Mechanism, Response};
use crosstie_config::{AmqpMechanism, AmqpTransport};
use crosstie_queues::Fault;
use crosstie_transport::Connection;

use super::admission::not_allowed;
use super::backends::{HttpRights, LoggedIn, NotLoggedIn, Rights, Source};
use super::broker::Broker;
use super::certificate::certified_name;
use super::client::{CHANNELS_MIN, Capabilities, Client};
use super::judged::{Judged, authenticate};
use super::let_in::LetIn;
use super::logins::{For, Later, Logins, Waiting};
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
    /// The login, while another server is asked.
    login: Option<Later<Result<LoggedIn, NotLoggedIn>>>,
    /// The backend that has let the client in.
    source: Source,
    /// Whether the client may open the vhost, while another server is asked.
    opening: Option<(Arc<HttpRights>, Later<bool>)>,
}

/// The step after a method of a client that has not entered a vhost.
pub(super) enum Next {
    /// Wait for the next method.
    Method,
    /// Handle the same method again once reading resumes.
    Again,
    Enter(Box<LetIn>),
}

/// Permissions, and the rights that they follow if another backend decides.
type Opened = (Arc<Permissions>, Option<Rights>);

/// Why a vhost is not opened.
#[derive(Default)]
struct NotOpened {
    /// The end of the refusal's text.
    remark: String,
    /// The client has closed its side instead of waiting for the answer.
    is_gone: bool,
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
        let certified_name = certified_name(connection);
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
            login: None,
            source: Source::Internal,
            opening: None,
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
                self.handle_open(open, connection, broker)
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
        let account = Logins::account(connection, name);
        let guess = logins.guess(connection, &account, password);
        // A certificate is not a guess.
        let is_guess = !matches!(response, Ok(Response::External));
        let asked = self.take_asked()?;
        if asked.is_none() && is_guess && !logins.may_look(guess) {
            return self.await_place(connection, logins, waited);
        }
        let judged = match (asked, response) {
            (Some(answer), _) => Judged::Now(answer),
            (None, Ok(response)) => authenticate(response, self.certified(), connection, broker),
            (None, Err(e)) => Judged::Now(Err(NotLoggedIn::guess(e.to_string()))),
        };
        let outcome = match judged {
            Judged::Now(outcome) => outcome,
            Judged::Later(later) => {
                self.login = Some(later);
                return Ok(Next::Again);
            }
            Judged::Crowded => return self.await_place(connection, logins, waited),
        };
        match outcome {
            Ok(LoggedIn { user, source, .. }) => {
                if is_guess {
                    logins.note_right(guess);
                }
                self.source = source;
                self.client.about.user = Arc::clone(&user.name);
                self.client.about.mechanism = mechanism.name();
                self.client.user = Some(user);
                self.awaited = Awaited::TuneOk;
                peer::send(connection, self.client.version, &self.tune(broker, options));
                Ok(Next::Method)
            }
            Err(refused) => {
                let away = self.login_refused(mechanism, &refused.why);
                let delay = match is_guess {
                    true => logins.note_refused(guess, &refused),
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

    /// Makes an attempt wait for its turn, or refuses it.
    fn await_place(
        &mut self,
        connection: &Arc<Connection>,
        logins: &Logins,
        waited: Option<For>,
    ) -> Result<Next, TurnedAway> {
        self.waiting = logins.await_place(connection, waited);
        match self.waiting {
            Some(_) => Ok(Next::Again),
            None => Err(self.crowded()),
        }
    }

    /// The decision of the servers that were asked for the login, if any were.
    fn take_asked(&mut self) -> Result<Option<Result<LoggedIn, NotLoggedIn>>, TurnedAway> {
        match self.login.take().map(|later| later.take()) {
            None => Ok(None),
            Some(Some(decided)) => Ok(Some(decided)),
            Some(None) => Err(gone()),
        }
    }

    /// The wait that is over, if any; an error if it was that of a late refusal.
    fn take_waited(&mut self) -> Result<Option<For>, TurnedAway> {
        if let Some(away) = self.away.take() {
            return Err(*away);
        }
        match self.waiting.take() {
            Some(waiting) => match waiting.for_what {
                For::Place { .. } if !waiting.is_over() => Err(gone()),
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
        self.client.about.set_properties(properties);

        let name = start_ok.mechanism;
        let offered = mechanisms(options, self.certified_name.is_some());
        let mechanism = Mechanism::find(name).filter(|mechanism| offered.contains(mechanism));
        mechanism.ok_or_else(|| {
            let text = format!("unknown authentication mechanism '{name}'");
            TurnedAway::of::<ConnectionStartOk<'_>>(ReplyCode::CommandInvalid, &text)
                .because("no_method")
        })
    }

    fn certified(&self) -> Option<&str> {
        self.certified_name.as_deref()
    }

    /// Offers the bounds of the connection.
    fn tune(&mut self, broker: &Broker, options: &AmqpTransport) -> ConnectionTune {
        let heartbeat = options.heartbeat.map_or(0, |interval| interval.as_secs());
        self.client.channels_max = broker.shared.channels_max.of(options);
        ConnectionTune {
            channel_max: self.client.channels_max,
            frame_max: options.frame_bytes_max,
            heartbeat: u16::try_from(heartbeat).unwrap_or(u16::MAX),
        }
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
            self.client.channels_max.into(),
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
        connection: &Arc<Connection>,
        broker: &Broker,
    ) -> Result<Next, TurnedAway> {
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
        // Taken again once the backend has answered.
        let seat = broker.take_seat(user, &vhost);
        let seat = seat.map_err(|text| refused(text, "limit"))?;
        let opened = self.permissions(name, connection, broker);
        let opened = opened.map_err(|NotOpened { remark, is_gone }| {
            let text = not_allowed(&self.client.about.user, name) + &remark;
            match is_gone {
                true => gone(),
                false => refused(text, "vhost_not_allowed"),
            }
        });
        let Some((permissions, rights)) = opened? else {
            return Ok(Next::Again);
        };
        let tags = self.client.user.as_ref().map(|user| &user.tags);
        let is_impersonator = |tags: &Vec<String>| tags.iter().any(|tag| tag == "impersonator");
        Ok(Next::Enter(Box::new(LetIn {
            vhost,
            seat,
            permissions,
            rights,
            is_impersonator: tags.is_some_and(is_impersonator),
            client: self.client.clone(),
        })))
    }

    /// The client's permissions in a vhost, and the rights that they follow; `None` while a server is asked.
    fn permissions(
        &mut self,
        vhost: &str,
        connection: &Arc<Connection>,
        broker: &Broker,
    ) -> Result<Option<Opened>, NotOpened> {
        if let Some((rights, later)) = self.opening.take() {
            let rights = Rights::Http(rights);
            return match later.take() {
                Some(true) => Ok(Some((rights.permissions(), Some(rights)))),
                Some(false) => Err(NotOpened::default()),
                None => Err(NotOpened {
                    is_gone: true,
                    ..NotOpened::default()
                }),
            };
        }
        let logged_in = self.client.user.as_ref();
        let rights = logged_in.and_then(|user| self.source.rights(user, vhost, connection));
        match rights {
            None => {
                let own = broker.permissions_to_open(&self.client.about.user, vhost);
                Ok(Some((own.ok_or_else(NotOpened::default)?, None)))
            }
            Some(Rights::Http(rights)) => {
                let asked = Arc::clone(&rights);
                let asked = async move { asked.may_open().await };
                let later = broker.logins.later(connection, asked);
                self.opening = Some((rights, later));
                Ok(None)
            }
            Some(Rights::Token(rights)) => {
                let opened = rights.may_open();
                opened.map_err(|remark| NotOpened {
                    remark,
                    is_gone: false,
                })?;
                let rights = Rights::Token(rights);
                Ok(Some((rights.permissions(), Some(rights))))
            }
        }
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

/// The refusal of a client that has closed its side while it waited. It reads none.
fn gone() -> TurnedAway {
    let text = "closed before its login attempt was checked";
    TurnedAway::of::<ConnectionStartOk<'_>>(ReplyCode::ConnectionForced, text)
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

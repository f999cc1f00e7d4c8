//! CONNECT: the client's login in the realm, its will, and its session in the space.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_mqtt::{Auth, ConnAck, Connect, Packet, PropertiesBuf, Property, ReasonCode, Version};
use crosstie_realms::session_limits::bounds;
use crosstie_topics::{self as topics, Connected, Content};
use crosstie_wamp::PublishOptions;

use crate::client::Client;
use crate::conversation::{Conversation, End, State};
use crate::ground::Ground;
use crate::names;
use crate::open::{self, Open};
use crate::scram::{self, Exchange, First, METHOD};
use crate::space::{Owner, RECEIVE_MAX};
use crate::talk::{LoggedIn, Proving, Said, Talk};

/// A client that has sent CONNECT.
pub(crate) struct LoggingIn {
    pub(crate) talk: Talk,
    stage: Stage,
    enhanced: Option<Box<Enhanced>>,
}

/// An enhanced authentication.
struct Enhanced {
    exchange: Exchange,
    /// Length of the AUTH behind CONNECT that is handled.
    auth_bytes: usize,
}

impl LoggingIn {
    pub(crate) fn awaits_auth(&self) -> bool {
        let enhanced = self.enhanced.as_ref();
        enhanced.is_some_and(|enhanced| enhanced.exchange.is_asked())
    }

    pub(crate) fn auth_bytes(&self) -> usize {
        self.enhanced.as_ref().map_or(0, |one| one.auth_bytes)
    }

    fn verifier(&self) -> Option<String> {
        let enhanced = self.enhanced.as_ref()?;
        enhanced.exchange.verifier().map(str::to_owned)
    }

    fn proving<'a>(&'a mut self, connect: &'a Connect<'_>) -> (&'a mut Talk, Proving<'a>) {
        let proving = match &mut self.enhanced {
            Some(enhanced) => Proving::Exchange(&mut enhanced.exchange),
            None => Proving::Password(connect.password),
        };
        (&mut self.talk, proving)
    }
}

enum Stage {
    /// The realm decides on the client.
    Login,
    /// The realm decides on the will.
    Will { owner: Owner },
}

/// Maximum length of a client identifier, in bytes.
const CLIENT_ID_BYTES_MAX: usize = 1_024;

impl Conversation<Ground> {
    /// Logs a client in, or continues to. Returns whether it is in.
    pub(crate) fn log_in(&mut self, connect: &Connect<'_>, now: Instant) -> Result<bool, End> {
        let State::LoggingIn(mut login) = std::mem::replace(&mut self.state, State::Over) else {
            check(connect)?;
            let first = first(connect, &self.ground)?;
            return self.begin(connect, first.as_ref(), now);
        };
        let stage = std::mem::replace(&mut login.stage, Stage::Login);
        match stage {
            Stage::Login => {
                let (talk, proving) = login.proving(connect);
                let logged_in = talk.go_on_logging_in(proving);
                self.logged_in(login, logged_in, connect, now)
            }
            Stage::Will { owner } => {
                let said = login.talk.go_on();
                self.will_judged(login, said, owner, connect)
            }
        }
    }

    /// Handles AUTH behind CONNECT, of so many bytes.
    pub(crate) fn authenticate(
        &mut self,
        connect: &Connect<'_>,
        (auth, bytes): (&Auth<'_>, usize),
        now: Instant,
    ) -> Result<bool, End> {
        let State::LoggingIn(mut login) = std::mem::replace(&mut self.state, State::Over) else {
            return Err(End::Begun);
        };
        let mut logged_in = LoggedIn::Refused(ReasonCode::NotAuthorized);
        if let Some(enhanced) = &mut login.enhanced {
            enhanced.auth_bytes = bytes;
            let data = auth.properties.authentication_data().unwrap_or_default();
            let proof = enhanced.exchange.prove(data);
            if let Some(proof) = proof.filter(|_| scram::is_method(auth.properties)) {
                logged_in = login.talk.prove(proof, &mut enhanced.exchange);
            }
        }
        self.logged_in(login, logged_in, connect, now)
    }

    fn begin(
        &mut self,
        connect: &Connect<'_>,
        first: Option<&First>,
        now: Instant,
    ) -> Result<bool, End> {
        let ground = Arc::clone(&self.ground);
        ground.space.use_mapping(&ground.endpoint);
        if ground.entrance.is_stopping() || ground.space.is_over() {
            return Err(End::Silent);
        }
        let client = Client::new(
            &self.connection,
            &ground.entrance.realms.bounds.limits,
            (connect.version, self.is_framed()),
            Arc::clone(&ground.space) as _,
        );
        let said = (connect, first);
        let (talk, flow) = Talk::begin(&ground.entrance, &ground.endpoint, client, said);
        let enhanced = first.map(|first| Enhanced {
            exchange: first.exchange(),
            auth_bytes: 0,
        });
        let mut login = Box::new(LoggingIn {
            talk,
            stage: Stage::Login,
            enhanced: enhanced.map(Box::new),
        });
        let (talk, proving) = login.proving(connect);
        let logged_in = talk.log_in(flow, proving);
        self.logged_in(login, logged_in, connect, now)
    }

    fn logged_in(
        &mut self,
        mut login: Box<LoggingIn>,
        logged_in: LoggedIn,
        connect: &Connect<'_>,
        now: Instant,
    ) -> Result<bool, End> {
        let mut refused = |login: Box<LoggingIn>, end| {
            self.state = State::LoggingIn(login);
            Err(end)
        };
        match logged_in {
            LoggedIn::Waits => {
                self.state = State::LoggingIn(login);
                Ok(false)
            }
            LoggedIn::Challenged(data) => {
                let sent = scram::send_auth(
                    &login.talk.client,
                    ReasonCode::ContinueAuthentication,
                    &data,
                    client_bytes_max(connect),
                );
                self.state = State::LoggingIn(login);
                sent.map(|()| false)
            }
            LoggedIn::Refused(reason) => refused(login, End::Reason(reason)),
            LoggedIn::TurnedBack => refused(login, End::Silent),
            // The topics are those of the listener's realm.
            LoggedIn::As(_, realm) if realm != self.ground.endpoint.options.realm() => {
                self.state = State::LoggingIn(login);
                Err(End::Reason(ReasonCode::NotAuthorized))
            }
            LoggedIn::As(owner, _) => {
                let said = match connect.will {
                    None => Said::Allowed,
                    Some(will) => match names::nearest_uri(will.topic) {
                        uri if names::is_own_uri(&uri) => Said::Refused(ReasonCode::NotAuthorized),
                        uri => {
                            let at = (now, will.payload.len());
                            let options = PublishOptions::default();
                            login.talk.may_publish(at, &uri, options)
                        }
                    },
                };
                self.will_judged(login, said, owner, connect)
            }
        }
    }

    fn will_judged(
        &mut self,
        mut login: Box<LoggingIn>,
        said: Said,
        owner: Owner,
        connect: &Connect<'_>,
    ) -> Result<bool, End> {
        let refusal = match said {
            Said::Allowed => None,
            Said::Waits => {
                login.stage = Stage::Will { owner };
                self.state = State::LoggingIn(login);
                return Ok(false);
            }
            Said::Refused(ReasonCode::TopicNameInvalid) => {
                Some(End::Reason(ReasonCode::TopicNameInvalid))
            }
            Said::Refused(_) => Some(End::Reason(ReasonCode::NotAuthorized)),
            Said::Over => Some(End::Silent),
        };
        if let Some(end) = refusal {
            self.state = State::LoggingIn(login);
            return Err(end);
        }
        self.enter(login, &owner, connect)
    }

    /// Opens the session in the space, which sends CONNACK when the session is stored.
    fn enter(
        &mut self,
        login: Box<LoggingIn>,
        owner: &Owner,
        connect: &Connect<'_>,
    ) -> Result<bool, End> {
        let ground = Arc::clone(&self.ground);
        let options = &ground.endpoint.options;
        let asked = Duration::from_secs(connect.keep_alive.into());
        let ordered = options
            .keep_alive_max
            .filter(|max| connect.version.is_v5() && (asked.is_zero() || asked > *max));
        let client = Arc::clone(&login.talk.client);
        let limits = login.talk.limits();
        client.bound(bounds(limits));
        let packet_bytes_max = limits.message_bytes_max.unwrap_or(usize::MAX);
        let packet_bytes_max = packet_bytes_max.min(options.packet_bytes_max);
        let packet_bytes_max = u32::try_from(packet_bytes_max).unwrap_or(u32::MAX);
        let answer = Answer {
            keep_alive: ordered,
            packet_bytes_max,
            version: connect.version,
            verifier: login.verifier(),
        };
        if let Err(end) = answer.check_fits(connect) {
            self.state = State::LoggingIn(login);
            return Err(end);
        }
        let enhanced = login.enhanced.as_ref();
        let enhanced = enhanced.map(|_| open::Enhanced::new(client_bytes_max(connect)));
        let keep_alive = ordered.unwrap_or(asked);
        let within = (!keep_alive.is_zero()).then(|| keep_alive * 3 / 2);
        let (watch, key) = (Arc::clone(&ground.entrance.listening.watch), self.watch);
        let begin = move || watch.opened_with_keep_alive(key, within);
        let acknowledge = |connected: &Connected| answer.prepare(&client, connected, begin);
        let mut connecting = connecting(connect);
        connecting.topic_alias_max = match client.drops_oldest() {
            // It might be a message that tells an alias.
            true => 0,
            false => connecting.topic_alias_max.min(options.topic_aliases_max),
        };
        let client = (&client, limits.subscriptions_max);
        let key = ground
            .space
            .connect(owner, &connecting, client, acknowledge);
        let key = match key {
            Ok(key) => key,
            // The space begins anew: the client comes back to that.
            Err(ReasonCode::ServerShuttingDown) => {
                self.state = State::LoggingIn(login);
                return Err(End::Silent);
            }
            Err(reason) => {
                self.state = State::LoggingIn(login);
                return Err(End::Reason(reason));
            }
        };
        let open = Open::new(
            login.talk,
            key,
            packet_bytes_max,
            (connect.is_bridge, enhanced),
        );
        self.state = State::Open(Box::new(open));
        // A stop meanwhile has not found this client in the space.
        match ground.entrance.is_stopping() {
            true => Err(End::Silent),
            false => Ok(true),
        }
    }
}

/// Checks the parts that no realm and no vhost decides.
pub fn check(connect: &Connect<'_>) -> Result<(), End> {
    let is_needed =
        !connect.version.is_v5() && !connect.clean_start || connect.version == Version::V31;
    if connect.client_id.is_empty() && is_needed || connect.client_id.len() > CLIENT_ID_BYTES_MAX {
        return Err(End::Reason(ReasonCode::ClientIdentifierNotValid));
    }
    let password = connect.password.filter(|_| connect.user_name.is_some());
    if password.is_some_and(|password| std::str::from_utf8(password).is_err()) {
        return Err(End::Reason(ReasonCode::BadUserNameOrPassword));
    }
    Ok(())
}

/// The first message of an enhanced authentication, if CONNECT has one.
fn first(connect: &Connect<'_>, ground: &Ground) -> Result<Option<First>, End> {
    let properties = connect.properties;
    match (
        properties.authentication_method(),
        properties.authentication_data(),
    ) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(End::Reason(ReasonCode::ProtocolError)),
        (Some(METHOD), data) if ground.endpoint.auth.now().scram.is_some() => {
            let first = First::parse(data.unwrap_or_default());
            let first = first.ok_or(End::Reason(ReasonCode::NotAuthorized))?;
            Ok(Some(first))
        }
        (Some(_), _) => Err(End::Reason(ReasonCode::BadAuthenticationMethod)),
    }
}

/// Maximum packet size of the client.
fn client_bytes_max(connect: &Connect<'_>) -> u32 {
    let asked = connect.properties.maximum_packet_size();
    asked.unwrap_or(u32::MAX)
}

/// CONNECT for the space.
fn connecting<'a>(connect: &Connect<'a>) -> topics::Connect<'a> {
    let properties = connect.properties;
    topics::Connect {
        version: connect.version,
        client_id: connect.client_id,
        is_clean: connect.clean_start,
        session_expiry_s: properties.session_expiry().unwrap_or(0),
        receive_max: properties.receive_maximum().unwrap_or(u16::MAX),
        packet_bytes_max: client_bytes_max(connect),
        topic_alias_max: properties.topic_alias_maximum().unwrap_or(0),
        will: connect.will.map(|will| topics::Will {
            content: Content {
                topic: will.topic,
                qos: will.qos,
                retain: will.retain,
                expiry_s: will.properties.message_expiry(),
                properties: will.properties,
                payload: will.payload,
            },
            delay_s: will.properties.will_delay().unwrap_or(0),
        }),
    }
}

/// The contents of CONNACK.
struct Answer {
    keep_alive: Option<Duration>,
    packet_bytes_max: u32,
    version: Version,
    /// The last message of an enhanced authentication.
    verifier: Option<String>,
}

impl Answer {
    /// Checks that a CONNACK with a verifier is not longer than the client's maximum, before the client has a session.
    fn check_fits(&self, connect: &Connect<'_>) -> Result<(), End> {
        if self.verifier.is_none() {
            return Ok(());
        }
        let assigned = "x".repeat(topics::ASSIGNED_ID_BYTES);
        let assigned = connect.client_id.is_empty().then_some(&*assigned);
        let properties = self.properties(Some(0), assigned);
        let packet = Packet::ConnAck(ConnAck {
            session_present: false,
            reason: ReasonCode::Success,
            properties: properties.as_properties(),
        });
        scram::check_fits(&packet, client_bytes_max(connect))
    }

    fn prepare(
        &self,
        client: &Client,
        connected: &Connected,
        begin: impl FnOnce() + Send + 'static,
    ) {
        let properties = match self.version.is_v5() {
            true => {
                let assigned = connected.is_assigned.then_some(&*connected.client_id);
                self.properties(connected.session_expiry_s, assigned)
            }
            false => PropertiesBuf::new(),
        };
        let connack = ConnAck {
            session_present: connected.is_present,
            reason: ReasonCode::Success,
            properties: properties.as_properties(),
        };
        client.keep_connack(connack, begin);
    }

    fn properties(&self, session_expiry_s: Option<u32>, assigned: Option<&str>) -> PropertiesBuf {
        let mut properties = PropertiesBuf::new();
        if let Some(seconds) = session_expiry_s {
            properties.push(Property::SessionExpiry(seconds));
        }
        properties.push(Property::ReceiveMaximum(RECEIVE_MAX));
        properties.push(Property::MaximumPacketSize(self.packet_bytes_max));
        if let Some(id) = assigned {
            properties.push(Property::AssignedClientId(id));
        }
        properties.push(Property::TopicAliasMaximum(
            topics::SpaceLimits::default().topic_alias_max,
        ));
        properties.push(Property::WildcardSubscriptionAvailable(true));
        properties.push(Property::SubscriptionIdsAvailable(true));
        properties.push(Property::SharedSubscriptionAvailable(true));
        if let Some(verifier) = &self.verifier {
            properties.push(Property::AuthenticationMethod(METHOD));
            properties.push(Property::AuthenticationData(verifier.as_bytes()));
        }
        if let Some(keep_alive) = self.keep_alive {
            let seconds = u16::try_from(keep_alive.as_secs()).unwrap_or(u16::MAX);
            properties.push(Property::ServerKeepAlive(seconds));
        }
        properties
    }
}

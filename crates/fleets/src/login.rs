//! CONNECT: the client's login, its vhost, and its session there.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crosstie_amqp::{TableBuf, Value};
use crosstie_broker::certified_name;
use crosstie_broker::guest::{
    Admission, Admitted, Answered, Described, Guest, NotAdmitted, Proof, admit, mailbox_limits,
};
use crosstie_front::end_reason::EndReason;
use crosstie_front::report::{self, Refused};
use crosstie_mqtt::{ConnAck, Connect, Packet, PropertiesBuf, Property, QoS, ReasonCode, Version};
use crosstie_spaces::{Conversation, End, State, check_connect};

use crate::deliveries::now_s;
use crate::fleet::OfAnother;
use crate::ground::Ground;
use crate::inbound::reason;
use crate::member::{Inner, Member};
use crate::names;
use crate::open::Open;
use crate::properties;
use crate::session::{ALIASES_MAX, RECEIVE_MAX, Session, Will};
use crate::subscribing::{delete_queues, open_queue};
use crate::will;

/// A client that has sent CONNECT.
pub(crate) struct LoggingIn {
    member: Arc<Member>,
    admission: Admission,
    /// The name and the vhost, for the log.
    tried: (String, String),
}

/// Maximum session expiry, in seconds: queues expire by a number of milliseconds of 32 bits.
const EXPIRY_S_MAX: u32 = u32::MAX / 1_000;

impl LoggingIn {
    pub(crate) fn is_due(&self) -> bool {
        self.member.mailbox.is_reading_paused()
    }

    pub(crate) fn abandon(self) {
        self.member.note_over();
        self.member.mailbox.close();
    }
}

/// Logs a client in, or continues to. Returns whether it is in.
pub(crate) fn log_in(
    conversation: &mut Conversation<Ground>,
    connect: &Connect<'_>,
) -> Result<bool, End> {
    let State::LoggingIn(login) = std::mem::replace(&mut conversation.state, State::Over) else {
        return begin(conversation, connect);
    };
    match login.admission.take() {
        Some(Ok(admitted)) => enter(conversation, &login, admitted, connect),
        Some(Err(refused)) => {
            let end = refusal(&login, &refused);
            conversation.state = State::LoggingIn(login);
            Err(end)
        }
        None => {
            conversation.state = State::LoggingIn(login);
            Err(End::Silent)
        }
    }
}

fn begin(conversation: &mut Conversation<Ground>, connect: &Connect<'_>) -> Result<bool, End> {
    check_connect(connect)?;
    check(connect)?;
    let ground = Arc::clone(&conversation.ground);
    if ground.entrance.is_stopping() {
        return Err(End::Silent);
    }
    let Some(broker) = ground.fleets.broker() else {
        // AMQP is stopped.
        return Err(End::Silent);
    };
    let options = ground.options();
    let own_vhost = options.vhost.as_deref().unwrap_or_default();
    let certified = match options.certificate_login {
        true => certified_name(&conversation.connection),
        false => None,
    };
    // The names for a client that sends none.
    let given = certified.as_deref().or(options.anonymous_user.as_deref());
    let (vhost, name, proof) = match (connect.user_name, connect.password, given) {
        (Some(user_name), Some(password), _) => {
            // As in RabbitMQ, the last colon ends the vhost.
            let (vhost, name) = user_name.rsplit_once(':').unwrap_or((own_vhost, user_name));
            (vhost, name, Proof::Password(password.to_vec()))
        }
        (None, None, Some(name)) => (own_vhost, name, Proof::Given),
        _ => return Err(End::Reason(ReasonCode::BadUserNameOrPassword)),
    };
    let form = (connect.version, conversation.is_framed());
    let member = Member::new(&conversation.connection, mailbox_limits(&broker), form);
    let (vhost, name) = (vhost.to_owned(), name.to_owned());
    let tried = (name.clone(), vhost.clone());
    let admission = admit(&broker, &member.mailbox, vhost, name, proof);
    conversation.state = State::LoggingIn(Box::new(LoggingIn {
        member,
        admission,
        tried,
    }));
    Ok(false)
}

/// Checks what a vhost cannot do.
fn check(connect: &Connect<'_>) -> Result<(), End> {
    if connect.properties.authentication_method().is_some() {
        return Err(End::Reason(ReasonCode::BadAuthenticationMethod));
    }
    if connect.is_bridge {
        // Such a bridge comes back as an ordinary client.
        return Err(End::Reason(ReasonCode::UnsupportedProtocolVersion));
    }
    if !names::is_fit(connect.client_id) {
        return Err(End::Reason(ReasonCode::ClientIdentifierNotValid));
    }
    if connect
        .will
        .is_some_and(|will| names::key(will.topic).is_none())
    {
        return Err(End::Reason(ReasonCode::TopicNameInvalid));
    }
    Ok(())
}

fn refusal(login: &LoggingIn, refused: &NotAdmitted) -> End {
    let (end, cause, text) = match refused {
        NotAdmitted::Login(text) => (
            End::Reason(ReasonCode::BadUserNameOrPassword),
            "login",
            text,
        ),
        NotAdmitted::LoopbackOnly(text) => (End::Reason(ReasonCode::NotAuthorized), "login", text),
        NotAdmitted::Forbidden(text) => (
            End::Reason(ReasonCode::NotAuthorized),
            "vhost_not_allowed",
            text,
        ),
        NotAdmitted::Limit(text) => (End::Reason(ReasonCode::QuotaExceeded), "limit", text),
        NotAdmitted::Elsewhere(text) => (End::Silent, "no_owner", text),
        NotAdmitted::Starting(text) => (End::Silent, "starting", text),
    };
    say_refused(login, cause, text);
    end
}

fn of_another(login: &LoggingIn) -> End {
    let text = "a client of another user is connected with its identifier";
    say_refused(login, "client_id", text);
    End::Reason(ReasonCode::ClientIdentifierNotValid)
}

fn say_refused(login: &LoggingIn, cause: &str, text: &str) {
    let (who, place) = &login.tried;
    let refused = Refused {
        cause,
        who,
        place,
        ..Refused::new("", text)
    };
    report::connection_refused(&login.member.connection, &refused);
}

/// Takes the client into its vhost, and sends CONNACK.
fn enter(
    conversation: &mut Conversation<Ground>,
    login: &LoggingIn,
    admitted: Admitted,
    connect: &Connect<'_>,
) -> Result<bool, End> {
    let ground = Arc::clone(&conversation.ground);
    let member = Arc::clone(&login.member);
    let fleet = ground.fleets.fleet(admitted.vhost());
    let client_id = match connect.client_id {
        "" => assigned_id()?,
        id => id.to_owned(),
    };
    let former = fleet.put(&client_id, admitted.user_name(), &member);
    if let Some(former) = former.map_err(|OfAnother| of_another(login))? {
        former.give_way();
    }
    let mut inner = member.lock();
    let prefetch = fill(&mut inner.session, &ground, connect, &client_id);
    let is_present = join(
        conversation,
        login,
        admitted,
        connect,
        (&mut inner, prefetch),
    );
    let is_present = match is_present {
        Ok(is_present) if !member.is_over() => is_present,
        // If it succeeded, another connection has its identifier by now.
        failed => {
            let end = failed.err().unwrap_or(End::Begun);
            fleet.remove(&client_id, &member);
            member.note_over();
            let guest = inner.guest.take();
            drop(inner);
            if let Some(guest) = guest {
                guest.leave(EndReason::Closed, false);
            }
            return Err(end);
        }
    };
    let asked = Duration::from_secs(connect.keep_alive.into());
    let keep_alive_max = ground.options().keep_alive_max;
    let ordered =
        keep_alive_max.filter(|max| connect.version.is_v5() && (asked.is_zero() || asked > *max));
    let mut properties = PropertiesBuf::new();
    if connect.version.is_v5() {
        let is_assigned = connect.client_id.is_empty();
        let assigned = is_assigned.then_some(client_id.as_str());
        properties = answer(&ground, connect, inner.session.expiry_s, assigned, ordered);
    }
    member.send(&Packet::ConnAck(ConnAck {
        session_present: is_present,
        reason: ReasonCode::Success,
        properties: properties.as_properties(),
    }));
    drop(inner);
    let keep_alive = ordered.unwrap_or(asked);
    let within = (!keep_alive.is_zero()).then(|| keep_alive * 3 / 2);
    let watch = &ground.entrance.listening.watch;
    watch.opened_with_keep_alive(conversation.watch, within);
    conversation.state = State::Open(Box::new(Open::new(member, fleet)));
    // A stop meanwhile has not found this client in its vhost.
    match ground.entrance.is_stopping() {
        true => Err(End::Silent),
        false => Ok(true),
    }
}

/// Fills the session with what CONNECT says. Returns the prefetch of its consumers.
fn fill(session: &mut Session, ground: &Ground, connect: &Connect<'_>, client_id: &str) -> u16 {
    let receive_max = connect.properties.receive_maximum().unwrap_or(u16::MAX);
    let prefetch = ground.options().prefetch.min(receive_max);
    client_id.clone_into(&mut session.client_id);
    session.expiry_s = expiry_s(ground, connect);
    session.packet_bytes_max = connect.properties.maximum_packet_size().unwrap_or(u32::MAX);
    session.retained_flights_max = usize::from(receive_max - prefetch);
    session.will = connect.will.and_then(|will| {
        Some(Will {
            key: names::key(will.topic)?,
            retain: will.retain,
            properties: properties::to_amqp(will.qos, false, will.properties, now_s()),
            body: will.payload.to_vec(),
            delay_s: will.properties.will_delay().unwrap_or(0),
        })
    });
    prefetch
}

/// Makes the client a guest of its vhost, and its session what CONNECT asks for. Returns whether that was present.
fn join(
    conversation: &Conversation<Ground>,
    login: &LoggingIn,
    admitted: Admitted,
    connect: &Connect<'_>,
    (inner, prefetch): (&mut Inner, u16),
) -> Result<bool, End> {
    let ground = &conversation.ground;
    let member = &login.member;
    let session: &mut Session = &mut inner.session;
    let properties = TableBuf::new()
        .with("product", Value::LongString(b"MQTT client"))
        .with("client_id", Value::LongString(session.client_id.as_bytes()));
    let described = Described {
        mailbox: &member.mailbox,
        transport: ground.entrance.listening.number,
        watch: conversation.watch,
        protocol: protocol(connect.version),
        properties: properties.as_table(),
        keep_alive: connect.keep_alive,
        prefetch,
    };
    let Some(broker) = ground.fleets.broker() else {
        return Err(End::Silent);
    };
    let guest = Guest::enter(&broker, admitted, &described).map_err(|text| {
        say_refused(login, "limit", &text);
        End::Reason(ReasonCode::QuotaExceeded)
    })?;
    let guest = inner.guest.insert(guest);
    let queue = names::queue(&session.client_id, QoS::AtLeastOnce);
    let is_present = !connect.clean_start && guest.has_queue(&queue);
    match will::cancel(guest, &session.client_id) {
        // Without the right to that queue the client has none.
        Answered::Done | Answered::Refused(_) => {}
        // As below.
        Answered::Waits | Answered::Over => return Err(End::Silent),
    }
    let answered = match (connect.clean_start, is_present) {
        (true, _) => delete_queues(guest, &session.client_id),
        (false, true) => open_queue(guest, session, QoS::AtLeastOnce),
        (false, false) => Answered::Done,
    };
    match answered {
        Answered::Done => Ok(is_present),
        Answered::Refused(fault) => {
            say_refused(login, "permission", &fault.text);
            Err(End::Reason(reason(&fault)))
        }
        // The backend's answer is not there yet: the client comes back, and the answer is known.
        Answered::Waits | Answered::Over => Err(End::Silent),
    }
}

/// Seconds for which the session is kept.
fn expiry_s(ground: &Ground, connect: &Connect<'_>) -> u32 {
    let bounds = &ground.fleets.bounds;
    match connect.version.is_v5() {
        true => {
            let asked = connect.properties.session_expiry().unwrap_or(0);
            asked.min(bounds.expiry_s_max).min(EXPIRY_S_MAX)
        }
        false if connect.clean_start => 0,
        false => bounds.expiry_3_s.min(EXPIRY_S_MAX),
    }
}

/// The properties of CONNACK.
fn answer(
    ground: &Ground,
    connect: &Connect<'_>,
    expiry_s: u32,
    assigned: Option<&str>,
    keep_alive: Option<Duration>,
) -> PropertiesBuf {
    let mut properties = PropertiesBuf::new();
    if connect.properties.session_expiry().unwrap_or(0) != expiry_s {
        properties.push(Property::SessionExpiry(expiry_s));
    }
    properties.push(Property::ReceiveMaximum(RECEIVE_MAX));
    properties.push(Property::MaximumQoS(QoS::AtLeastOnce));
    let bytes_max = u32::try_from(ground.options().packet_bytes_max).unwrap_or(u32::MAX);
    properties.push(Property::MaximumPacketSize(bytes_max));
    if let Some(id) = assigned {
        properties.push(Property::AssignedClientId(id));
    }
    properties.push(Property::TopicAliasMaximum(ALIASES_MAX));
    properties.push(Property::SubscriptionIdsAvailable(false));
    properties.push(Property::SharedSubscriptionAvailable(false));
    if let Some(keep_alive) = keep_alive {
        let seconds = u16::try_from(keep_alive.as_secs()).unwrap_or(u16::MAX);
        properties.push(Property::ServerKeepAlive(seconds));
    }
    properties
}

/// RabbitMQ's names.
fn protocol(version: Version) -> &'static str {
    match version {
        Version::V31 => "MQTT 3.1.0",
        Version::V311 => "MQTT 3.1.1",
        Version::V5 => "MQTT 5.0",
    }
}

fn assigned_id() -> Result<String, End> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| End::Silent)?;
    let mut id = "auto-".to_owned();
    for octet in random {
        let _ = write!(id, "{octet:02x}");
    }
    Ok(id)
}

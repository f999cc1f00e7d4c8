//! A connection of the router itself: enters its vhost as a user that needs no password, or has logged in elsewhere.
//!
//! To the vhost it is like any other connection. Its bytes pass through a socket, so that bounds, flow control and an
//! operator's `close` apply. Only the handshake is absent, as no client needs to be authenticated.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crosstie_amqp::Version;
use crosstie_amqp::frame::{self, Decoded, Frame, HEARTBEAT};
use crosstie_amqp::method::{ConnectionClose, ConnectionCloseOk};
use crosstie_auth::{Permissions, User, Users};
use crosstie_config::AmqpTransport;
use crosstie_front::cause::Facts;
use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_front::watch::WatchKey;
use crosstie_queues::Fault;
use crosstie_transport::{
    Connection, ConnectionLimits, Outcome, PeerAddress, Protocol, Socket, pump,
};
use tokio::runtime::Handle;

use super::backends::Rights;
pub use super::backends::VhostRights;
use super::broker::Broker;
use super::client::{About, Properties};
use super::handled::{End, Handled};
use super::open::{Entered, Open};
use super::peer;

/// The user and the vhost of a connection of the router itself.
pub struct Residence<'r> {
    pub user: Whose<'r>,
    pub vhost: &'r str,
    /// The connection name for operators.
    pub name: String,
}

/// The user of a connection of the router itself.
pub enum Whose<'r> {
    /// One of the broker's own, by name.
    Own(&'r str),
    /// One that another backend has let in, with its rights in the vhost.
    Other(Arc<User>, Option<VhostRights>),
    /// The node's operator, who has every right.
    Operator(Arc<User>),
}

/// Maximum frame size; a larger message has several frames.
pub const FRAME_BYTES_MAX: u32 = 128 * 1024;

/// No transport has this number.
pub(super) const TRANSPORT: u32 = 0;

/// The client's time to answer `connection.close`.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(2);

/// The broker's end.
struct Resident {
    /// `None` after it has left.
    open: Option<Open>,
    connection: Arc<Connection>,
    broker: Arc<Broker>,
    watch: WatchKey,
}

/// Reads what the broker sends to the client's end: passes each whole frame to `handle`, until that returns `false`.
pub fn read_frames(input: &[u8], mut handle: impl FnMut(&Frame<'_>) -> bool) -> Outcome {
    let mut consumed = 0;
    loop {
        match frame::decode(&input[consumed..], 0) {
            Ok(Decoded::Frame {
                frame,
                consumed: frame_bytes,
            }) => {
                consumed += frame_bytes;
                if !handle(&frame) {
                    return Outcome::Close;
                }
            }
            Ok(Decoded::Incomplete { wanted }) => return Outcome::Continue { consumed, wanted },
            // Only this router writes there.
            Err(_) => return Outcome::Close,
        }
    }
}

/// Enters a vhost with a connection served by `runtime`. Returns the client's end.
pub fn let_in(
    broker: &Arc<Broker>,
    residence: Residence<'_>,
    runtime: &Handle,
) -> Result<Arc<Connection>, String> {
    let Residence { user, vhost, name } = residence;
    let users = broker.users.now();
    let is_operator = matches!(user, Whose::Operator(_));
    let (found, rights) = known(&users, user)?;
    let user = &*found.name;
    if !broker.has_vhost(vhost) {
        return Err(format!("there is no vhost '{vhost}'"));
    }
    let shared = broker
        .vhost(vhost)
        .map_err(|ownership| ownership.refusal(vhost))?;
    let permissions = match &rights {
        None if is_operator => Some(Arc::new(Permissions::all())),
        None => users.permissions(user, vhost).map(Arc::clone),
        Some(rights) => rights.as_ref().map(Rights::permissions),
    };
    let permissions = permissions
        .ok_or_else(|| format!("access to vhost '{vhost}' refused for user '{user}'"))?;
    let limits = Arc::new(limits(&broker.home.bounds.limits, broker));
    let (own, other) = ends().map_err(|e| e.to_string())?;
    let open = |socket| Arc::new(Connection::new(socket, None, Arc::clone(&limits)));
    let (connection, client) = (open(own), open(other));
    let about = About {
        user: Arc::clone(&found.name),
        name,
        properties: Properties::of_client(concat!("Crosstie ", env!("CARGO_PKG_VERSION"))),
        from: None,
        protocol: "",
        mechanism: "",
        channels_max: 1,
        heartbeat_s: 0,
    };
    let vhost = (shared, permissions);
    let is_impersonator = found.tags.iter().any(|tag| tag == "impersonator");
    let seat = broker.take_any_seat(&about.user, vhost.0.name());
    let mut entered = Entered::known(about, vhost, (is_impersonator, seat), FRAME_BYTES_MAX);
    entered.rights = rights.flatten();
    let watching = &broker.home.watch;
    let watch = watching.add(Arc::clone(&connection), TRANSPORT, Duration::MAX);
    watching.opened_with_heartbeats(watch, 0, &HEARTBEAT);
    let options = speaking();
    let entered = Open::enter(entered, &connection, (TRANSPORT, &options), watch, broker);
    broker.add_peer(entered.peer());
    entered.peer().report_opened();
    let mut resident = Resident {
        open: Some(entered),
        connection,
        broker: Arc::clone(broker),
        watch,
    };
    runtime.spawn(async move {
        let connection = Arc::clone(&resident.connection);
        pump(&connection, &mut resident).await;
        resident.leave(EndReason::Shutdown);
        connection.finish();
        crosstie_transport::uncork();
        connection.close();
    });
    Ok(client)
}

/// The user, with the rights that another backend has given.
fn known(users: &Users, user: Whose<'_>) -> Result<(Arc<User>, Option<Option<Rights>>), String> {
    Ok(match user {
        Whose::Own(user) => {
            let found = users.find(user).map(Arc::clone);
            let found = found.ok_or_else(|| format!("there is no AMQP user '{user}'"))?;
            (found, None)
        }
        Whose::Other(user, rights) => (user, Some(rights.map(|VhostRights(rights)| rights))),
        Whose::Operator(user) => (user, None),
    })
}

impl Resident {
    fn end(&mut self, end: &End) {
        match end {
            End::ByClient => {
                self.leave(EndReason::Goodbye);
                peer::send(&self.connection, Version::default(), &ConnectionCloseOk {});
            }
            End::Fault(fault) => {
                report::peer_fault(&self.connection, fault.code.name(), &fault.text);
                self.leave(EndReason::Violation);
                self.say_close(fault);
            }
            End::Answered | End::Forced | End::TurnedAway(_) => {}
        }
        self.leave(EndReason::Shutdown);
        self.connection.finish();
    }

    fn say_close(&self, fault: &Fault) {
        peer::send(
            &self.connection,
            Version::default(),
            &ConnectionClose {
                reply_code: fault.code.code(),
                reply_text: &peer::reply_text(&fault.text),
                class_id: fault.class_id,
                method_id: fault.method_id,
            },
        );
    }

    fn leave(&mut self, seen: EndReason) {
        if let Some(open) = self.open.take() {
            let user = &open.peer().about.user;
            let facts = Facts::of(&self.connection, false, seen);
            report::connection_closed(&self.connection, user, &facts);
            open.leave(&self.broker);
        }
    }
}

impl Protocol for Resident {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        let mut at = 0;
        loop {
            let Some(open) = &mut self.open else {
                return Outcome::Close;
            };
            match open.handle(&input[at..], &self.broker) {
                Handled::Done { consumed } => at += consumed,
                Handled::Wait { consumed, wanted } => {
                    let consumed = at + consumed;
                    return Outcome::Continue { consumed, wanted };
                }
                Handled::Yield { consumed } => {
                    let consumed = at + consumed;
                    return Outcome::Yield { consumed };
                }
                // A client in a vhost is never handed over.
                Handled::HandOver { .. } => return Outcome::Close,
                Handled::End(end) => {
                    self.end(&end);
                    return Outcome::Close;
                }
            }
        }
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        // Also if the task is dropped with its runtime.
        self.leave(EndReason::Shutdown);
        self.broker.home.watch.remove(self.watch);
    }
}

/// The limits of an AMQP listener: deliveries wait in their queues, and answers have room behind the largest message.
pub(super) fn limits(router: &ConnectionLimits, broker: &Broker) -> ConnectionLimits {
    ConnectionLimits {
        queue_bytes_max: router.queue_bytes_max + broker.message_bytes_max(),
        stall_max: Duration::MAX,
        message_max: Duration::MAX,
        bytes_per_second_min: 0,
        account: Arc::clone(&router.account),
    }
}

pub(super) fn speaking() -> AmqpTransport {
    AmqpTransport {
        frame_bytes_max: FRAME_BYTES_MAX,
        channels_max: 1,
        heartbeat: None,
        mechanisms: Vec::new(),
        handshake_timeout: Duration::MAX,
        closing_timeout: CLOSING_TIMEOUT,
    }
}

/// Two ends of one socket.
fn ends() -> io::Result<(Socket, Socket)> {
    let (own, other) = UnixStream::pair()?;
    own.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    let socket = |end: UnixStream| Socket::new(end.into(), PeerAddress::Unix(None));
    Ok((socket(own), socket(other)))
}

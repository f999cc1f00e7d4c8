//! Serves a spliced client until its connection ends: dials the owner and relays in both directions.
//!
//! Each side is read only after the other side has accepted the previous bytes. A client that does not read therefore
//! slows its owner as a direct connection would, and no backlog forms here.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crosstie_amqp::frame::{self, FrameKind};
use crosstie_amqp::method::ConnectionClose;
use crosstie_amqp::{ReplyCode, Version};
use crosstie_auth::Permissions;
use crosstie_front::admission::Admitted;
use crosstie_front::report;
use crosstie_transport::{Connection, ConnectionLimits, ConnectionStream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Splices;
use super::boundary::Boundary;
use super::dial::{Failed, dial};
use super::greeting::Account;
use super::settings::{WAIT_MAX, parse};
use crate::admission::not_allowed;
use crate::broker::Broker;
use crate::conversation::AmqpEndpoint;
use crate::let_in::LetIn;
use crate::metadata::Seat;
use crate::peer::reply_text;
use crate::replicated::Whose;
use crate::replication::{Ownership, Replicated};

/// Bytes read at a time, in each direction.
const BUFFER_BYTES: usize = 16 << 10;

/// Both buffers. Unsent bytes are charged separately.
const HELD_BYTES: isize = 2 * BUFFER_BYTES as isize;

/// Maximum unsent bytes towards a peer that does not read.
const UNSENT_BYTES_MAX: usize = 2 * BUFFER_BYTES;

/// Timeout for the connection to an owner and its answer.
const DIAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for the former owner's last frames after another node has taken over.
const FRAMES_MAX: Duration = Duration::from_secs(1);

/// Pause between attempts to reach an owner.
const PAUSE: Duration = Duration::from_millis(100);

/// A client that this node splices to the owner.
pub(crate) struct Spliced {
    account: Account,
    replicated: Arc<Replicated>,
    /// Its owner counts it here, too.
    _seat: Seat,
}

impl Spliced {
    pub(crate) fn new(
        let_in: LetIn,
        replicated: Arc<Replicated>,
        connection: &Connection,
        node: &str,
    ) -> Self {
        let client = &let_in.client;
        let permissions = let_in.permissions.patterns().map(str::to_owned);
        Self {
            account: Account {
                vhost: Arc::clone(&let_in.vhost),
                user: Arc::clone(&client.about.user),
                name: client.about.name.clone(),
                client: client.about.client(),
                from: format!("{} by {node}", connection.peer()),
                permissions,
                frame_bytes_max: client.frame_bytes_max,
                channels_max: client.channels_max,
                heartbeat_s: client.heartbeat_s,
                is_impersonator: let_in.is_impersonator,
                is_owner_to_decide: let_in.rights.is_none(),
                authentication_failure_close: client.capabilities.authentication_failure_close,
                connection_blocked: client.capabilities.connection_blocked,
                consumer_cancel_notify: client.capabilities.consumer_cancel_notify,
                version: client.version,
            },
            replicated,
            _seat: let_in.seat,
        }
    }
}

/// Splices a client until its connection ends; `input` holds bytes that the client sent already. Needs a runtime with
/// timers.
pub(crate) async fn serve(
    admitted: Admitted,
    endpoint: Arc<AmqpEndpoint>,
    spliced: Box<Spliced>,
    connection: Arc<Connection>,
    input: Vec<u8>,
) {
    let broker = &endpoint.broker;
    // Released when the connection is dropped.
    connection.hold(HELD_BYTES);
    let Ok(client) = ConnectionStream::new(Arc::clone(&connection), input) else {
        return connection.close();
    };
    let mut client = client.with_unsent_bytes_max(UNSENT_BYTES_MAX);
    let closing_timeout = endpoint.options.closing_timeout;
    let version = spliced.account.version;
    let opened = tokio::select! {
        opened = open(&spliced, &admitted.listening.limits) => opened,
        () = admitted.listening.until_stopped() => Err(NotOpened::of("shutdown")),
    };
    match opened {
        Ok((node, owner, stream)) => {
            let counted = Counted::begin(broker);
            report::connection_passed_on(&connection, &spliced.account.user, owner.peer());
            let stream = stream.with_unsent_bytes_max(UNSENT_BYTES_MAX);
            let ended = async {
                tokio::select! {
                    () = admitted.listening.until_stopped() => "shutdown",
                    () = taken_over(&spliced.replicated, &node) => "another node has the vhost",
                }
            };
            let reason = relay(&mut client, stream, &broker.splices, ended).await;
            drop(counted);
            if let Some(reason) = reason {
                let why = format!("broker forced connection closure with reason '{reason}'");
                close(&mut client, version, &NotOpened::of(why), closing_timeout).await;
            }
        }
        Err(not_opened) => {
            Splices::count(&broker.splices.refused);
            let refused = report::Refused {
                who: &spliced.account.user,
                place: &spliced.account.vhost,
                cause: "splice",
                ..report::Refused::new(not_opened.code.name(), &not_opened.why)
            };
            report::connection_refused(&connection, &refused);
            close(&mut client, version, &not_opened, closing_timeout).await;
        }
    }
    connection.finish_and_close();
    drop(admitted);
}

/// Why a client is closed.
struct NotOpened {
    code: ReplyCode,
    why: String,
}

impl NotOpened {
    fn of(why: impl Into<String>) -> Self {
        Self {
            code: ReplyCode::ConnectionForced,
            why: why.into(),
        }
    }
}

/// A connection to the owner, with its name.
type Opened = (Arc<str>, Arc<Connection>, ConnectionStream);

/// Returns a connection to the owner, or the reason for the client.
async fn open(spliced: &Spliced, limits: &Arc<ConnectionLimits>) -> Result<Opened, NotOpened> {
    let Spliced {
        account,
        replicated,
        ..
    } = spliced;
    let vhost = &account.vhost;
    let tls = replicated
        .splicing()
        .and_then(|splicing| splicing.tls.as_ref());
    let since = Instant::now();
    let mut owner = replicated.watch();
    let mut why = format!("vhost '{vhost}' is on no node at present");
    while since.elapsed() < WAIT_MAX {
        let known = owner.borrow_and_update().clone();
        match known {
            Ownership::Here(_) => {
                return Err(NotOpened::of(format!("vhost '{vhost}' has moved")));
            }
            Ownership::NotHere(whose @ Whose::Nobody { .. }) => why = whose.refusal(vhost),
            Ownership::NotHere(whose) => {
                let Whose::Elsewhere { node, address } = &whose else {
                    continue;
                };
                if let Some(refused) = decided_for(node, replicated, account) {
                    return Err(refused);
                }
                let Some((address, key)) = parse(address) else {
                    return Err(NotOpened::of(whose.refusal(vhost)));
                };
                let to = (address, &key);
                let dialling = dial(to, tls, limits, account);
                match tokio::time::timeout(DIAL_TIMEOUT, dialling).await {
                    Ok(Ok((connection, stream))) => {
                        return Ok((Arc::clone(node), connection, stream));
                    }
                    Ok(Err(Failed::Refused(reason))) => {
                        let why = format!("node {node} takes no client: {reason}");
                        return Err(NotOpened::of(why));
                    }
                    Ok(Err(Failed::NotAllowed(why))) => {
                        let code = ReplyCode::NotAllowed;
                        return Err(NotOpened { code, why });
                    }
                    Ok(Err(Failed::NotOwner)) => {
                        why = format!("vhost '{vhost}' is not on node {node} any more");
                    }
                    Ok(Err(Failed::Unreached(reason))) => {
                        why = format!(
                            "node '{node}', which owns the vhost, cannot be reached: {reason}"
                        );
                    }
                    Err(_) => why = format!("{}: no answer", whose.refusal(vhost)),
                }
            }
        }
        // A new owner is tried at once, the same owner after a pause.
        let _ = tokio::time::timeout(PAUSE, owner.changed()).await;
    }
    Err(NotOpened::of(why))
}

/// The refusal of a client without permissions here. An owner of an earlier version lets it in, and refuses each method by
/// these permissions.
fn decided_for(owner: &str, replicated: &Replicated, account: &Account) -> Option<NotOpened> {
    let may_nothing = account.permissions == Permissions::none().patterns();
    let is_elder = || {
        replicated
            .seen()
            .elders
            .iter()
            .any(|elder| **elder == *owner)
    };
    (account.is_owner_to_decide && may_nothing && is_elder()).then(|| NotOpened {
        code: ReplyCode::NotAllowed,
        why: not_allowed(&account.user, &account.vhost),
    })
}

/// Waits until a node other than this one has taken over. The connection to a machine whose link is lost does not end.
async fn taken_over(replicated: &Replicated, node: &str) {
    let mut owner = replicated.watch();
    let is_another = |known: &Ownership| match known {
        Ownership::Here(_) => true,
        Ownership::NotHere(Whose::Elsewhere { node: owner, .. }) => **owner != *node,
        Ownership::NotHere(Whose::Nobody { .. }) => false,
    };
    if owner.wait_for(is_another).await.is_err() {
        // The worker is ending.
        pending::<()>().await;
    }
    tokio::time::sleep(FRAMES_MAX).await;
}

/// Relays in both directions until one ends. Returns the reason for the client, if it must be told and a frame can be
/// inserted.
async fn relay(
    client: &mut ConnectionStream,
    owner: ConnectionStream,
    splices: &Splices,
    ended: impl Future<Output = &'static str>,
) -> Option<&'static str> {
    let mut boundary = Boundary::default();
    let reason = {
        let (client_read, client_write) = tokio::io::split(&mut *client);
        let (owner_read, owner_write) = tokio::io::split(owner);
        let up = pass(client_read, owner_write, &splices.sent_bytes, |_| {});
        let received = &splices.received_bytes;
        let down = pass(owner_read, client_write, received, |octets| {
            boundary.pass(octets)
        });
        tokio::select! {
            // A client that closed its side reads nothing more; its owner sees the end of its own connection.
            _ = up => None,
            _ = down => Some("the node that has the vhost has gone"),
            why = ended => Some(why),
        }
    };
    reason.filter(|_| boundary.is_between() && !boundary.is_over())
}

/// Relays one direction until its end.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    passed: &AtomicU64,
    mut look: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let octets = &buffer[..length];
        to.write_all(octets).await?;
        // Flushed at once, as the next bytes may be long in coming.
        to.flush().await?;
        look(octets);
        passed.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Sends `connection.close` to a client, and waits for its answer or its end.
async fn close(
    client: &mut ConnectionStream,
    version: Version,
    NotOpened { code, why }: &NotOpened,
    within: Duration,
) {
    let text = format!("{code} - {why}");
    let method = ConnectionClose {
        reply_code: code.code(),
        reply_text: &reply_text(&text),
        class_id: 0,
        method_id: 0,
    };
    let mut octets = Vec::new();
    frame::write(FrameKind::Method, 0, &mut octets, |out| {
        version.write(&method, out)
    });
    let told = async {
        client.write_all(&octets).await?;
        client.flush().await?;
        client.shutdown().await?;
        let mut buffer = vec![0; BUFFER_BYTES];
        // Earlier input is dropped; the answer is the client's last frame.
        while client.read(&mut buffer).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(within, told).await;
}

/// Counts a spliced client while this lives.
struct Counted<'b>(&'b Broker);

impl<'b> Counted<'b> {
    fn begin(broker: &'b Broker) -> Self {
        Splices::count(&broker.splices.opened);
        Splices::count(&broker.splices.open);
        Self(broker)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.splices.open.fetch_sub(1, Ordering::Relaxed);
    }
}

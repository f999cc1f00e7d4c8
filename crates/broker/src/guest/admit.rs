//! Logins of clients of other protocols: by the same users as AMQP clients, slowed alike, and into a vhost at once.

use std::sync::Arc;

use crosstie_auth::{Permissions, User};
use crosstie_transport::Connection;

use crate::admission::not_allowed;
use crate::backends::{LoggedIn, Rights};
use crate::broker::Broker;
use crate::http_logins::log_in_as;
use crate::logins::Later;
use crate::metadata::Seat;
use crate::vhost::SharedVhost;

/// A client that may enter a vhost.
pub struct Admitted {
    pub(super) user: Arc<User>,
    pub(super) vhost: Arc<SharedVhost>,
    pub(super) permissions: Arc<Permissions>,
    pub(super) rights: Option<Rights>,
    pub(super) seat: Seat,
}

impl Admitted {
    pub fn vhost(&self) -> &Arc<SharedVhost> {
        &self.vhost
    }

    pub fn user_name(&self) -> &Arc<str> {
        &self.user.name
    }
}

/// Why a client may not enter a vhost; the text is for the log.
pub enum NotAdmitted {
    /// Wrong user name or password, or no such vhost: RabbitMQ tells its clients no more.
    Login(String),
    /// The user may log in from this machine alone.
    LoopbackOnly(String),
    /// The user may not enter the vhost.
    Forbidden(String),
    /// A limit of connections is reached.
    Limit(String),
    /// The vhost is open on another node, or on none.
    Elsewhere(String),
    /// The vhost's retained messages are being read.
    Starting(String),
}

/// The proof of a user's name.
pub enum Proof {
    Password(Vec<u8>),
    /// A certificate, or the configuration.
    Given,
}

/// A decision that a client waits for. Reading from its mailbox is paused meanwhile; dropping this cancels it.
pub struct Admission(Later<Result<Admitted, NotAdmitted>>);

impl Admission {
    /// The decision; `None` if reading was resumed for another reason.
    pub fn take(&self) -> Option<Result<Admitted, NotAdmitted>> {
        self.0.take()
    }
}

/// Decides on a client, beside the threads that serve clients.
pub fn admit(
    broker: &Arc<Broker>,
    mailbox: &Arc<Connection>,
    vhost: String,
    name: String,
    proof: Proof,
) -> Admission {
    let (own, connection) = (Arc::clone(broker), Arc::clone(mailbox));
    Admission(broker.logins.later(mailbox, async move {
        decide(&own, &connection, &vhost, &name, &proof).await
    }))
}

async fn decide(
    broker: &Broker,
    connection: &Connection,
    vhost: &str,
    name: &str,
    proof: &Proof,
) -> Result<Admitted, NotAdmitted> {
    let password = match proof {
        Proof::Password(password) => Some(password.as_slice()),
        Proof::Given => None,
    };
    let LoggedIn { user, source, .. } = log_in_as(broker, connection, name, password)
        .await
        .map_err(|refused| match refused.is_loopback_only {
            true => NotAdmitted::LoopbackOnly(refused.why),
            false => NotAdmitted::Login(refused.why),
        })?;
    if !broker.has_vhost(vhost) {
        return Err(NotAdmitted::Login(format!("vhost {vhost} not found")));
    }
    let refused = |remark: &str| NotAdmitted::Forbidden(not_allowed(&user.name, vhost) + remark);
    let rights = source.rights(&user, vhost, connection);
    let permissions = match &rights {
        None => {
            let own = broker.permissions_to_open(&user.name, vhost);
            own.ok_or_else(|| refused(""))?
        }
        Some(rights) => {
            match rights {
                Rights::Http(rights) if rights.may_open().await => {}
                Rights::Http(_) => return Err(refused("")),
                Rights::Token(rights) => rights.may_open().map_err(|remark| refused(&remark))?,
            }
            rights.permissions()
        }
    };
    let shared = broker.vhost(vhost);
    let shared = shared.map_err(|whose| NotAdmitted::Elsewhere(whose.refusal(vhost)))?;
    if shared.is_reading_retained() {
        let text = format!("the retained messages of vhost {vhost} are being read");
        return Err(NotAdmitted::Starting(text));
    }
    let seat = broker.take_seat(&user.name, shared.name());
    Ok(Admitted {
        seat: seat.map_err(NotAdmitted::Limit)?,
        user,
        vhost: shared,
        permissions,
        rights,
    })
}

//! What a session of the router's own needs to know of a realm: so little that neither needs the other's file.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crosstie_auth::wamp::Unanswered;
use crosstie_routing::{ClientFeatures, Identity, Question, SessionKey, Verdict};
use crosstie_transport::{Connection, ConnectionLimits};
use crosstie_wamp::{Message, SessionId};
use tokio::sync::watch;

use crate::wamp::handled::Handled;
use crate::wamp::peer::Peer;

/// The realms of a router, by name.
pub(crate) trait Rooms: Send + Sync {
    fn room(&self, realm: &str) -> Option<Arc<dyn Room>>;

    /// Its value changes when realms or roles come.
    fn comings(&self) -> watch::Receiver<()>;

    /// The bounds of connections.
    fn limits(&self) -> Arc<ConnectionLimits>;
}

/// One realm.
pub(crate) trait Room: Send + Sync {
    /// No other realm of this router has it or had it.
    fn number(&self) -> u32;

    /// Lets a session in. One that is not shown is nobody's: the meta API does not speak of it.
    fn let_in(
        &self,
        peer: Peer,
        identity: Identity,
        features: ClientFeatures,
        is_shown: bool,
    ) -> Result<(SessionKey, SessionId), NotLetIn>;

    /// Routes a message.
    fn route(
        &self,
        key: SessionKey,
        message: &Message<'_>,
        connection: &Arc<Connection>,
    ) -> Handled;

    /// The same for one that an authorizer was asked about.
    fn route_judged(
        &self,
        key: SessionKey,
        message: &Message<'_>,
        connection: &Arc<Connection>,
        judged: (Question, Verdict),
    ) -> Handled;

    /// Asks an authorizer about a message of these bytes. To be awaited where there are timers.
    fn judge<'f>(
        &'f self,
        key: SessionKey,
        peer: &'f Peer,
        question: &'f Question,
        bytes: &'f [u8],
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'f>>;

    /// Takes a session out.
    fn let_out(&self, key: SessionKey);
}

/// Why a session of the router's own is in no realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotLetIn {
    NoSuchRealm { realm: String },
    NoSuchRole { realm: String, role: String },
    Failed { text: String },
}

impl fmt::Display for NotLetIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRealm { realm } => write!(f, "there is no realm \"{realm}\""),
            Self::NoSuchRole { realm, role } => {
                write!(f, "realm \"{realm}\" has no role \"{role}\"")
            }
            Self::Failed { text } => f.write_str(text),
        }
    }
}

impl From<NotLetIn> for Unanswered {
    fn from(why: NotLetIn) -> Self {
        match why {
            NotLetIn::NoSuchRealm { realm } => Self::NoSuchRealm { realm },
            NotLetIn::NoSuchRole { realm, role } => Self::NoSuchRole { realm, role },
            NotLetIn::Failed { text } => Self::Lost { text },
        }
    }
}

//! The interface of a realm for the router's own sessions, so that neither depends on the other's file.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crosstie_auth::wamp::Unanswered;
use crosstie_routing::{
    ClientFeatures, Identity, Question, RetainedPage, RetainedQuery, SessionKey, Verdict,
};
use crosstie_transport::{Connection, ConnectionLimits};
use crosstie_wamp::{Message, SessionId};
use tokio::sync::watch;

use crate::handled::Handled;
use crate::peer::Peer;

/// The realms of a router, by name.
pub trait Rooms: Send + Sync {
    fn room(&self, realm: &str) -> Option<Arc<dyn Room>>;

    /// Changes whenever a realm or a role starts.
    fn comings(&self) -> watch::Receiver<()>;

    /// The limits of connections.
    fn limits(&self) -> Arc<ConnectionLimits>;
}

/// One realm.
pub trait Room: Send + Sync {
    /// Unique among all realms that this router ever had.
    fn number(&self) -> u32;

    /// Joins a session. A hidden session does not appear in the meta API.
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

    /// The same with an authorizer's verdict.
    fn route_judged(
        &self,
        key: SessionKey,
        message: &Message<'_>,
        connection: &Arc<Connection>,
        judged: (Question, Verdict),
    ) -> Handled;

    /// Asks an authorizer about an encoded message. Needs a runtime with timers.
    fn judge<'f>(
        &'f self,
        key: SessionKey,
        peer: &'f Peer,
        question: &'f Question,
        bytes: &'f [u8],
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'f>>;

    /// The number of the last retained event.
    fn retained_number(&self) -> u64;

    /// A page of the retained events that a session may receive, and the steps that it took.
    fn retained_page(&self, key: SessionKey, query: &RetainedQuery<'_>) -> (RetainedPage, u32);

    /// Removes a session.
    fn let_out(&self, key: SessionKey);
}

/// Why a session of the router's own could not join a realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotLetIn {
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

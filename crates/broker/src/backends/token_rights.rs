//! The rights of one client by its token. They are judged here, under the vhost's lock: no answer is remembered, so that
//! none outlives the token. A new token is checked elsewhere, as that takes as long as a thousand methods.

use std::mem;
use std::sync::Arc;

use crosstie_auth::oauth2::{Grants, Token};
use crosstie_auth::{Access, Judge, ResourceKind};
use crosstie_transport::Connection;
use parking_lot::{Mutex, RwLock};

use super::charged::Charged;
use super::oauth2::OAuth2Backend;
use crate::clock::unix_s;

/// The rights of a token in a vhost, over one connection.
pub(crate) struct TokenRights {
    /// A reload replaces it.
    backend: RwLock<Arc<OAuth2Backend>>,
    user: Arc<str>,
    vhost: Arc<str>,
    now: RwLock<Now>,
    secret: Mutex<Secret>,
    charged: Charged,
}

/// What the last token says.
struct Now {
    /// `None`: nothing about this vhost.
    grants: Option<Grants>,
    expires_s: Option<u64>,
}

/// A new secret of the client.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Secret {
    #[default]
    None,
    Checking,
    Checked {
        is_right: bool,
    },
}

/// What is to be done with `connection.update-secret`.
pub(crate) enum Checked {
    Right,
    Refused,
    /// The secret is checked; then the method is handled again.
    Later(Arc<TokenRights>, Vec<u8>),
}

impl Now {
    fn of(token: &Token, vhost: &str) -> Self {
        Self {
            grants: token.grants(vhost),
            expires_s: token.expires_s,
        }
    }

    /// The time at which the token has ended, if it has.
    fn ended_s(&self) -> Option<u64> {
        self.expires_s.filter(|expires_s| *expires_s <= unix_s())
    }

    fn may(&self, judge: impl FnOnce(&Grants) -> bool) -> bool {
        self.grants.as_ref().is_some_and(judge) && self.ended_s().is_none()
    }
}

impl TokenRights {
    pub(super) fn new(backend: &Arc<OAuth2Backend>, token: &Token, vhost: &str) -> Self {
        Self {
            backend: RwLock::new(Arc::clone(backend)),
            user: Arc::clone(&token.user),
            vhost: vhost.into(),
            now: RwLock::new(Now::of(token, vhost)),
            secret: Mutex::default(),
            charged: Charged::default(),
        }
    }

    /// From now on another backend reads new tokens.
    pub(super) fn follow(&self, backend: &Arc<OAuth2Backend>) {
        *self.backend.write() = Arc::clone(backend);
    }

    /// Whether the user may open the vhost; an error is the end of the refusal's text.
    pub(crate) fn may_open(&self) -> Result<(), String> {
        let may = self.now.read().may(|_| true);
        match may {
            true => Ok(()),
            false => Err(self.remark().unwrap_or_default()),
        }
    }

    /// Whether a new secret is right, as far as that is known.
    pub(crate) fn check(self: &Arc<Self>, secret: &[u8]) -> Checked {
        let mut state = self.secret.lock();
        match mem::take(&mut *state) {
            Secret::Checked { is_right: true } => Checked::Right,
            Secret::Checked { is_right: false } => Checked::Refused,
            Secret::None | Secret::Checking => {
                *state = Secret::Checking;
                Checked::Later(Arc::clone(self), secret.to_owned())
            }
        }
    }

    /// Reads a new token, which counts from now on.
    pub(crate) async fn renew(&self, secret: &[u8]) {
        let backend = Arc::clone(&self.backend.read());
        let token = backend.read_again(&self.user, secret).await;
        if let Some(token) = &token {
            *self.now.write() = Now::of(token, &self.vhost);
        }
        let is_right = token.is_some();
        *self.secret.lock() = Secret::Checked { is_right };
    }

    pub(crate) fn charge(&self, connection: &Arc<Connection>) {
        let bytes = self.now.read().grants.as_ref().map_or(0, Grants::bytes);
        self.charged.set(bytes, connection);
    }

    pub(super) fn is_checking(&self) -> bool {
        *self.secret.lock() == Secret::Checking
    }
}

impl Judge for TokenRights {
    fn may(&self, access: Access, _kind: ResourceKind, name: &str) -> bool {
        self.now.read().may(|grants| grants.may(access, name))
    }

    fn may_topic(&self, access: Access, exchange: &str, routing_key: &str) -> bool {
        let now = self.now.read();
        now.may(|grants| grants.may_topic(access, exchange, routing_key))
    }

    /// RabbitMQ's words for a token that has ended.
    fn remark(&self) -> Option<String> {
        let ended_s = self.now.read().ended_s()?;
        Some(format!(
            ", backend rabbit_auth_backend_oauth2 returned an error: \"Provided JWT token has expired at timestamp \
             {ended_s} (validated at {})\"",
            unix_s()
        ))
    }
}

impl std::fmt::Debug for TokenRights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenRights of {} in {}", self.user, self.vhost)
    }
}

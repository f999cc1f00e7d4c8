//! OAuth 2 tokens as passwords, as RabbitMQ's plugin reads them. `auth::oauth2` has the rules; the keys may come from the
//! issuer's server, which no thread waits for.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_auth::oauth2::{Flaw, Rules, Token};
use crosstie_config::AmqpOAuth2Backend;
use crosstie_front::bound::Bound;
use tokio::runtime::Handle;

use super::http::{Counts, NotAllowed};
use super::token_keys::TokenKeys;
use crate::clock::unix_s;

/// Reads tokens.
pub(crate) struct OAuth2Backend {
    rules: Arc<Rules>,
    keys: Arc<TokenKeys>,
    counts: Arc<Counts>,
}

/// Log lines about secrets that are refused on open connections.
static REFUSALS: Bound = Bound::of(2);

impl OAuth2Backend {
    /// Fetched keys are taken from the former backend. An error names the file and its fault.
    pub(super) fn new(
        options: &AmqpOAuth2Backend,
        directory: &Path,
        counts: &Arc<Counts>,
        keeper: &Handle,
        former: Option<&Arc<Self>>,
    ) -> io::Result<Self> {
        let former = former.map(|former| &*former.keys);
        Ok(Self {
            rules: Arc::clone(&options.rules),
            keys: TokenKeys::start(options, directory, counts, keeper, former)?,
            counts: Arc::clone(counts),
        })
    }

    /// Reads a token of a client by the present keys. `None`: the issuer may have a newer key.
    pub(super) fn read_now(
        &self,
        name: &str,
        password: Option<&[u8]>,
    ) -> Option<Result<Token, String>> {
        match self.valid(name, password) {
            Err(Flaw::UnknownKey) if self.keys.may_be_newer() => None,
            read => Some(self.counted(read)),
        }
    }

    /// Reads a token of a client, by newer keys if the present ones do not suffice.
    pub(super) async fn read(
        &self,
        name: &str,
        password: Option<&[u8]>,
    ) -> Result<Token, NotAllowed> {
        let mut read = self.valid(name, password);
        if read == Err(Flaw::UnknownKey) {
            self.keys.renew().await;
            read = self.valid(name, password);
        }
        let is_known = read != Err(Flaw::UnknownKey) || !self.keys.are_missing();
        self.counted(read).map_err(|why| match is_known {
            true => NotAllowed::Denied(why),
            // No server has told any key: nothing is known about the token.
            false => NotAllowed::Unanswered(why),
        })
    }

    /// Reads the new token of a client that is connected. As in RabbitMQ it may have ended. That of another user is
    /// refused.
    pub(super) async fn read_again(&self, name: &str, secret: &[u8]) -> Option<Token> {
        let mut read = self.content(name, Some(secret));
        if read == Err(Flaw::UnknownKey) {
            self.keys.renew().await;
            read = self.content(name, Some(secret));
        }
        let read = read.map_err(|flaw| flaw.to_string());
        let own = read.and_then(|token| match *token.user == *name {
            true => Ok(token),
            false => Err("it is another user's".to_owned()),
        });
        match self.counted(own) {
            Ok(token) => Some(token),
            Err(why) => {
                if REFUSALS.may_log() {
                    tracing::error!("new secret of user '{name}' refused: {why}");
                }
                None
            }
        }
    }

    /// A token that has not ended.
    fn valid(&self, name: &str, password: Option<&[u8]>) -> Result<Token, Flaw> {
        let token = self.content(name, password)?;
        match token.is_expired(unix_s()) {
            true => Err(Flaw::Expired),
            false => Ok(token),
        }
    }

    fn content(&self, name: &str, password: Option<&[u8]>) -> Result<Token, Flaw> {
        let token = password.and_then(|token| std::str::from_utf8(token).ok());
        let token = token.ok_or(Flaw::Malformed)?;
        self.rules.read(token, name, &self.keys.now(), unix_s())
    }

    fn counted(&self, read: Result<Token, impl Display>) -> Result<Token, String> {
        let count = match &read {
            Ok(_) => &self.counts.allowed,
            Err(_) => &self.counts.denied,
        };
        count.fetch_add(1, Ordering::Relaxed);
        read.map_err(|why| why.to_string())
    }
}

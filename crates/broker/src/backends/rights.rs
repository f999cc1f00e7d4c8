//! The rights of one client in its vhost, if they are not those of a user of the broker.

use std::sync::Arc;

use crosstie_auth::{Judge, Permissions};
use crosstie_transport::Connection;

use super::Backends;
use super::http_rights::HttpRights;
use super::token_rights::TokenRights;

/// The rights of a client, by the backend that decides on them.
#[derive(Clone)]
pub(crate) enum Rights {
    Http(Arc<HttpRights>),
    Token(Arc<TokenRights>),
}

impl Rights {
    /// Puts their present size on the account of the client's connection.
    pub(crate) fn charge(&self, connection: &Arc<Connection>) {
        match self {
            Self::Http(rights) => rights.charge(connection),
            Self::Token(rights) => rights.charge(connection),
        }
    }

    /// The permissions that follow these rights.
    pub(crate) fn permissions(&self) -> Arc<Permissions> {
        let judge: Arc<dyn Judge> = match self {
            Self::Http(rights) => Arc::<HttpRights>::clone(rights),
            Self::Token(rights) => Arc::<TokenRights>::clone(rights),
        };
        Arc::new(Permissions::judged_by(judge))
    }

    /// The rights that a server is asked for.
    pub(crate) fn http(&self) -> Option<&Arc<HttpRights>> {
        match self {
            Self::Http(rights) => Some(rights),
            Self::Token(_) => None,
        }
    }

    /// From now on the present backend of that kind decides. Returns whether there is one.
    pub(crate) fn follow(&self, backends: &Backends) -> bool {
        match self {
            Self::Http(rights) => backends.http().is_some_and(|http| {
                rights.follow(http);
                true
            }),
            Self::Token(rights) => backends.oauth2().is_some_and(|oauth2| {
                rights.follow(oauth2);
                true
            }),
        }
    }

    /// Whether an answer is to come, before which nothing more is handled.
    pub(crate) fn is_asking(&self) -> bool {
        match self {
            Self::Http(rights) => rights.is_asking(),
            Self::Token(rights) => rights.is_checking(),
        }
    }
}

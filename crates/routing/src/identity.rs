//! The identity of a session, and the keys that name it.

use std::ops;
use std::sync::Arc;

/// The identity of a session, as its authentication determined it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub authid: Arc<str>,
    /// Its other texts, which read as fields of the identity. The sessions of one role and method share them.
    pub login: Arc<Login>,
}

/// The way in which a session's client was let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    pub authrole: Arc<str>,
    pub authmethod: Arc<str>,
    pub authprovider: Arc<str>,
}

impl Identity {
    pub fn new(
        authid: impl Into<Arc<str>>,
        authrole: impl Into<Arc<str>>,
        authmethod: &str,
        authprovider: &str,
    ) -> Self {
        let login = Login {
            authrole: authrole.into(),
            authmethod: authmethod.into(),
            authprovider: authprovider.into(),
        };
        Self {
            authid: authid.into(),
            login: Arc::new(login),
        }
    }
}

impl ops::Deref for Identity {
    type Target = Login;

    fn deref(&self) -> &Login {
        &self.login
    }
}

/// Names a session to its realm. A key outlives its session harmlessly: it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    pub(crate) index: SessionIndex,
    pub(crate) generation: u32,
}

/// A session's place in the table, for references that end with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionIndex(pub(crate) u32);

impl SessionIndex {
    /// No session.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

//! Why a session does not come into a realm.

use std::fmt;

use crate::fault::error;

/// Why a session was not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// It was authenticated under a role that the realm does not have.
    NoSuchRole { authrole: String },
    /// The realm is full.
    SessionsMax { sessions_max: usize },
    /// Its role has as many sessions as it may.
    RoleSessionsMax {
        authrole: String,
        sessions_max: usize,
    },
    /// So has its authid with that role.
    AuthidSessionsMax { sessions_max: usize },
}

impl JoinError {
    /// The reason for ABORT.
    pub fn uri(&self) -> &'static str {
        match self {
            Self::NoSuchRole { .. } => error::NO_SUCH_ROLE,
            Self::SessionsMax { .. } => error::SESSIONS_MAX,
            Self::RoleSessionsMax { .. } => error::ROLE_SESSIONS_MAX,
            Self::AuthidSessionsMax { .. } => error::AUTHID_SESSIONS_MAX,
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRole { authrole } => write!(f, "the realm has no role {authrole}"),
            Self::SessionsMax { sessions_max } => {
                write!(f, "the realm has its {sessions_max} sessions already")
            }
            Self::RoleSessionsMax {
                authrole,
                sessions_max,
            } => write!(
                f,
                "the role {authrole} has its {sessions_max} sessions already"
            ),
            Self::AuthidSessionsMax { sessions_max } => {
                write!(f, "your authid has its {sessions_max} sessions already")
            }
        }
    }
}

impl std::error::Error for JoinError {}

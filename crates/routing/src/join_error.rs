//! Why a session cannot join a realm.

use std::fmt;

use crate::fault::error;

/// Why a session was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// Its role does not exist in the realm.
    NoSuchRole { authrole: String },
    /// The realm has its maximum number of sessions.
    SessionsMax { sessions_max: usize },
    /// Its role has its maximum number of sessions.
    RoleSessionsMax {
        authrole: String,
        sessions_max: usize,
    },
    /// Its authid has its maximum number of sessions with that role.
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

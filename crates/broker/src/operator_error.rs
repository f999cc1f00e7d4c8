//! Reasons why an action of an operator failed.

use std::fmt;

/// Why an operator's action failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperatorError {
    NoSuchVhost {
        vhost: String,
    },
    NoSuchQueue {
        vhost: String,
        queue: String,
    },
    NoSuchExchange {
        vhost: String,
        exchange: String,
    },
    /// The action is not allowed, or the vhost is not open here.
    Refused {
        why: String,
    },
    /// The store has not done it, or what must be done before; or the router is being stopped.
    NotStored {
        why: String,
    },
    NoSuchConnection {
        number: u64,
    },
    /// The broker has sent `connection.close` and waits for the answer.
    ClosingAlready {
        number: u64,
    },
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchVhost { vhost } => write!(f, "there is no vhost '{vhost}'"),
            Self::NoSuchQueue { vhost, queue } => {
                write!(f, "there is no queue '{queue}' in vhost '{vhost}'")
            }
            Self::NoSuchExchange { vhost, exchange } => {
                write!(f, "there is no exchange '{exchange}' in vhost '{vhost}'")
            }
            Self::NotStored { why } | Self::Refused { why } => f.write_str(why),
            Self::NoSuchConnection { number } => write!(f, "there is no connection {number}"),
            Self::ClosingAlready { number } => write!(f, "connection {number} is closing already"),
        }
    }
}

impl std::error::Error for OperatorError {}

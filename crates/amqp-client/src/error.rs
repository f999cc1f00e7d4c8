//! The errors of connecting, and of a connection in use.

use std::time::Duration;
use std::{fmt, io};

use crosstie_amqp::{FrameError, MethodError, PropertiesError};

/// An error of a connection. Every one except `ChannelClosed` and `Timeout` ends it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionError {
    /// No server listens at any of the hosts that were tried.
    Unreachable(Vec<(String, io::Error)>),
    /// The socket failed.
    Socket(io::Error),
    /// The broker closed the socket without a close method.
    EndOfStream,
    /// The broker closed the connection, with its reason.
    Closed {
        code: u16,
        text: String,
        class_id: u16,
        method_id: u16,
    },
    /// The broker closed a channel, with its reason.
    ChannelClosed {
        channel: u16,
        code: u16,
        text: String,
        class_id: u16,
        method_id: u16,
    },
    /// Nothing arrived in time; with the broker's reason if it currently accepts no messages.
    Timeout {
        waited: Duration,
        awaited: &'static str,
        blocked: Option<String>,
    },
    /// Not even a heartbeat arrived in twice its interval.
    HeartbeatMissed {
        interval: Duration,
    },
    /// The broker offers no supported login mechanism.
    Mechanisms {
        offered: String,
    },
    /// The broker speaks another version of the protocol, or another protocol.
    Protocol {
        bytes: Vec<u8>,
    },
    /// A method where another one is expected.
    Unexpected {
        found: &'static str,
        expected: &'static str,
    },
    /// A content interrupted by another frame, on its channel or another.
    Interleaved,
    /// A content that exceeds the maximum length.
    TooLong {
        bytes: u64,
        bytes_max: u64,
    },
    Frame(FrameError),
    Method(MethodError),
    Properties(PropertiesError),
}

impl ConnectionError {
    /// Whether the connection was lost, so that a new one may work.
    pub fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::Socket(_)
                | Self::EndOfStream
                | Self::Closed { .. }
                | Self::HeartbeatMissed { .. }
        )
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(tried) => {
                f.write_str("cannot connect")?;
                let mut separator = ": ";
                for (host, error) in tried {
                    write!(f, "{separator}{host}: {error}")?;
                    separator = "; ";
                }
                Ok(())
            }
            Self::Socket(error) => write!(f, "the connection to the broker failed: {error}"),
            Self::EndOfStream => f.write_str("the broker closed the socket without saying why"),
            Self::Closed { code, text, .. } => {
                write!(f, "the broker closed the connection: {code} {text}")
            }
            Self::ChannelClosed {
                channel,
                code,
                text,
                ..
            } => write!(f, "the broker closed channel {channel}: {code} {text}"),
            Self::Timeout {
                waited,
                awaited,
                blocked,
            } => {
                write!(f, "no {awaited} within {} s", waited.as_secs_f64())?;
                match blocked {
                    Some(reason) => write!(f, "; the broker accepts no messages: {reason}"),
                    None => Ok(()),
                }
            }
            Self::HeartbeatMissed { interval } => write!(
                f,
                "the broker has been silent for twice the heartbeat of {} s",
                interval.as_secs()
            ),
            Self::Mechanisms { offered } => write!(
                f,
                "the broker offers the mechanisms {offered:?}, expected AMQPLAIN or PLAIN"
            ),
            Self::Protocol { bytes } => write!(
                f,
                "expected AMQP 0-9-1, the peer says \"{}\"",
                bytes.escape_ascii()
            ),
            Self::Unexpected { found, expected } => {
                write!(f, "the broker sent {found}, expected {expected}")
            }
            Self::Interleaved => f.write_str("the broker sent another frame within a content"),
            Self::TooLong { bytes, bytes_max } => write!(
                f,
                "the broker announced a content of {bytes} bytes, expected at most {bytes_max}"
            ),
            Self::Frame(error) => write!(f, "the broker sent {error}"),
            Self::Method(error) => write!(f, "the broker sent a method that is none: {error}"),
            Self::Properties(error) => write!(f, "the broker sent a content that is none: {error}"),
        }
    }
}

impl std::error::Error for ConnectionError {}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<FrameError> for ConnectionError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<MethodError> for ConnectionError {
    fn from(error: MethodError) -> Self {
        Self::Method(error)
    }
}

impl From<PropertiesError> for ConnectionError {
    fn from(error: PropertiesError) -> Self {
        Self::Properties(error)
    }
}

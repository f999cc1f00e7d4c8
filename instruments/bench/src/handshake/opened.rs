//! One connection of the driver: its phase, and the effect of the server's bytes.

use std::os::fd::OwnedFd;
use std::time::Instant;

use super::closing::{Closing, closing};
use super::log::Connection;
use super::opening::Openings;

pub(super) struct Opened {
    pub(super) fd: OwnedFd,
    pub(super) phase: Phase,
    /// Its number among the launched ones, for its request.
    pub(super) number: usize,
    /// When the phase began.
    pub(super) since: Instant,
    /// The part of an incomplete answer; without memory of its own otherwise.
    pub(super) input: Vec<u8>,
    pub(super) times: Connection,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Opening,
    Closing,
    /// Waiting for the server to close TCP.
    Ending,
}

/// The effect of the server's bytes.
pub(super) enum Taken {
    Partly,
    Opened,
    Closed,
    Wrong(String),
}

impl Opened {
    /// Handles all new bytes of a connection, and keeps an incomplete rest for the next call.
    pub(super) fn take_in(&mut self, openings: &mut Openings, bytes: &[u8]) -> Taken {
        if self.phase == Phase::Opening {
            return match openings.answer(self.number, bytes) {
                Ok(None) => {
                    self.input.extend_from_slice(bytes);
                    Taken::Partly
                }
                Ok(Some(length)) => {
                    self.phase = Phase::Closing;
                    self.input.extend_from_slice(&bytes[length..]);
                    Taken::Opened
                }
                Err(why) => Taken::Wrong(why),
            };
        }
        match closing(bytes) {
            Closing::Waiting => {
                self.input.extend_from_slice(bytes);
                Taken::Partly
            }
            Closing::Closed => {
                self.phase = Phase::Ending;
                Taken::Closed
            }
            Closing::Wrong(why) => Taken::Wrong(why.to_owned()),
        }
    }
}

impl Phase {
    /// The meaning of the end of the stream in it.
    pub(super) fn when_closed(self) -> &'static str {
        match self {
            Self::Connecting | Self::Opening => "it closed the connection in the opening handshake",
            Self::Closing | Self::Ending => "it closed the connection without a close frame",
        }
    }

    /// The missing message in it.
    pub(super) fn when_silent(self) -> &'static str {
        match self {
            Self::Connecting => "no connection",
            Self::Opening => "no answer to the opening handshake",
            Self::Closing | Self::Ending => "no answer to the close frame",
        }
    }
}

//! The cases: requests of a kind, or clients that wait for messages.

use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::frame::OWN;
use crate::subject::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Case {
    File,
    Call,
    Publish,
    /// Events to subscribers over WebSocket, the reference for long-poll.
    WebSocket,
    /// Events to subscribers over long-poll.
    LongPoll,
    /// Waiting clients of long-poll: memory per client.
    Waiting,
}

names! {
    Case {
        File = "file", Call = "call", Publish = "publish",
        WebSocket = "websocket", LongPoll = "longpoll", Waiting = "waiting"
    }
    "a case is file, call, publish, websocket, longpoll or waiting"
}

/// A kind of case: each has a driver, a table and goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Requests(Request),
    Events { is_longpoll: bool },
    Memory,
}

impl Case {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::File => Kind::Requests(Request::File),
            Self::Call => Kind::Requests(Request::Call),
            Self::Publish => Kind::Requests(Request::Publish),
            Self::WebSocket => Kind::Events { is_longpoll: false },
            Self::LongPoll => Kind::Events { is_longpoll: true },
            Self::Waiting => Kind::Memory,
        }
    }

    /// Whether a server of that name supports the case. Crossbar.io's long-poll accepts no messages.
    pub(super) fn is_supported_by(self, server: &str, has_wamp: bool) -> bool {
        match self.kind() {
            Kind::Requests(Request::File) => true,
            Kind::Requests(_) => has_wamp,
            Kind::Events { .. } | Kind::Memory => server == OWN,
        }
    }
}

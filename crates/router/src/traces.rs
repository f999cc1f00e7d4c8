//! Traces of sessions and AMQP connections, for operators.

use std::fmt;
use std::sync::Arc;

use crosstie_front::trace::{Trace, TraceOptions};
use crosstie_realms::trace;
use crosstie_wamp::SessionId;

use crate::router::Router;

/// Why nothing is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTraced {
    /// There is no such session or connection.
    NoSuch(String),
    Refused(String),
}

impl fmt::Display for NotTraced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuch(text) | Self::Refused(text) => f.write_str(text),
        }
    }
}

impl Router {
    /// Begins the trace of the session with that id.
    pub fn trace_session(&self, id: u64, options: TraceOptions) -> Result<Arc<Trace>, NotTraced> {
        let mut realms = self.state.realms.realms().into_iter();
        let seen = realms.find_map(|realm| realm.session(SessionId(id)));
        let seen = seen.ok_or_else(|| NotTraced::NoSuch(format!("there is no session {id}")))?;
        let trace = trace::begin(&seen.peer, options).ok_or_else(|| {
            NotTraced::Refused(format!(
                "session {id} is traced already, or has no connection of its own: it is one of the router's, or uses HTTP \
                 long-poll"
            ))
        })?;
        // Another session may have joined on the connection before the trace began.
        let mut realms = self.state.realms.realms().into_iter();
        if !realms.any(|realm| realm.session(SessionId(id)).is_some()) {
            trace.stop("closed");
        }
        Ok(trace)
    }

    /// Begins the trace of the AMQP connection with that number.
    pub fn trace_connection(
        &self,
        number: u64,
        options: TraceOptions,
    ) -> Result<Arc<Trace>, NotTraced> {
        let no_such = || NotTraced::NoSuch(format!("there is no AMQP connection {number}"));
        let broker = self.state.amqp().ok_or_else(no_such)?;
        let trace = broker.trace(number, options).ok_or_else(no_such)?;
        trace.ok_or_else(|| {
            NotTraced::Refused(format!("AMQP connection {number} is traced already"))
        })
    }
}

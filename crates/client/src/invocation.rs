//! A procedure's handler: its input, and the way of its answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crosstie_wamp::{Payload, RequestId, SessionId, Value, YieldOptions};
use tokio::sync::mpsc;

use crate::arguments::Arguments;
use crate::error::{ApplicationError, Failure, ProgressError, Unsendable};
use crate::interrupt::{Interrupt, Interrupts};
use crate::peer::Peer;
use crate::shared::Shared;

/// One call of a registered procedure.
#[derive(Debug)]
pub struct Invocation {
    /// The arguments of the call; of a progressive call, its first chunk.
    pub arguments: Arguments,
    pub(crate) procedure: Arc<str>,
    pub(crate) caller: Option<Peer>,
    pub(crate) trustlevel: Option<u64>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) chunks: Option<mpsc::Receiver<Arguments>>,
    pub(crate) progress: Progress,
    pub(crate) interrupts: Interrupts,
}

/// Sends progressive results; see [`Invocation::progress`].
#[derive(Clone, Debug)]
pub struct Progress {
    pub(crate) wanted: bool,
    pub(crate) responder: Responder,
}

impl Invocation {
    /// The URI that was called; differs from the registered one if that is a pattern.
    pub fn procedure(&self) -> &str {
        &self.procedure
    }

    /// The caller, if the router discloses it.
    pub fn caller(&self) -> Option<&Peer> {
        self.caller.as_ref()
    }

    /// The trust level that the router assigns to the call; 0 is the lowest.
    pub fn trustlevel(&self) -> Option<u64> {
        self.trustlevel
    }

    /// The caller's timeout, if the registration leaves it to the handler.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Whether the caller accepts progressive results.
    pub fn is_progress_wanted(&self) -> bool {
        self.progress.wanted
    }

    /// Sends a progressive result.
    pub async fn progress(&self, arguments: impl Into<Arguments>) -> Result<(), ProgressError> {
        self.progress.send(arguments).await
    }

    /// A handle to send progressive results from another task.
    pub fn progress_sender(&self) -> Progress {
        self.progress.clone()
    }

    /// The caller's next chunk; `None` after the last one, or if the call was cancelled.
    pub async fn next_chunk(&mut self) -> Option<Arguments> {
        self.chunks.as_mut()?.recv().await
    }

    /// A handle to observe cancellation from another task.
    pub fn interrupts(&self) -> Interrupts {
        self.interrupts.clone()
    }

    /// Waits until the call is cancelled. Useful only with [`OnInterrupt::Notify`](crate::OnInterrupt::Notify):
    /// otherwise the handler's future is dropped first.
    pub async fn interrupted(&mut self) -> Interrupt {
        self.interrupts.interrupted().await
    }
}

impl Progress {
    /// Sends a progressive result.
    pub async fn send(&self, arguments: impl Into<Arguments>) -> Result<(), ProgressError> {
        if !self.wanted {
            return Err(ProgressError::NotWanted);
        }
        let options = YieldOptions {
            progress: true,
            passthru: None,
        };
        match self.responder.answer(options, &arguments.into()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ProgressError::Over),
            Err(Failure::Unsendable(error)) => Err(ProgressError::Unsendable(error)),
            Err(Failure::Disconnected(error)) => Err(ProgressError::Disconnected(error)),
            // A YIELD has no answer.
            Err(Failure::Refused(_)) => Err(ProgressError::Over),
        }
    }
}

/// An invocation on its way to the handler.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) invocation: Invocation,
    pub(crate) unanswered: Unanswered,
}

/// The way of an invocation's answers: to its own session, or nowhere.
#[derive(Clone)]
pub(crate) struct Responder {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: SessionId,
    pub(crate) request: RequestId,
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Responder({}, {})", self.session, self.request)
    }
}

impl Responder {
    async fn answer(&self, options: YieldOptions, arguments: &Arguments) -> Result<bool, Failure> {
        let sent = self.shared.send(|active, _| {
            if active.session.id() != self.session {
                return Ok(false);
            }
            arguments.with_payload(active.outgoing.serializer(), |payload| {
                let out = &mut active.outgoing;
                let session = &mut active.session;
                session.yield_result(self.request, options, *payload, out)
            })?
        });
        sent.await
    }

    async fn refuse(&self, error: &ApplicationError) -> Result<bool, Failure> {
        let sent = self.shared.send(|active, _| {
            if active.session.id() != self.session {
                return Ok(false);
            }
            let serializer = active.outgoing.serializer();
            error.arguments.with_payload(serializer, |payload| {
                let out = &mut active.outgoing;
                let session = &mut active.session;
                session.yield_error(self.request, &error.uri, *payload, out)
            })?
        });
        sent.await
    }
}

/// The obligation to answer an invocation. If it is dropped, because the handler panicked or its task was ended, it
/// answers with an error: no caller waits forever.
#[derive(Debug)]
pub(crate) struct Unanswered {
    responder: Responder,
    answered: bool,
}

impl Unanswered {
    pub(crate) fn new(responder: Responder) -> Self {
        Self {
            responder,
            answered: false,
        }
    }

    /// Sends the final answer.
    pub(crate) async fn answer(mut self, outcome: Result<Arguments, ApplicationError>) {
        let sent = match outcome {
            Ok(arguments) => {
                let options = YieldOptions::default();
                self.responder.answer(options, &arguments).await
            }
            Err(error) => self.responder.refuse(&error).await,
        };
        if let Err(Failure::Unsendable(error)) = sent {
            let uri = match &error {
                Unsendable::TooLong { .. } => "wamp.error.payload_size_exceeded",
                Unsendable::Arguments(_) => "wamp.error.invalid_payload",
            };
            let text = vec![Value::String(error.to_string())];
            let error = ApplicationError::new(uri, text);
            // Without a session there is no receiver left.
            let _ = self.responder.refuse(&error).await;
        }
        self.answered = true;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let Responder {
            shared,
            session,
            request,
        } = &self.responder;
        shared.send_now(|active| {
            if active.session.id() == *session {
                let uri = "wamp.error.runtime_error";
                let out = &mut active.outgoing;
                active
                    .session
                    .yield_error(*request, uri, Payload::EMPTY, out)?;
            }
            Ok(())
        });
    }
}

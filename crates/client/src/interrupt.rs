//! The cancellation of a call, as its handler sees it.

use crosstie_wamp::{CancelMode, InterruptOptions};
use tokio::sync::watch;

use crate::error::ApplicationError;

/// Signals that the call was cancelled; see [`Invocation::interrupts`](crate::Invocation::interrupts).
#[derive(Clone, Debug)]
pub struct Interrupts {
    pub(crate) receiver: watch::Receiver<Option<Interrupt>>,
}

/// The reason why a call's answer is not wanted any more.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The mode that the caller requested.
    pub mode: Option<CancelMode>,
    /// The error URI to answer with, for instance `wamp.error.canceled`.
    pub reason: String,
}

impl Interrupts {
    /// Waits until the call is cancelled.
    pub async fn interrupted(&mut self) -> Interrupt {
        // The sender ends with the session: then no answer can be sent any more.
        match self.receiver.wait_for(Option::is_some).await {
            Ok(interrupt) => interrupt.clone().unwrap_or_else(Interrupt::lost),
            Err(_) => Interrupt::lost(),
        }
    }

    /// Whether the call was cancelled.
    pub fn is_interrupted(&self) -> bool {
        self.receiver.has_changed().is_err() || self.receiver.borrow().is_some()
    }
}

impl Interrupt {
    pub(crate) fn new(options: &InterruptOptions<'_>) -> Self {
        let reason = options.reason.as_deref();
        Self {
            mode: options.mode,
            reason: reason.unwrap_or("wamp.error.canceled").to_owned(),
        }
    }

    fn lost() -> Self {
        Self {
            mode: None,
            reason: "wamp.error.canceled".to_owned(),
        }
    }
}

impl From<Interrupt> for ApplicationError {
    fn from(interrupt: Interrupt) -> Self {
        Self::new(interrupt.reason, ())
    }
}

//! A running handler, as the session sees it.

use tokio::sync::{mpsc, watch};

use crate::arguments::Arguments;
use crate::interrupt::Interrupt;

/// The session's state of an invocation.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) interrupt: watch::Sender<Option<Interrupt>>,
    /// `None` after the last chunk.
    pub(crate) chunks: Option<mpsc::Sender<Arguments>>,
}

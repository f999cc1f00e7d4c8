//! The source document's pair as programs of their own: a callee that echoes, and a caller that
//! calls it one call after the other and prints the average of each batch. Guests of a node run
//! them, or anybody by hand.
//!
//! They stand on the drivers that `bench rpc` measures with, so that a call costs them the same.
//! What a bench need not do and a guest must: wait for a router and a procedure that come later,
//! and leave in good order when told to, or when the router leaves.

mod callee;
mod caller;
mod leave;
mod waiting;

pub use callee::callee;
pub use caller::{CallerOptions, caller};
pub use leave::Leave;

use crosstie_wamp::Serializer;

use crate::process::WorkerError;
use crate::subject::Url;
use crate::wamp::caller::PairOrder;

/// What both ends are told.
#[derive(Clone, Debug)]
pub struct EndOptions {
    pub url: Url,
    pub realm: String,
    pub procedure: String,
    /// By default MessagePack over RawSocket and JSON over WebSocket, the document's pairs.
    pub serializer: Option<Serializer>,
    /// Tells the end that it is wanted no more.
    pub leave: Leave,
}

impl EndOptions {
    fn order(&self) -> PairOrder {
        let usual = match self.url.websocket {
            true => Serializer::Json,
            false => Serializer::MsgPack,
        };
        let case = self.url.case(self.serializer.unwrap_or(usual), false);
        PairOrder {
            target: self.url.target(case, &self.realm),
            procedure: self.procedure.clone(),
            payload_bytes: 0,
        }
    }
}

/// Why an end gave up. To be told to leave is no error, and neither is a router's GOODBYE.
#[derive(Debug, thiserror::Error)]
pub enum RoundTripError {
    #[error("{0}")]
    Worker(#[from] WorkerError),
    #[error("{procedure}: the router answered {error}")]
    Refused { procedure: String, error: String },
    #[error("{procedure}: a call was answered with something else than its own argument")]
    Wrong { procedure: String },
    #[error("{procedure}: {faults}")]
    Faulty { procedure: String, faults: String },
    #[error("{procedure}: a call was not answered, although the connection stands")]
    Unanswered { procedure: String },
    #[error("the router closed the connection without a GOODBYE")]
    Closed,
}

//! The source document's pair as programs of their own: a callee that echoes, and a caller that calls it sequentially
//! and prints the average of each batch. A node runs them as guests, and so can a user.
//!
//! They use the drivers of `bench rpc`, so that a call costs them the same. Unlike a bench, a guest has to wait for a
//! router and a procedure that appear later, and leave in order on request, or when the router leaves.

mod callee;
mod caller;
mod leave;
mod wait;

pub use callee::callee;
pub use caller::{CallerOptions, caller};
pub use leave::Leave;

use crosstie_wamp::Serializer;

use crate::process::WorkerError;
use crate::subject::Url;
use crate::wamp::caller::PairOrder;

/// The options of both ends.
#[derive(Clone, Debug)]
pub struct EndOptions {
    pub url: Url,
    pub realm: String,
    pub procedure: String,
    /// By default MessagePack over RawSocket and JSON over WebSocket, the document's pairs.
    pub serializer: Option<Serializer>,
    /// The leave request for this end.
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

/// The reason why an end gave up. A leave request is not an error, and neither is a router's GOODBYE.
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

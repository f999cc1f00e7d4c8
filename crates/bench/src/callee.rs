//! The measured callee: registers one procedure and answers every invocation with what it brought.
//! All that one read found is answered in one write.

use crosstie_wamp::{Message, RegisterOptions, RequestId, YieldOptions};

use crate::caller::PairOrder;
use crate::drive::Traffic;
use crate::pipe::Pipe;
use crate::worker::WorkerError;

/// A joined callee, its procedure registered.
pub struct Callee {
    pipe: Pipe,
}

impl Callee {
    /// Connects, joins and registers.
    pub fn register(order: &PairOrder) -> Result<Self, WorkerError> {
        let mut pipe = Pipe::connect(&order.target)?;
        pipe.join(&order.target.realm)?;
        pipe.push(&Message::Register {
            request: RequestId(1),
            options: RegisterOptions::default(),
            procedure: order.procedure.as_str().into(),
        })?;
        pipe.flush()?;
        pipe.receive(|message, _| match message {
            Message::Registered { .. } => Ok(()),
            Message::Error { error, .. } => Err(WorkerError::Refused(format!(
                "REGISTER {}: {error}",
                order.procedure
            ))),
            other => Err(WorkerError::unexpected("REGISTERED", other)),
        })?;
        // The caller may take its time.
        pipe.wait_for_ever()?;
        Ok(Self { pipe })
    }

    /// What another thread can use to end [`Callee::serve`]: it says GOODBYE once told to.
    pub fn leaver(&self) -> Result<impl FnOnce() + Send + 'static, WorkerError> {
        self.pipe.leaver()
    }

    /// Answers until the router says GOODBYE or closes.
    pub fn serve(mut self) -> Result<Traffic, WorkerError> {
        loop {
            let mut goodbye = false;
            let received = self.pipe.receive(|message, output| match message {
                Message::Invocation {
                    request, payload, ..
                } => output.push(&Message::Yield {
                    request: *request,
                    options: YieldOptions::default(),
                    payload: *payload,
                }),
                Message::Goodbye { .. } => {
                    goodbye = true;
                    Ok(())
                }
                other => Err(WorkerError::unexpected("INVOCATION", other)),
            })?;
            if goodbye || !received {
                return Ok(self.pipe.traffic());
            }
            self.pipe.flush()?;
        }
    }
}

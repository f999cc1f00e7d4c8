//! The measured callee: registers one procedure and answers every invocation with its arguments. All invocations of one
//! read are answered in one write.

use crosstie_wamp::{Message, Payload, RegisterOptions, RequestId, YieldOptions};

use crate::load::Traffic;
use crate::process::WorkerError;
use crate::wamp::caller::PairOrder;
use crate::wamp::pipe::{GOODBYE_AND_OUT, Output, Pipe};

pub(crate) struct Callee {
    pipe: Pipe,
}

impl Callee {
    pub(crate) fn register(order: &PairOrder) -> Result<Self, WorkerError> {
        let mut pipe = Pipe::connect(&order.target)?;
        pipe.join(&order.target.realm)?;
        pipe.push(&Message::Register {
            request: RequestId(1),
            options: RegisterOptions::default(),
            procedure: order.procedure.as_str().into(),
        })?;
        pipe.flush()?;
        let mut registered = false;
        let received = pipe.receive(|message, output| match message {
            Message::Registered { .. } => {
                registered = true;
                Ok(())
            }
            // A caller that waits for the procedure may be that fast.
            Message::Invocation {
                request, payload, ..
            } if registered => answer(*request, *payload, output),
            Message::Error { error, .. } => Err(WorkerError::Refused(format!(
                "REGISTER {}: {error}",
                order.procedure
            ))),
            other => Err(WorkerError::unexpected("REGISTERED", other)),
        })?;
        if !received {
            return Err(WorkerError::Closed("answering REGISTER"));
        }
        pipe.flush()?;
        // The caller may take its time.
        pipe.wait_for_ever()?;
        Ok(Self { pipe })
    }

    /// A closure for another thread that ends [`Callee::serve`]: it sends GOODBYE.
    pub(crate) fn leaver(&mut self) -> Result<impl FnOnce() + Send + 'static, WorkerError> {
        self.pipe.leaver()
    }

    /// A closure for another thread, for a router that does not answer a GOODBYE.
    pub(crate) fn breaker(&self) -> Result<impl FnOnce() + Send + 'static, WorkerError> {
        self.pipe.breaker()
    }

    /// Answers until the router says GOODBYE or closes.
    pub(crate) fn serve(mut self) -> Result<Served, WorkerError> {
        loop {
            let mut goodbye = None;
            let received = self.pipe.receive(|message, output| match message {
                Message::Invocation {
                    request, payload, ..
                } => answer(*request, *payload, output),
                Message::Goodbye { reason, .. } => {
                    goodbye = Some(reason.to_string());
                    Ok(())
                }
                other => Err(WorkerError::unexpected("INVOCATION", other)),
            })?;
            let ending = match goodbye {
                Some(reason) => {
                    if reason != GOODBYE_AND_OUT {
                        // A router that has closed by now needs no answer.
                        let _ = self.pipe.answer_farewell();
                    }
                    Ending::Goodbye(reason)
                }
                None if !received => Ending::Closed,
                None => {
                    self.pipe.flush()?;
                    continue;
                }
            };
            let traffic = self.pipe.traffic();
            return Ok(Served { traffic, ending });
        }
    }
}

/// With the call's arguments.
fn answer(
    request: RequestId,
    payload: Payload<'_>,
    output: &mut Output,
) -> Result<(), WorkerError> {
    output.push(&Message::Yield {
        request,
        options: YieldOptions::default(),
        payload,
    })
}

/// A callee's results, and the reason of its end.
#[derive(Debug)]
pub(crate) struct Served {
    pub traffic: Traffic,
    pub ending: Ending,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The router's GOODBYE, with its reason.
    Goodbye(String),
    /// Only the connection ended.
    Closed,
}

//! The measured caller: keeps calls in flight, and checks every answer's content and order.

use std::collections::BTreeSet;
use std::time::Instant;

use crosstie_wamp::{CallOptions, Message, Payload, RequestId};
use serde::{Deserialize, Serialize};

use crate::load::{Answer, Exchange, Faults, Traffic, within_time};
use crate::process::WorkerError;
use crate::subject::Target;
use crate::wamp::argument::Arguments;
use crate::wamp::pipe::Pipe;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PairOrder {
    pub target: Target,
    pub procedure: String,
    /// Bytes of text besides each call's number.
    pub payload_bytes: usize,
}

pub(crate) struct Caller {
    pipe: Pipe,
    procedure: String,
    arguments: Arguments,
    tally: Tally,
    refusal: Option<String>,
}

impl Caller {
    pub(crate) fn join(order: &PairOrder) -> Result<Self, WorkerError> {
        let mut pipe = Pipe::connect(&order.target)?;
        pipe.join(&order.target.realm)?;
        Ok(Self {
            pipe,
            procedure: order.procedure.clone(),
            arguments: Arguments::new(order.target.serializer, order.payload_bytes)?,
            tally: Tally::default(),
            refusal: None,
        })
    }

    /// The error of the last failed call.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether the router still holds its end of the connection.
    pub(crate) fn is_connected(&mut self) -> bool {
        self.pipe.keep_alive().unwrap_or(false)
    }

    /// A closure for another thread that ends a call without an answer.
    pub(crate) fn breaker(&self) -> Result<impl FnOnce() + Send + 'static, WorkerError> {
        self.pipe.breaker()
    }

    /// Answers the router's GOODBYE.
    pub(crate) fn answer_farewell(&mut self) -> Result<(), WorkerError> {
        self.pipe.answer_farewell()
    }

    /// Sends GOODBYE and waits for the router's answer.
    pub(crate) fn leave(&mut self) -> Result<(), WorkerError> {
        self.pipe.leave()
    }
}

impl Exchange for Caller {
    fn push(&mut self) -> Result<(), WorkerError> {
        let request = self.tally.next();
        let serializer = self.arguments.serializer();
        let message = Message::Call {
            request: RequestId(request),
            options: CallOptions::default(),
            procedure: self.procedure.as_str().into(),
            payload: Payload::new(serializer, self.arguments.numbered(request), &[]),
        };
        self.pipe.push(&message)
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.pipe.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let (tally, arguments, refusal) = (&mut self.tally, &self.arguments, &mut self.refusal);
        let received = self.pipe.receive_timed(|message, _| {
            match message {
                Message::Result {
                    request, payload, ..
                } => {
                    if tally.answered(request.0) {
                        let right =
                            payload.kwargs.is_empty() && arguments.matches(payload.args, request.0);
                        answers.push(Answer::checked(right));
                    }
                }
                Message::Error { request, error, .. } => {
                    if tally.answered(request.0) {
                        answers.push(Answer::Failed);
                        *refusal = Some(error.to_string());
                    }
                }
                Message::Goodbye { reason, .. } => {
                    return Err(WorkerError::Dismissed(reason.to_string()));
                }
                other => return Err(WorkerError::unexpected("RESULT", other)),
            }
            Ok(())
        });
        within_time(received)
    }

    fn faults(&self) -> Faults {
        self.tally.faults
    }

    fn traffic(&self) -> Traffic {
        self.pipe.traffic()
    }
}

/// The open requests. Its callee answers in order, so answers must arrive in order.
#[derive(Debug, Default)]
struct Tally {
    /// All requests up to here were made.
    made: u64,
    /// All requests up to here were answered ...
    answered: u64,
    /// ... and these beyond it.
    early: BTreeSet<u64>,
    faults: Faults,
}

impl Tally {
    fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Whether this answers an open request.
    fn answered(&mut self, request: u64) -> bool {
        if request == self.answered + 1 && request <= self.made {
            self.answered = request;
            while self.early.remove(&(self.answered + 1)) {
                self.answered += 1;
            }
            return true;
        }
        let open = request > self.answered && request <= self.made && self.early.insert(request);
        match open {
            true => self.faults.reordered += 1,
            false => self.faults.doubled += 1,
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_tallied() {
        #[track_caller]
        fn check(made: u64, answers: &[u64], open: &str, reordered: u64, doubled: u64) {
            let mut tally = Tally::default();
            for _ in 0..made {
                tally.next();
            }
            let found: String = answers
                .iter()
                .map(|id| if tally.answered(*id) { 'y' } else { 'n' })
                .collect();
            assert_eq!(found, open);
            let expected = Faults {
                reordered,
                doubled,
                ..Faults::default()
            };
            assert_eq!(tally.faults, expected);
        }
        check(3, &[1, 2, 3], "yyy", 0, 0);
        check(3, &[1, 3, 2], "yyy", 1, 0);
        check(3, &[2, 3, 1, 2], "yyyn", 2, 1);
        check(3, &[1, 1], "yn", 0, 1);
        check(3, &[4, 0], "nn", 0, 2);
        check(0, &[1], "n", 0, 1);
    }
}

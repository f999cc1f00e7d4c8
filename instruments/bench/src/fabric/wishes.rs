//! Short-lived topics and procedures: the time until all nodes know of them.
//!
//! Each operation is a SUBSCRIBE or REGISTER of a new name; SUBSCRIBED or REGISTERED is its answer, and is followed by
//! the opposite, so that a round leaves a realm as it was.

use std::collections::VecDeque;
use std::time::Instant;

use crosstie_wamp::{Message, RegisterOptions, RequestId, SubscribeOptions};
use serde::{Deserialize, Serialize};

use crate::load::{Answer, Exchange, Traffic, within_time};
use crate::process::WorkerError;
use crate::subject::Target;
use crate::wamp::pipe::Pipe;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wish {
    Subscription,
    Registration,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WishesOrder {
    pub(crate) target: Target,
    pub(crate) wish: Wish,
    /// Prefix of every topic or procedure.
    pub(crate) name: String,
}

pub(crate) struct Wishes {
    pipe: Pipe,
    order: WishesOrder,
    /// Requests count up by one in a session, of any kind.
    requests: u64,
    waiting: VecDeque<RequestId>,
}

impl Wishes {
    pub(crate) fn join(order: WishesOrder) -> Result<Self, WorkerError> {
        let mut pipe = Pipe::connect(&order.target)?;
        pipe.join(&order.target.realm)?;
        Ok(Self {
            pipe,
            order,
            requests: 0,
            waiting: VecDeque::new(),
        })
    }
}

impl Exchange for Wishes {
    fn push(&mut self) -> Result<(), WorkerError> {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.waiting.push_back(request);
        let name = format!("{}.n{}", self.order.name, self.requests);
        self.pipe.push(&match self.order.wish {
            Wish::Subscription => Message::Subscribe {
                request,
                options: SubscribeOptions::default(),
                topic: name.as_str().into(),
            },
            Wish::Registration => Message::Register {
                request,
                options: RegisterOptions::default(),
                procedure: name.as_str().into(),
            },
        })
    }

    fn flush(&mut self) -> Result<(), WorkerError> {
        self.pipe.flush()
    }

    fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<Option<Instant>, WorkerError> {
        let (requests, waiting) = (&mut self.requests, &mut self.waiting);
        let received = self.pipe.receive_timed(|message, output| {
            let (answered, opposite) = match *message {
                Message::Subscribed {
                    request,
                    subscription,
                } => {
                    *requests += 1;
                    let opposite = Message::Unsubscribe {
                        request: RequestId(*requests),
                        subscription,
                    };
                    (request, opposite)
                }
                Message::Registered {
                    request,
                    registration,
                } => {
                    *requests += 1;
                    let opposite = Message::Unregister {
                        request: RequestId(*requests),
                        registration,
                    };
                    (request, opposite)
                }
                Message::Unsubscribed { .. } | Message::Unregistered { .. } => return Ok(()),
                ref other => {
                    return Err(WorkerError::unexpected("SUBSCRIBED or REGISTERED", other));
                }
            };
            answers.push(Answer::checked(waiting.pop_front() == Some(answered)));
            output.push(&opposite)
        });
        within_time(received)
    }

    fn traffic(&self) -> Traffic {
        self.pipe.traffic()
    }
}

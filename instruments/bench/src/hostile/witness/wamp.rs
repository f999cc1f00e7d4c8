//! Well-behaved WAMP sessions: a caller and its callee, a publisher and its subscriber, a caller whose calls time out,
//! and a client that joins and leaves.

use std::time::{Duration, Instant};

use crosstie_wamp::{
    CallOptions, Message, Payload, PublishOptions, RegisterOptions, RequestId, SubscribeOptions,
    YieldOptions,
};

use super::{Act, Note, Order};
use crate::process::WorkerError;
use crate::subject::Target;
use crate::wamp::pipe::Pipe;

/// Of the calls that get no answer.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The error of a call that has timed out.
const TIMED_OUT: &str = "wamp.error.timeout";

pub(super) fn acts(order: &Order) -> Vec<Box<dyn Act>> {
    let Some(target) = order.ways.any_wamp() else {
        return Vec::new();
    };
    let pair = |kind| {
        Box::new(Pair {
            kind,
            target: target.clone(),
            patience: order.patience,
            name: format!("crosstie.witness.p{}.{kind:?}", std::process::id()).to_lowercase(),
            kept: None,
            request: 1,
        })
    };
    let joiner = Joiner {
        target: target.clone(),
        patience: order.patience,
    };
    vec![
        pair(Kind::Call),
        pair(Kind::Event),
        pair(Kind::Timeout),
        Box::new(joiner),
    ]
}

/// The operation of a pair of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One calls, the other answers.
    Call,
    /// One publishes, the other has subscribed.
    Event,
    /// One calls, the other does not answer.
    Timeout,
}

/// Two sessions, one of which waits for the other.
struct Pair {
    kind: Kind,
    target: Target,
    patience: Duration,
    /// A procedure or topic of its own.
    name: String,
    kept: Option<[Pipe; 2]>,
    request: u64,
}

impl Act for Pair {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Call => "call",
            Kind::Event => "event",
            Kind::Timeout => "timeout",
        }
    }

    fn pause(&self) -> Duration {
        match self.kind {
            Kind::Call | Kind::Event => Duration::from_millis(5),
            Kind::Timeout => Duration::from_millis(20),
        }
    }

    fn act(&mut self, note: &mut Note) -> Result<(), WorkerError> {
        let mut pair = match self.kept.take() {
            Some(pair) => pair,
            None => self.open()?,
        };
        self.request += 1;
        let begun = match self.kind {
            Kind::Call => self.call(&mut pair, 0)?,
            Kind::Event => self.publish(&mut pair)?,
            Kind::Timeout => self.call(&mut pair, TIMEOUT.as_millis() as u64)? + TIMEOUT,
        };
        note.waited(self.name(), begun);
        self.kept = Some(pair);
        Ok(())
    }
}

impl Pair {
    fn open(&mut self) -> Result<[Pipe; 2], WorkerError> {
        let mut active = join(&self.target, self.patience)?;
        let mut passive = join(&self.target, self.patience)?;
        let question = match self.kind {
            Kind::Event => Message::Subscribe {
                request: RequestId(1),
                options: SubscribeOptions::default(),
                topic: (&self.name).into(),
            },
            Kind::Call | Kind::Timeout => Message::Register {
                request: RequestId(1),
                options: RegisterOptions {
                    force_reregister: true,
                    ..RegisterOptions::default()
                },
                procedure: (&self.name).into(),
            },
        };
        passive.push(&question)?;
        passive.flush()?;
        expect(&mut passive, "REGISTERED or SUBSCRIBED", |message| {
            matches!(
                message,
                Message::Registered { .. } | Message::Subscribed { .. }
            )
        })?;
        active.keep_alive()?;
        self.request = 0;
        Ok([active, passive])
    }

    /// Calls, and returns the time of the call after its end.
    fn call(&self, pair: &mut [Pipe; 2], timeout_ms: u64) -> Result<Instant, WorkerError> {
        let [caller, callee] = pair;
        let begun = Instant::now();
        caller.push(&Message::Call {
            request: RequestId(self.request),
            options: CallOptions {
                timeout_ms,
                ..CallOptions::default()
            },
            procedure: (&self.name).into(),
            payload: Payload::EMPTY,
        })?;
        caller.flush()?;
        let mut invoked = false;
        while !invoked {
            let received = callee.receive(|message, output| {
                let Message::Invocation { request, .. } = message else {
                    return Ok(());
                };
                invoked = true;
                if timeout_ms > 0 {
                    return Ok(());
                }
                output.push(&Message::Yield {
                    request: *request,
                    options: YieldOptions::default(),
                    payload: Payload::EMPTY,
                })
            })?;
            if !received {
                return Err(WorkerError::Closed("going on with the witness's callee"));
            }
            callee.flush()?;
        }
        expect(caller, "RESULT", |message| match message {
            Message::Result { .. } => timeout_ms == 0,
            Message::Error { error, .. } => timeout_ms > 0 && error.contains(TIMED_OUT),
            _ => false,
        })?;
        Ok(begun)
    }

    fn publish(&self, pair: &mut [Pipe; 2]) -> Result<Instant, WorkerError> {
        let [publisher, subscriber] = pair;
        let begun = Instant::now();
        publisher.push(&Message::Publish {
            request: RequestId(self.request),
            options: PublishOptions::default(),
            topic: (&self.name).into(),
            payload: Payload::EMPTY,
        })?;
        publisher.flush()?;
        expect(subscriber, "EVENT", |message| {
            matches!(message, Message::Event { .. })
        })?;
        // Handles its pings, or its end.
        match publisher.keep_alive()? {
            true => Ok(begun),
            false => Err(WorkerError::Closed("going on with the witness's publisher")),
        }
    }
}

/// A client that joins and leaves.
struct Joiner {
    target: Target,
    patience: Duration,
}

impl Act for Joiner {
    fn name(&self) -> &'static str {
        "join"
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(25)
    }

    fn act(&mut self, note: &mut Note) -> Result<(), WorkerError> {
        let begun = Instant::now();
        let mut pipe = join(&self.target, self.patience)?;
        pipe.leave()?;
        note.waited(self.name(), begun);
        Ok(())
    }
}

fn join(target: &Target, patience: Duration) -> Result<Pipe, WorkerError> {
    let mut pipe = Pipe::connect_patiently(target, patience)?;
    pipe.join(&target.realm)?;
    Ok(pipe)
}

/// Waits for one message, which must be `wanted`.
fn expect(
    pipe: &mut Pipe,
    expected: &'static str,
    wanted: impl Fn(&Message<'_>) -> bool,
) -> Result<(), WorkerError> {
    let mut found = false;
    while !found {
        let received = pipe.receive(|message, _| {
            found |= wanted(message);
            match message {
                Message::Error { error, .. } if !found => {
                    Err(WorkerError::Refused(format!("the witness: {error}")))
                }
                Message::Abort { reason, .. } | Message::Goodbye { reason, .. } => {
                    Err(WorkerError::Dismissed(reason.to_string()))
                }
                message if !found => Err(WorkerError::unexpected(expected, message)),
                _ => Ok(()),
            }
        })?;
        if !received && !found {
            return Err(WorkerError::Closed("going on with the witness"));
        }
    }
    Ok(())
}

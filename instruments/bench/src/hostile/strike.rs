//! An attack in progress: its order, the way to its subject, and what was permitted and refused.

use std::time::{Duration, Instant};

use crosstie_wamp::Serializer;
use serde::{Deserialize, Serialize};

use super::amqp::AmqpPeer;
use super::ways::{Pages, Ways};
use crate::broker::Broker;
use crate::process::WorkerError;
use crate::subject::{Target, Transport};
use crate::wamp::pipe::Pipe;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(super) attack: String,
    pub(super) ways: Ways,
    /// Factor for all sizes.
    pub(super) scale: f64,
    /// Of the attack `consumers`, before scaling.
    pub(super) consumers: usize,
    pub(super) limit: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The kinds of objects that it made, and their numbers.
    pub(super) made: Vec<(String, u64)>,
    /// The texts of its refusals, and their numbers.
    pub(super) refused: Vec<(String, u64)>,
    /// Its time was up before it was done.
    pub(super) cut: bool,
    pub(super) seconds: f64,
}

pub(super) struct Strike {
    pub(super) order: Order,
    pub(super) deadline: Instant,
    found: Found,
}

/// Features that some attacks need; they do not affect the others.
const FEATURES: &[&str] = &["progressive_call_invocations", "call_canceling"];

/// Far below a router's time for a refusal, far above a wake-up.
const MOMENT: Duration = Duration::from_millis(50);

impl Strike {
    pub(super) fn begin(order: Order, now: Instant) -> Self {
        Self {
            deadline: now + order.limit,
            order,
            found: Found::default(),
        }
    }

    /// The outcome after so long.
    pub(super) fn end(self, elapsed: Duration) -> Found {
        Found {
            seconds: elapsed.as_secs_f64(),
            ..self.found
        }
    }

    /// A size at the order's scale, at least 1.
    pub(super) fn size(&self, full: usize) -> usize {
        ((full as f64 * self.order.scale) as usize).max(1)
    }

    /// The same for connections and channels, of which an attack needs a minimum.
    pub(super) fn few(&self, full: usize) -> usize {
        self.size(full).max(full.min(4))
    }

    pub(super) fn broker(&self) -> Result<&Broker, WorkerError> {
        let broker = self.order.ways.broker.as_ref();
        broker.ok_or_else(|| WorkerError::handshake("no broker is known"))
    }

    pub(super) fn pages(&self) -> Result<&Pages, WorkerError> {
        let pages = self.order.ways.pages.as_ref();
        pages.ok_or_else(|| WorkerError::handshake("no pages are known"))
    }

    pub(super) fn web(&self) -> Result<&Pages, WorkerError> {
        let web = self.order.ways.web.as_ref();
        web.ok_or_else(|| WorkerError::handshake("no web services are known"))
    }

    pub(super) fn amqp(&self, channels: usize) -> Result<AmqpPeer, WorkerError> {
        let channels = u16::try_from(channels).unwrap_or(u16::MAX);
        AmqpPeer::open(self.broker()?, channels, self.deadline)
    }

    pub(super) fn target(
        &self,
        transport: Transport,
        serializer: Serializer,
    ) -> Result<&Target, WorkerError> {
        self.order.ways.wamp(transport, serializer).ok_or_else(|| {
            let framing = match transport {
                Transport::RawSocket => "RawSocket",
                Transport::WebSocket => "WebSocket",
                Transport::WebSocketBatched => "batched WebSocket",
                Transport::WebSocketDeflated | Transport::WebSocketDeflatedApart => {
                    "compressed WebSocket"
                }
            };
            WorkerError::handshake(format!("no {framing} with {serializer} is known"))
        })
    }

    /// A session over the cheapest transport available.
    pub(super) fn session(&self) -> Result<Pipe, WorkerError> {
        let target = self.order.ways.any_wamp();
        let target = target.ok_or_else(|| WorkerError::handshake("no WAMP router is known"))?;
        self.join(target)
    }

    pub(super) fn join(&self, target: &Target) -> Result<Pipe, WorkerError> {
        let mut pipe = Pipe::connect(target)?;
        pipe.join_with(&target.realm, FEATURES)?;
        pipe.limit_waiting(self.left().max(MOMENT))?;
        Ok(pipe)
    }

    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    pub(super) fn made(&mut self, what: &str, count: u64) {
        add(&mut self.found.made, what, count);
    }

    pub(super) fn refused(&mut self, why: &str) {
        self.refused_often(why, 1);
    }

    pub(super) fn refused_often(&mut self, why: &str, count: u64) {
        add(&mut self.found.refused, why, count);
    }

    /// Records the reason of an end: a refusal is a result, not a fault of the attack.
    pub(super) fn end_by(&mut self, error: WorkerError) -> Result<(), WorkerError> {
        match error {
            WorkerError::TimedOut => self.found.cut = true,
            WorkerError::Dismissed(why) | WorkerError::Refused(why) => self.refused(&why),
            WorkerError::Closed(_) => self.refused("the connection was closed"),
            other => return Err(other),
        }
        Ok(())
    }
}

fn add(counts: &mut Vec<(String, u64)>, what: &str, count: u64) {
    match counts.iter_mut().find(|(known, _)| known == what) {
        Some((_, counted)) => *counted += count,
        None => counts.push((what.to_owned(), count)),
    }
}

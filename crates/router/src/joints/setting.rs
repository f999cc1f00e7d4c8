//! The two ends of a joint, and the operations that all kinds of joints share.

use std::sync::Arc;

use crosstie_amqp::method::{BasicConsume, BasicQos, ExchangeDeclare, QueueBind, QueueDeclare};
use crosstie_amqp::{Table, TableBuf, Value as Field};
use crosstie_broker::resident::{Residence, Whose};
use crosstie_config as model;
use crosstie_joints::Arguments;
use crosstie_realms::resident::{Manner, Place, Rooms};
use crosstie_routing::Identity;
use crosstie_wamp::{Payload, Serializer};
use tokio::runtime::Handle;

use super::bond::Bond;
use super::course::Course;
use super::deliveries::{Delivery, Incoming};
use crate::joint_counts::{Count, JointCounts};
use crate::joint_state::JointState;
use crate::registry::Registry;

/// A joint, with its place in a realm and its connection to a vhost.
pub(super) struct Setting {
    pub(super) state: Arc<Registry>,
    pub(super) joint: model::Joint,
    pub(super) place: Place,
    pub(super) counts: Arc<JointCounts>,
    /// The status for operators.
    pub(super) known: Arc<JointState>,
    pub(super) runtime: Handle,
}

/// The serializer of a joint's session: bodies are JSON already.
pub(super) const SERIALIZER: Serializer = Serializer::Json;

/// Overhead of a WAMP message over an AMQP body: its head, and the growth of JSON in another encoding.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Expiry of a queue without consumers, as in oslo.messaging.
const QUEUE_EXPIRES_MS: i32 = 1_800_000;

impl Setting {
    pub(super) fn new(state: &Arc<Registry>, known: Arc<JointState>, runtime: Handle) -> Arc<Self> {
        let joint = known.joint.clone();
        let manner = Manner {
            identity: Identity::new(joint.id.as_str(), joint.role.as_str(), "internal", "joint"),
            is_shown: true,
            serializer: SERIALIZER,
            message_bytes_max: joint.body_bytes_max + HEAD_BYTES_MAX,
            is_judged: true,
            runtime: runtime.clone(),
        };
        let rooms = Arc::clone(&state.realms) as Arc<dyn Rooms>;
        Arc::new(Self {
            state: Arc::clone(state),
            place: Place::new(rooms, &joint.realm, manner),
            joint,
            counts: Arc::clone(&known.counts),
            known,
            runtime,
        })
    }

    /// Enters the vhost; `handle` gets the input.
    pub(super) async fn bond(
        &self,
        handle: impl FnMut(Incoming) + Send + 'static,
    ) -> Result<Bonded, String> {
        let joint = &self.joint;
        let residence = Residence {
            user: Whose::Own(&joint.user),
            vhost: &joint.vhost,
            name: format!("joint {}", joint.id),
        };
        let bytes_max = joint.body_bytes_max;
        let bond = Bond::open(&self.state, residence, bytes_max, &self.runtime, handle).await?;
        Ok(Bonded(bond))
    }

    /// Enters the vhost to take deliveries, in order; returned messages are only counted.
    pub(super) async fn consuming_bond(&self) -> Result<(Bonded, Deliveries), String> {
        let (sender, deliveries) = tokio::sync::mpsc::unbounded_channel();
        let counts = Arc::clone(&self.counts);
        let handle = move |incoming| match incoming {
            // The receiver may be gone; the deliveries then return to their queue with the bond.
            Incoming::Delivery(delivery) => drop(sender.send(delivery)),
            Incoming::Returned { .. } => counts.count(Count::Dropped),
        };
        Ok((self.bond(handle).await?, deliveries))
    }

    /// Marks the joint as connected.
    pub(super) fn say_ready(&self) {
        self.known.note_ready();
        tracing::info!("Joint '{}' is there", self.joint.id);
    }

    /// A message's way with this joint; `None` if that is one too many.
    pub(super) fn pass(&self, before: Course) -> Option<Course> {
        before.next(self.joint.hops_max)
    }
}

/// Deliveries that wait, limited by the prefetch count.
pub(super) type Deliveries = tokio::sync::mpsc::UnboundedReceiver<Delivery>;

/// A bond that is closed when its joint restarts.
pub(super) struct Bonded(Arc<Bond>);

impl std::ops::Deref for Bonded {
    type Target = Arc<Bond>;

    fn deref(&self) -> &Arc<Bond> {
        &self.0
    }
}

impl Drop for Bonded {
    fn drop(&mut self) {
        self.0.close("the joint restarts");
    }
}

impl Bond {
    /// Declares an exchange, if configured.
    pub(super) async fn declare_exchange(
        &self,
        exchange: &model::JointExchange,
    ) -> Result<(), String> {
        let declare = ExchangeDeclare {
            exchange: &exchange.name,
            kind: &exchange.kind,
            passive: !exchange.is_declared,
            durable: exchange.is_durable,
            ..ExchangeDeclare::default()
        };
        self.ask(&declare).await
    }

    /// Declares the exchange of a target, as all its clients do.
    pub(super) async fn declare_target(
        &self,
        target: &model::JointTarget,
        is_fanout: bool,
    ) -> Result<(), String> {
        let name = match is_fanout {
            true => target.fanout_exchange(),
            false => target.exchange.clone(),
        };
        let declare = ExchangeDeclare {
            exchange: &name,
            kind: if is_fanout { "fanout" } else { "topic" },
            // oslo.messaging's fanout exchanges are deleted with their last queue, durable or not.
            durable: !is_fanout && target.is_durable,
            auto_delete: is_fanout,
            ..ExchangeDeclare::default()
        };
        self.ask(&declare).await
    }

    pub(super) async fn declare_queue(
        &self,
        queue: &str,
        is_durable: bool,
        arguments: Table<'_>,
    ) -> Result<(), String> {
        let declare = QueueDeclare {
            queue,
            durable: is_durable,
            arguments,
            ..QueueDeclare::default()
        };
        self.ask(&declare).await
    }

    /// Declares a queue that is deleted with this bond.
    pub(super) async fn declare_own_queue(&self, queue: &str) -> Result<(), String> {
        let declare = QueueDeclare {
            queue,
            exclusive: true,
            auto_delete: true,
            ..QueueDeclare::default()
        };
        self.ask(&declare).await
    }

    pub(super) async fn bind(
        &self,
        queue: &str,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), String> {
        let bind = QueueBind::of(queue).to(exchange, routing_key);
        self.ask(&bind).await
    }

    /// Limits the number of unacknowledged deliveries.
    pub(super) async fn prefetch(&self, count: u16) -> Result<(), String> {
        let qos = BasicQos {
            prefetch_count: count,
            // For all consumers of the channel together.
            global: true,
            ..BasicQos::default()
        };
        self.ask(&qos).await
    }

    pub(super) async fn consume(&self, queue: &str, no_ack: bool) -> Result<(), String> {
        let consume = BasicConsume {
            queue,
            no_ack,
            ..BasicConsume::default()
        };
        self.ask(&consume).await
    }
}

/// The arguments of a queue that expires without consumers.
pub(super) fn expiring() -> TableBuf {
    TableBuf::new().with("x-expires", Field::I32(QUEUE_EXPIRES_MS))
}

/// An identifier in oslo.messaging's form.
pub(super) fn identifier() -> String {
    use crosstie_front::seed::seed;
    format!("{:016x}{:016x}", seed(), seed())
}

/// A payload that borrows these buffers.
pub(super) fn payload<'p>(args: &'p [u8], kwargs: &'p [u8]) -> Payload<'p> {
    Payload {
        serializer: SERIALIZER,
        args,
        kwargs,
    }
}

/// An error's arguments: a text.
pub(super) fn said(text: impl Into<String>) -> Arguments {
    Arguments::of_value(text.into().into())
}

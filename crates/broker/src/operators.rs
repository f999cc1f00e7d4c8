//! AMQP for operators: listings and actions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crosstie_amqp::ReplyCode;
use crosstie_auth::Users;
use crosstie_config::{Json, Skipped};
use crosstie_metadata::{Change, Metadata, Outcome, Refusal};
use crosstie_queues::DeleteIf;
use tokio::runtime::Handle;

use super::broker::Broker;
use super::definitions;
use super::flow::Resource;
use super::inspection::{ChannelView, ConnectionView};
use super::operator_error::OperatorError;
use super::replicated::{Means, Move, Moved, Order, Recover, Recovered, Reply};
use super::status::{
    Alarm, BindingStatus, ConnectionStatus, ExchangeStatus, QueueStatus, ReplicatedStatus,
    VhostStatus,
};
use super::vhost::SharedVhost;

/// A router's AMQP for operators. Any thread but the router's own may use this.
pub struct Operators {
    broker: Arc<Broker>,
    /// The runtime that continues to send after a socket is full.
    context: Handle,
}

impl Operators {
    pub fn new(broker: Arc<Broker>, context: Handle) -> Self {
        Self { broker, context }
    }

    /// The vhosts, by name.
    pub fn vhosts(&self) -> Vec<VhostStatus> {
        let vhosts = self.broker.vhosts();
        vhosts.iter().map(|vhost| vhost.status()).collect()
    }

    /// The queues of a vhost, by name.
    pub fn queues(&self, vhost: &str) -> Result<Vec<QueueStatus>, OperatorError> {
        Ok(self.vhost(vhost)?.queues())
    }

    /// The exchanges of a vhost, by name.
    pub fn exchanges(&self, vhost: &str) -> Result<Vec<ExchangeStatus>, OperatorError> {
        Ok(self.vhost(vhost)?.exchanges())
    }

    /// The bindings of a vhost, by source and destination.
    pub fn bindings(&self, vhost: &str) -> Result<Vec<BindingStatus>, OperatorError> {
        Ok(self.vhost(vhost)?.bindings())
    }

    /// The connections of all vhosts, oldest first.
    pub fn connections(&self) -> Vec<ConnectionStatus> {
        self.broker.connections()
    }

    /// Creates a vhost. `on_done` is called once the store has it, with whether it is new.
    pub fn add_vhost(
        &self,
        vhost: &str,
        on_done: impl FnOnce(Result<bool, OperatorError>) + Send + 'static,
    ) {
        self.broker.add_vhost(vhost, on_done);
    }

    /// Deletes a vhost with all that it has, and closes its connections. `on_done` is called once the store has nothing
    /// of it.
    pub fn delete_vhost(
        &self,
        vhost: &str,
        on_done: impl FnOnce(Result<bool, OperatorError>) + Send + 'static,
    ) {
        let broker = Arc::clone(&self.broker);
        let context = self.context.clone();
        let on_deleted = move |outcome: Result<bool, OperatorError>| {
            // Not on the store's thread, which a change may wait for.
            context.spawn_blocking(move || {
                if outcome.is_ok() {
                    broker.forget_vhost_entries();
                }
                on_done(outcome);
            });
        };
        self.act(|| self.broker.delete_vhost(vhost, on_deleted));
    }

    /// Users, permissions, limits and global parameters at present.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.broker.metadata.now()
    }

    /// Changes them: durably, and for present connections too. Waits for the store, so that no thread that serves
    /// clients may call this.
    pub fn change(&self, change: Change) -> Result<Outcome, Refusal> {
        self.act(|| self.broker.change(change))
    }

    /// Imports RabbitMQ's definitions, or checks them only; with `only`, into that vhost. Returns what is left out. Waits for
    /// the store, as [`Self::change`] does.
    pub fn import(
        &self,
        json: &[u8],
        only: Option<&str>,
        is_check: bool,
    ) -> Result<Vec<Skipped>, Refusal> {
        self.act(|| self.broker.import(json, only, is_check))
    }

    /// The same without waiting: a thread of its own calls `on_done`.
    pub fn import_later(
        &self,
        json: Vec<u8>,
        only: Option<String>,
        is_check: bool,
        on_done: impl FnOnce(Result<Vec<Skipped>, Refusal>) + Send + 'static,
    ) {
        let broker = Arc::clone(&self.broker);
        let context = self.context.clone();
        self.context.spawn_blocking(move || {
            let operators = Self::new(broker, context);
            on_done(operators.import(&json, only.as_deref(), is_check));
        });
    }

    /// RabbitMQ's definitions of all vhosts that are open here.
    pub fn export(&self) -> Json {
        definitions::export::all(&self.broker)
    }

    /// The same of one vhost.
    pub fn export_vhost(&self, name: &str) -> Result<Json, OperatorError> {
        let vhost = self.vhost(name)?;
        Ok(definitions::export::of_vhost(&self.broker, &vhost))
    }

    /// The same of all vhosts, or of one: a thread of its own calls `on_done`.
    pub fn export_later(
        &self,
        vhost: Option<String>,
        on_done: impl FnOnce(Result<Json, OperatorError>) + Send + 'static,
    ) {
        let broker = Arc::clone(&self.broker);
        let context = self.context.clone();
        self.context.spawn_blocking(move || {
            let operators = Self::new(broker, context);
            on_done(match vhost {
                None => Ok(operators.export()),
                Some(vhost) => operators.export_vhost(&vhost),
            });
        });
    }

    /// The connections of all vhosts in detail, oldest first.
    pub fn connection_views(&self) -> Vec<ConnectionView> {
        self.broker.connection_views()
    }

    /// The channels of all connections.
    pub fn channel_views(&self) -> Vec<ChannelView> {
        self.broker.channel_views()
    }

    /// The vhosts that are open on this node, by name.
    pub fn open_vhosts(&self) -> Vec<Arc<SharedVhost>> {
        self.broker.vhosts()
    }

    /// The vhost of that name, if it is open on this node.
    pub fn open_vhost(&self, name: &str) -> Result<Arc<SharedVhost>, OperatorError> {
        self.vhost(name)
    }

    /// The present users.
    pub fn users(&self) -> Arc<Users> {
        self.broker.users.now()
    }

    /// See [`Broker::order_memory_bytes_max`].
    pub fn order_memory_bytes_max(&self, bytes: usize) {
        self.act(|| self.broker.order_memory_bytes_max(bytes));
    }

    /// See [`Broker::order_disk_free_bytes_min`].
    pub fn order_disk_free_bytes_min(&self, bytes: u64, on_looked: impl FnOnce() + Send + 'static) {
        self.broker.order_disk_free_bytes_min(bytes, on_looked);
    }

    /// See [`Broker::order_alarm`].
    pub fn order_alarm(&self, resource: Resource, is_raised: bool) {
        self.act(|| self.broker.order_alarm(resource, is_raised));
    }

    /// See [`Broker::order_channels_max`].
    pub fn order_channels_max(&self, channels_max: u16) {
        self.broker.order_channels_max(channels_max);
    }

    /// The ordered maximum number of channels, or else that of the listener that was opened last.
    pub fn channels_max(&self) -> u32 {
        self.broker.shared.channels_max.now()
    }

    /// The runtime of the broker's own tasks.
    pub fn context(&self) -> &Handle {
        &self.context
    }

    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// The same without waiting: a thread of its own calls `on_done`.
    pub fn change_later(
        &self,
        change: Change,
        on_done: impl FnOnce(Result<Outcome, Refusal>) + Send + 'static,
    ) {
        let broker = Arc::clone(&self.broker);
        let context = self.context.clone();
        self.context.spawn_blocking(move || {
            let operators = Self::new(broker, context);
            on_done(operators.change(change));
        });
    }

    /// Removes the ready messages of a queue. Returns their number.
    pub fn purge_queue(&self, vhost: &str, queue: &str) -> Result<u64, OperatorError> {
        let shared = self.vhost(vhost)?;
        let purged = self.act(|| shared.purge_queue(queue));
        purged.ok_or_else(|| no_queue(vhost, queue))
    }

    /// Deletes a queue, used or not unless there is a condition. Returns the number of its ready messages.
    pub fn delete_queue(
        &self,
        vhost: &str,
        queue: &str,
        condition: DeleteIf,
    ) -> Result<u64, OperatorError> {
        let shared = self.vhost(vhost)?;
        let deleted = self.act(|| shared.delete_queue(queue, condition));
        let refused = |why: &str| OperatorError::Refused {
            why: why.to_owned(),
        };
        deleted.map_err(|error| match error {
            crosstie_queues::OperatorError::InUse => refused("Queue is in use"),
            crosstie_queues::OperatorError::NotEmpty => refused("Queue is not empty"),
            _ => no_queue(vhost, queue),
        })
    }

    /// Deletes an exchange with its bindings, used or not.
    pub fn delete_exchange(&self, vhost: &str, exchange: &str) -> Result<(), OperatorError> {
        let shared = self.vhost(vhost)?;
        let deleted = self.act(|| shared.delete_exchange(exchange));
        deleted.map_err(|fault| match fault.code {
            ReplyCode::NotFound => OperatorError::NoSuchExchange {
                vhost: vhost.to_owned(),
                exchange: exchange.to_owned(),
            },
            _ => OperatorError::Refused { why: fault.text },
        })
    }

    /// Closes a connection with 320 `CONNECTION_FORCED` and the reason.
    pub fn close_connection(&self, number: u64, reason: &str) -> Result<(), OperatorError> {
        self.act(|| self.broker.close_connection(number, reason))
    }

    /// The same with a text for the client in the place of a reason, unless the connection is gone or closing already.
    pub fn close_connection_saying(&self, number: u64, text: &str) {
        self.act(|| self.broker.close_connection_saying(number, text));
    }

    /// The active alarms.
    pub fn alarms(&self) -> Vec<Alarm> {
        self.broker.alarms()
    }

    /// The exchanges with messages that reached no queue: vhost, name, number of these messages; most first.
    pub fn unroutable(&self) -> Vec<(Arc<str>, Arc<str>, u64)> {
        let vhosts = self.broker.vhosts().into_iter();
        let counted = vhosts.flat_map(|vhost| {
            let of_vhost = vhost.unroutable().into_iter();
            let name = Arc::clone(vhost.name());
            of_vhost.map(move |(exchange, messages)| (Arc::clone(&name), exchange, messages))
        });
        let mut counted: Vec<_> = counted.collect();
        counted.sort_unstable_by(|a, b| (b.2, &a.0, &a.1).cmp(&(a.2, &b.0, &b.1)));
        counted
    }

    /// Copies the store to a file that must not exist yet, while the router serves. The store's thread calls `on_done`
    /// with the size of the copy in bytes, or with the error.
    pub fn back_up(
        &self,
        path: PathBuf,
        on_done: impl FnOnce(Result<u64, String>) + Send + 'static,
    ) {
        self.broker.back_up(path, |made| {
            on_done(
                made.map(|made| made.bytes)
                    .map_err(|error| error.to_string()),
            );
        });
    }

    /// The replicated vhosts, by name.
    pub fn replicated(&self) -> Vec<ReplicatedStatus> {
        let replicated = self.broker.replicated().iter();
        replicated.map(|found| found.status()).collect()
    }

    /// Moves a replicated vhost to the given node, or to any ready node, within the timeout. The vhost's thread calls
    /// `on_done` with the outcome.
    pub fn move_vhost(
        &self,
        vhost: &str,
        to: Option<String>,
        within: Duration,
        on_done: impl FnOnce(Result<Moved, String>) + Send + 'static,
    ) {
        let reply = Reply::new(on_done);
        self.order(vhost, Order::Move(Move { to, within, reply }));
    }

    /// Recovers the log of a replicated vhost without an owner, or only reports what would be done. The vhost's thread
    /// calls `on_done` with the outcome.
    pub fn recover_vhost(
        &self,
        vhost: &str,
        means: Means,
        is_meant: bool,
        on_done: impl FnOnce(Result<Recovered, String>) + Send + 'static,
    ) {
        let reply = Reply::new(on_done);
        let recover = Recover {
            means,
            is_meant,
            reply,
        };
        self.order(vhost, Order::Recover(recover));
    }

    fn order(&self, vhost: &str, order: Order) {
        match self.broker.replicated_of(vhost) {
            Some(found) => found.order(order),
            None if self.broker.has_vhost(vhost) => {
                order.refuse(&format!("vhost '{vhost}' is not replicated"));
            }
            None => order.refuse(&format!("there is no vhost '{vhost}'")),
        }
    }

    /// Runs an action that sends, then flushes the sockets.
    fn act<R>(&self, act: impl FnOnce() -> R) -> R {
        let _context = self.context.enter();
        let done = act();
        crosstie_transport::uncork_all();
        done
    }

    fn vhost(&self, name: &str) -> Result<Arc<SharedVhost>, OperatorError> {
        if !self.broker.has_vhost(name) {
            return Err(OperatorError::NoSuchVhost {
                vhost: name.to_owned(),
            });
        }
        let found = self.broker.vhost(name);
        found.map_err(|ownership| OperatorError::Refused {
            why: ownership.refusal(name),
        })
    }
}

fn no_queue(vhost: &str, queue: &str) -> OperatorError {
    OperatorError::NoSuchQueue {
        vhost: vhost.to_owned(),
        queue: queue.to_owned(),
    }
}

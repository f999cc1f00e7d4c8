//! Performs an operation on a vhost.

use crosstie_amqp::method::{
    BasicAck, BasicCancel, BasicConsume, BasicGet, BasicNack, BasicPublish, BasicQos, BasicRecover,
    BasicReject, ConfirmSelect, ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare,
    QueueDelete, QueuePurge, QueueUnbind, TxCommit, TxRollback, TxSelect,
};
use crosstie_amqp::{BasicProperties, Method, Properties, TableBuf, Value};
use crosstie_queues::{Fault, Time};

use super::{VhostSimulation, restart};
use crate::queues::operation::{Channel, Operation, QueueKind, Settlement};

impl VhostSimulation {
    /// Performs it; returns the reply code, if it failed.
    pub(super) fn perform(&mut self, operation: &Operation) -> Result<Result<(), u16>, String> {
        let now = Time(self.model.now_ms);
        match operation {
            Operation::Connect { connection } => {
                let key = self.vhost.open_connection(*connection, restart::client());
                self.connections.insert(*connection, key);
            }
            Operation::Disconnect { connection } => {
                self.channels
                    .retain(|channel, _| channel.connection != *connection);
                self.out.refusing.remove(connection);
                if let Some(key) = self.connections.remove(connection) {
                    self.vhost.close_connection(now, key, &mut self.out);
                }
            }
            Operation::OpenChannel(channel) => {
                let connection = self.connections[&channel.connection];
                let opened = self.vhost.open_channel(connection, channel.number);
                let key = opened.map_err(|fault| fault.text)?;
                self.channels.insert(*channel, key);
            }
            Operation::CloseChannel(channel) => {
                if let Some(key) = self.channels.remove(channel) {
                    self.vhost.close_channel(now, key, &mut self.out);
                }
            }
            Operation::Publish { .. } => return Ok(code(self.publish(operation))),
            // `step` advances the clock.
            Operation::Pass { .. } => {}
            Operation::Refuse {
                connection,
                refusing: true,
            } => {
                self.out.refusing.insert(*connection);
            }
            Operation::Refuse { connection, .. } => {
                self.out.refusing.remove(connection);
                let key = self.connections[connection];
                self.vhost.resume(now, key, &mut self.out);
            }
            Operation::Commit { inputs } => {
                for _ in 0..*inputs {
                    self.commit()?;
                }
            }
            Operation::FailCommit { inputs } => {
                let last = &self.pending[inputs - 1];
                self.failed = last.input;
                self.vhost
                    .handle_not_committed(now, last.position, &mut self.out);
            }
            Operation::Crash => self.crash()?,
            Operation::Stop => self.stop()?,
            _ => return Ok(code(self.handle(operation))),
        }
        Ok(Ok(()))
    }

    fn publish(&mut self, operation: &Operation) -> Result<(), Fault> {
        let Operation::Publish {
            from,
            exchange,
            key,
            message,
            persistent,
            mandatory,
            expiration_ms,
            priority,
        } = operation
        else {
            return Ok(());
        };
        let expiration = expiration_ms.map(|expiration| expiration.to_string());
        let mut properties = Vec::new();
        BasicProperties {
            delivery_mode: Some(if *persistent { 2 } else { 1 }),
            expiration: expiration.as_deref(),
            priority: *priority,
            ..BasicProperties::default()
        }
        .write(&mut properties);
        let publish = BasicPublish {
            exchange,
            routing_key: key,
            mandatory: *mandatory,
            immediate: false,
        };
        self.vhost.publish(
            Time(self.model.now_ms),
            self.channels[from],
            &publish,
            Properties::from_bytes(&properties).unwrap_or(Properties::EMPTY),
            message.to_string().as_bytes(),
            &mut self.out,
        )
    }

    /// Everything that is one method.
    fn handle(&mut self, operation: &Operation) -> Result<(), Fault> {
        let arguments = arguments_of(operation);
        let method = method_of_names(operation, &arguments)
            .or_else(|| method_of_bindings(operation))
            .or_else(|| method_of_channel(operation, &arguments));
        // Other operations are no methods.
        let Some((from, method)) = method else {
            return Ok(());
        };
        let (now, key) = (Time(self.model.now_ms), self.channels[from]);
        self.vhost.handle(now, key, &method, &mut self.out)
    }
}

fn arguments_of(operation: &Operation) -> TableBuf {
    match operation {
        Operation::DeclareQueue { kind, .. } => arguments_of_queue(kind),
        Operation::Consume {
            priority: Some(priority),
            ..
        } => TableBuf::new().with("x-priority", Value::I32(*priority)),
        _ => TableBuf::new(),
    }
}

/// Methods about exchanges and queues.
fn method_of_names<'o>(
    operation: &'o Operation,
    arguments: &'o TableBuf,
) -> Option<(&'o Channel, Method<'o>)> {
    Some(match operation {
        Operation::DeclareExchange {
            from,
            name,
            kind,
            durable,
        } => {
            let declare = ExchangeDeclare {
                exchange: name,
                kind,
                durable: *durable,
                ..ExchangeDeclare::default()
            };
            (from, declare.into())
        }
        Operation::DeleteExchange { from, name } => {
            let delete = ExchangeDelete {
                exchange: name,
                ..ExchangeDelete::default()
            };
            (from, delete.into())
        }
        Operation::DeclareQueue { from, name, kind } => {
            let declare = QueueDeclare {
                queue: name,
                durable: kind.durable,
                exclusive: kind.exclusive,
                auto_delete: kind.auto_delete,
                arguments: arguments.as_table(),
                ..QueueDeclare::default()
            };
            (from, declare.into())
        }
        Operation::DeleteQueue { from, name } => {
            let delete = QueueDelete {
                queue: name,
                ..QueueDelete::default()
            };
            (from, delete.into())
        }
        Operation::Purge { from, name } => {
            let purge = QueuePurge {
                queue: name,
                no_wait: false,
            };
            (from, purge.into())
        }
        _ => return None,
    })
}

fn method_of_bindings(operation: &Operation) -> Option<(&Channel, Method<'_>)> {
    Some(match operation {
        Operation::Bind {
            from,
            exchange,
            queue,
            key,
        } => {
            let bind = QueueBind::of(queue).to(exchange, key);
            (from, bind.into())
        }
        Operation::Unbind {
            from,
            exchange,
            queue,
            key,
        } => {
            let unbind = QueueUnbind {
                queue,
                exchange,
                routing_key: key,
                ..QueueUnbind::default()
            };
            (from, unbind.into())
        }
        _ => return None,
    })
}

/// Methods of a channel that publish, consume and settle.
fn method_of_channel<'o>(
    operation: &'o Operation,
    arguments: &'o TableBuf,
) -> Option<(&'o Channel, Method<'o>)> {
    Some(match operation {
        Operation::ConfirmSelect(from) => (from, ConfirmSelect::default().into()),
        Operation::TxSelect(from) => (from, TxSelect {}.into()),
        Operation::TxCommit(from) => (from, TxCommit {}.into()),
        Operation::TxRollback(from) => (from, TxRollback {}.into()),
        Operation::Qos {
            from,
            count,
            global,
        } => {
            let qos = BasicQos {
                prefetch_size: 0,
                prefetch_count: *count,
                global: *global,
            };
            (from, qos.into())
        }
        Operation::Consume {
            from,
            queue,
            tag,
            no_ack,
            ..
        } => {
            let consume = BasicConsume {
                queue,
                consumer_tag: tag,
                no_ack: *no_ack,
                arguments: arguments.as_table(),
                ..BasicConsume::default()
            };
            (from, consume.into())
        }
        Operation::Cancel { from, tag } => {
            let cancel = BasicCancel {
                consumer_tag: tag,
                no_wait: false,
            };
            (from, cancel.into())
        }
        Operation::Get {
            from,
            queue,
            no_ack,
        } => {
            let get = BasicGet {
                queue,
                no_ack: *no_ack,
            };
            (from, get.into())
        }
        Operation::Settle {
            from,
            tag,
            multiple,
            settlement,
        } => (from, settling(*tag, *multiple, *settlement)),
        Operation::Recover(from) => (from, BasicRecover { requeue: true }.into()),
        _ => return None,
    })
}

fn settling(delivery_tag: u64, multiple: bool, settlement: Settlement) -> Method<'static> {
    match settlement {
        Settlement::Accept => BasicAck {
            delivery_tag,
            multiple,
        }
        .into(),
        // Both ways to say it.
        Settlement::Reject if !multiple && delivery_tag.is_multiple_of(2) => BasicReject {
            delivery_tag,
            requeue: false,
        }
        .into(),
        _ => BasicNack {
            delivery_tag,
            multiple,
            requeue: settlement == Settlement::Requeue,
        }
        .into(),
    }
}

fn arguments_of_queue(kind: &QueueKind) -> TableBuf {
    let mut table = TableBuf::new();
    let number = |value: usize| Value::I64(value as i64);
    if kind.is_quorum {
        table = table.with("x-queue-type", Value::LongString(b"quorum"));
    }
    if let Some(ttl) = kind.message_ttl_ms {
        table = table.with("x-message-ttl", number(ttl as usize));
    }
    if let Some(max) = kind.length_max {
        table = table.with("x-max-length", number(max));
    }
    if kind.rejects_publish {
        table = table.with("x-overflow", Value::LongString(b"reject-publish"));
    }
    if let Some(queue) = &kind.dead_letter_queue {
        table = table
            .with("x-dead-letter-exchange", Value::LongString(b""))
            .with(
                "x-dead-letter-routing-key",
                Value::LongString(queue.as_bytes()),
            );
    }
    if kind.keeps_letters {
        table = table.with(
            "x-dead-letter-strategy",
            Value::LongString(b"at-least-once"),
        );
    }
    if let Some(limit) = kind.delivery_limit {
        table = table.with("x-delivery-limit", number(limit as usize));
    }
    if kind.priority_max > 0 {
        table = table.with("x-max-priority", number(kind.priority_max.into()));
    }
    if kind.is_single_active {
        table = table.with("x-single-active-consumer", Value::Bool(true));
    }
    table
}

fn code(outcome: Result<(), Fault>) -> Result<(), u16> {
    outcome.map_err(|fault| fault.code as u16)
}

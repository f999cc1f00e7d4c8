//! Declarations by operators and definitions files, which have no channel and no user.

use crosstie_amqp::method::{ExchangeDeclare, ExchangeDelete, QueueDeclare};
use crosstie_amqp::{ReplyCode, Table};
use crosstie_auth::Permissions;

use super::Vhost;
use crate::topology::{BindingRequest, Caller, OPERATOR};
use crate::{Destination, Fault, Time};

impl<H> Vhost<H> {
    /// `exchange.delete` without a user; but an absent exchange is a fault. (It takes the time like all inputs.)
    pub fn delete_exchange(&mut self, _now: Time, name: &str) -> Result<(), Fault> {
        let permissions = Permissions::all();
        let delete = ExchangeDelete {
            exchange: name,
            ..ExchangeDelete::default()
        };
        if self.topology.exchange(name).is_none() {
            let text = format!("no exchange '{name}' in vhost '{}'", self.config.name);
            return Err(Fault::of::<ExchangeDelete<'_>>(ReplyCode::NotFound, text));
        }
        let journal = &mut self.ledger.journal;
        self.topology
            .delete_exchange(&definer(&permissions), &delete, journal)?;
        self.forget_kept();
        Ok(())
    }

    /// `exchange.declare` without a user. (It takes the time like all inputs.)
    pub fn define_exchange(
        &mut self,
        _now: Time,
        declare: &ExchangeDeclare<'_>,
    ) -> Result<(), Fault> {
        let permissions = Permissions::all();
        let journal = &mut self.ledger.journal;
        self.topology
            .declare_exchange(&definer(&permissions), declare, journal)?;
        self.apply_to_new_exchange(declare.exchange);
        Ok(())
    }

    /// `queue.declare` without a user; no connection owns the queue.
    pub fn define_queue(&mut self, now: Time, declare: &QueueDeclare<'_>) -> Result<(), Fault> {
        let permissions = Permissions::all();
        let declare = QueueDeclare {
            exclusive: false,
            ..*declare
        };
        let caller = definer(&permissions);
        let key = self.declare(now, &caller, declare.queue, &declare, None)?;
        self.touch(now, key);
        Ok(())
    }

    /// `queue.bind` and `exchange.bind` without a user. No history is published to the destination: definitions are
    /// imported before any message is published.
    pub fn define_binding(
        &mut self,
        _now: Time,
        source: &str,
        destination: &Destination,
        routing_key: &str,
        arguments: Table<'_>,
    ) -> Result<(), Fault> {
        let permissions = Permissions::all();
        let caller = definer(&permissions);
        let asked = match destination {
            Destination::Queue(queue) => {
                BindingRequest::queue(queue, source, routing_key, arguments)
            }
            Destination::Exchange(exchange) => {
                BindingRequest::exchange(exchange, source, routing_key, arguments)
            }
        };
        let journal = &mut self.ledger.journal;
        let bound = self.topology.bind(&caller, &asked, |_| Ok(()), journal);
        bound.map(drop)
    }
}

/// A caller that may do everything.
fn definer(permissions: &Permissions) -> Caller<'_> {
    Caller {
        user: "",
        permissions,
        method: OPERATOR,
    }
}

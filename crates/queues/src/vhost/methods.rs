//! Dispatches each method to its room.

use std::sync::Arc;

use crosstie_amqp::method::{
    ChannelFlow, ChannelFlowOk, ConfirmSelect, ConfirmSelectOk, ExchangeBindOk, ExchangeDeclareOk,
    ExchangeDeleteOk, ExchangeUnbindOk,
};
use crosstie_amqp::{Method, ReplyCode};
use crosstie_auth::Permissions;

use super::Vhost;
use crate::topology::{BindingRequest, Caller, strip_line_ends};
use crate::{ChannelKey, ConnectionKey, Fault, Outbox, Time};

/// The sender of the present method, and the method's name in faults.
pub(super) struct Context {
    pub(super) channel: ChannelKey,
    pub(super) connection: ConnectionKey,
    pub(super) user: Arc<str>,
    pub(super) permissions: Arc<Permissions>,
    pub(super) method: (u16, u16),
}

impl Context {
    pub(super) fn caller(&self) -> Caller<'_> {
        Caller {
            user: &self.user,
            permissions: &self.permissions,
            method: self.method,
        }
    }
}

impl<H> Vhost<H> {
    /// Handles any method of the classes exchange, queue, basic (but `basic.publish`, which has
    /// content: [`Self::publish`]), confirm and tx, and `channel.flow`.
    pub fn handle(
        &mut self,
        now: Time,
        channel: ChannelKey,
        method: &Method<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        self.begin();
        self.flush_channel(channel, out);
        let result = self.dispatch(now, channel, method, out);
        self.end(now, out);
        result
    }

    fn dispatch(
        &mut self,
        now: Time,
        key: ChannelKey,
        method: &Method<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        self.transactions.check_not_committing(key, method.ids())?;
        // The most frequent first: they need no permission.
        match method {
            Method::BasicAck(ack) => return self.handle_ack(now, key, ack, out),
            Method::BasicNack(nack) => return self.handle_nack(now, key, nack, out),
            Method::BasicReject(reject) => return self.handle_reject(now, key, reject, out),
            _ => {}
        }
        let Some(context) = self.context(key, method.ids()) else {
            return Ok(());
        };
        let result = match method {
            Method::BasicGet(get) => self.handle_get(now, &context, get, out),
            Method::BasicQos(qos) => self.handle_qos(now, &context, qos, out),
            Method::BasicConsume(consume) => self.handle_consume(now, &context, consume, out),
            Method::BasicCancel(cancel) => self.handle_cancel(now, &context, cancel, out),
            Method::BasicRecover(recover) => {
                self.handle_recover(now, &context, recover.requeue, true, out)
            }
            Method::BasicRecoverAsync(recover) => {
                self.handle_recover(now, &context, recover.requeue, false, out)
            }
            Method::QueueDeclare(declare) => self.handle_declare(now, &context, declare, out),
            Method::QueueBind(bind) => self.handle_bind(now, &context, bind, out),
            Method::QueueUnbind(unbind) => self.handle_unbind(&context, unbind, out),
            Method::QueuePurge(purge) => self.handle_purge(now, &context, purge, out),
            Method::QueueDelete(delete) => self.handle_delete(&context, delete, out),
            Method::ConfirmSelect(select) => self.handle_confirm_select(&context, select, out),
            Method::ChannelFlow(ChannelFlow { active: true }) => {
                self.answer(key, false, ChannelFlowOk { active: true }, out)
            }
            Method::ChannelFlow(_) => Err(context
                .caller()
                .fault(ReplyCode::NotImplemented, "active=false")),
            Method::TxSelect(_) => self.handle_select(&context, out),
            Method::TxCommit(_) => self.handle_commit(now, &context, out),
            Method::TxRollback(_) => self.handle_rollback(&context, out),
            other => self.handle_exchange_method(now, &context, other, out),
        };
        self.follow_topology(now);
        result
    }

    /// Handles the methods of class exchange, which all belong to the topology.
    fn handle_exchange_method(
        &mut self,
        now: Time,
        context: &Context,
        method: &Method<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let (caller, channel) = (context.caller(), context.channel);
        let (topology, journal) = (&mut self.topology, &mut self.ledger.journal);
        match method {
            Method::ExchangeDeclare(declare) => {
                topology.declare_exchange(&caller, declare, journal)?;
                self.apply_to_new_exchange(&strip_line_ends(declare.exchange));
                self.answer(channel, declare.no_wait, ExchangeDeclareOk {}, out)
            }
            Method::ExchangeDelete(delete) => {
                topology.delete_exchange(&caller, delete, journal)?;
                self.answer(channel, delete.no_wait, ExchangeDeleteOk {}, out)
            }
            Method::ExchangeBind(bind) => {
                let (key, table) = (bind.routing_key, bind.arguments);
                let asked = BindingRequest::exchange(bind.destination, bind.source, key, table);
                let new = topology.bind(&caller, &asked, |_| Ok(()), journal)?;
                self.serve_binding(now, new, out);
                self.answer(channel, bind.no_wait, ExchangeBindOk {}, out)
            }
            Method::ExchangeUnbind(unbind) => {
                let (key, table) = (unbind.routing_key, unbind.arguments);
                let asked = BindingRequest::exchange(unbind.destination, unbind.source, key, table);
                topology.unbind(&caller, &asked, |_| Ok(()), journal)?;
                self.answer(channel, unbind.no_wait, ExchangeUnbindOk {}, out)
            }
            other => {
                let text = format!("{} is not for a channel's peer to send", other.name());
                Err(caller.fault(ReplyCode::CommandInvalid, text))
            }
        }
    }

    fn handle_confirm_select(
        &mut self,
        context: &Context,
        select: &ConfirmSelect,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if self.transactions.find(context.channel).is_some() {
            let text = "cannot switch from tx to confirm mode";
            return Err(context.caller().precondition_failed(text));
        }
        self.confirms.select(context.channel);
        self.answer(context.channel, select.no_wait, ConfirmSelectOk {}, out)
    }

    pub(super) fn context(&self, key: ChannelKey, method: (u16, u16)) -> Option<Context> {
        let (channel, connection) = self.channels.both(key)?;
        if channel.is_closing {
            return None;
        }
        let client = &connection.client;
        Some(Context {
            channel: key,
            connection: channel.connection,
            user: client.user.clone(),
            permissions: client.permissions.clone(),
            method,
        })
    }

    /// Sends an answer, unless the method has `no-wait`.
    pub(super) fn answer<'a>(
        &self,
        key: ChannelKey,
        no_wait: bool,
        method: impl Into<Method<'a>>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if !no_wait {
            self.channels.send(key, method, out);
        }
        Ok(())
    }
}

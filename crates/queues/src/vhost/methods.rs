//! Which method is whose.

use std::sync::Arc;

use crosstie_amqp::method::{
    ChannelFlowOk, ConfirmSelectOk, ExchangeBindOk, ExchangeDeclareOk, ExchangeDeleteOk,
    ExchangeUnbindOk,
};
use crosstie_amqp::{Method, ReplyCode};
use crosstie_auth::Permissions;

use super::Vhost;
use crate::channel::Confirms;
use crate::topology::Caller;
use crate::{ChannelKey, ConnectionKey, Fault, Outbox, Time};

/// Whose method is handled, and what faults call it.
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
        if self.committing > 0 {
            self.check_not_committing(key, method.ids())?;
        }
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
        match method {
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
            Method::QueueBind(bind) => self.handle_bind(&context, bind, out),
            Method::QueueUnbind(unbind) => self.handle_unbind(&context, unbind, out),
            Method::QueuePurge(purge) => self.handle_purge(now, &context, purge, out),
            Method::QueueDelete(delete) => self.handle_delete(&context, delete, out),
            Method::ExchangeDeclare(declare) => {
                let caller = context.caller();
                self.topology
                    .declare_exchange(&caller, declare, &mut self.journal)?;
                self.answer(key, declare.no_wait, ExchangeDeclareOk {}, out)
            }
            Method::ExchangeDelete(delete) => {
                let caller = context.caller();
                self.topology
                    .delete_exchange(&caller, delete, &mut self.journal)?;
                self.answer(key, delete.no_wait, ExchangeDeleteOk {}, out)
            }
            Method::ExchangeBind(bind) => {
                let caller = context.caller();
                self.topology
                    .bind_exchange(&caller, bind, &mut self.journal)?;
                self.answer(key, bind.no_wait, ExchangeBindOk {}, out)
            }
            Method::ExchangeUnbind(unbind) => {
                let caller = context.caller();
                self.topology
                    .unbind_exchange(&caller, unbind, &mut self.journal)?;
                self.answer(key, unbind.no_wait, ExchangeUnbindOk {}, out)
            }
            Method::ConfirmSelect(select) => {
                if let Some(channel) = self.channels.find_mut(key) {
                    if channel.transaction.is_some() {
                        let caller = context.caller();
                        let text = "cannot switch from tx to confirm mode";
                        return Err(caller.precondition_failed(text));
                    }
                    channel.confirms.get_or_insert_with(Confirms::default);
                }
                self.answer(key, select.no_wait, ConfirmSelectOk {}, out)
            }
            Method::ChannelFlow(flow) if flow.active => {
                self.answer(key, false, ChannelFlowOk { active: true }, out)
            }
            Method::ChannelFlow(_) => Err(context
                .caller()
                .fault(ReplyCode::NotImplemented, "active=false")),
            Method::TxSelect(_) => self.handle_select(&context, out),
            Method::TxCommit(_) => self.handle_commit(now, &context, out),
            Method::TxRollback(_) => self.handle_rollback(&context, out),
            other => {
                let text = format!("{} is not for a channel's peer to send", other.name());
                Err(context.caller().fault(ReplyCode::CommandInvalid, text))
            }
        }
    }

    pub(super) fn context(&self, key: ChannelKey, method: (u16, u16)) -> Option<Context> {
        let channel = self.channels.find(key).filter(|c| !c.is_closing)?;
        let client = &self.connections.find(channel.connection)?.client;
        Some(Context {
            channel: key,
            connection: channel.connection,
            user: client.user.clone(),
            permissions: client.permissions.clone(),
            method,
        })
    }

    /// Sends what the peer waits for, if it does.
    pub(super) fn answer<'a>(
        &self,
        key: ChannelKey,
        no_wait: bool,
        method: impl Into<Method<'a>>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        if !no_wait
            && let Some(channel) = self.channels.find(key)
            && let Some(connection) = self.connections.find(channel.connection)
        {
            out.send(&connection.handle, channel.number, &method.into());
        }
        Ok(())
    }
}

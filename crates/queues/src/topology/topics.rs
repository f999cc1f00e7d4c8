//! Permissions for routing keys of topic exchanges.

use crosstie_amqp::ReplyCode;
use crosstie_auth::Access;

use super::exchange::ExchangeKind;
use super::{Caller, ExchangeKey, Topology};
use crate::Fault;

impl Topology {
    /// Checks that the caller has that access to a routing key, if the exchange is a topic exchange. As in RabbitMQ,
    /// exchanges of other types that route by topics need no such permission.
    pub(crate) fn check_topic(
        &self,
        caller: &Caller<'_>,
        access: Access,
        exchange: ExchangeKey,
        routing_key: &str,
    ) -> Result<(), Fault> {
        if !caller.permissions.has_topics() {
            return Ok(());
        }
        let Some(exchange) = self.exchanges.find(exchange) else {
            return Ok(());
        };
        let is_topic = exchange.kind == ExchangeKind::Topic;
        if !is_topic
            || caller
                .permissions
                .may_topic(access, &exchange.name, routing_key)
        {
            return Ok(());
        }
        let text = format!(
            "access to topic '{routing_key}' in exchange '{}' in vhost '{}' refused for user '{}'{}",
            exchange.name,
            self.vhost,
            caller.user,
            caller.permissions.remark()
        );
        Err(caller.fault(ReplyCode::AccessRefused, text))
    }
}

//! Exchanges that keep messages (`x-recent-history`, `x-delayed-message`): those that a message has passed, and those
//! that are deleted.

use crosstie_amqp::Table;

use super::{ExchangeKey, Topology, term};

/// An exchange without this argument keeps this many messages.
const MESSAGES: usize = 20;

const LENGTH: &str = "x-recent-history-length";

impl Topology {
    /// Whether the last message that was routed passed an exchange that keeps it.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    /// Takes these, and whether they delay it.
    pub(crate) fn take_passed(&mut self) -> Vec<(ExchangeKey, bool)> {
        std::mem::take(&mut self.passed)
    }

    /// Whether exchanges that keep messages were deleted since the last [`Self::take_ended`].
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    pub(crate) fn take_ended(&mut self) -> Vec<ExchangeKey> {
        std::mem::take(&mut self.ended)
    }

    /// Maximum number of messages in the history of an exchange; `None`: it has none.
    pub(crate) fn history_messages(&self, exchange: ExchangeKey) -> Option<usize> {
        let exchange = self.exchanges.find(exchange)?;
        let messages = history_messages(exchange.arguments.as_table()).ok()?;
        // A restored exchange may have been declared within a larger bound.
        let messages = messages.min(self.history_messages_max);
        exchange.has_history().then_some(messages)
    }
}

/// The maximum in an exchange's arguments; the fault is in RabbitMQ's words.
pub(super) fn history_messages(arguments: Table<'_>) -> Result<usize, String> {
    let Some(value) = arguments.find(LENGTH) else {
        return Ok(MESSAGES);
    };
    match value.as_i64() {
        Some(messages @ 1..) => Ok(usize::try_from(messages).unwrap_or(usize::MAX)),
        _ => Err(format!(
            "Invalid argument {}, '{LENGTH}' must be a positive integer",
            term::term(value)
        )),
    }
}

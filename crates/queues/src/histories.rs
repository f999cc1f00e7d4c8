//! The last messages of exchanges of type `x-recent-history`, for bindings that are added later.
//!
//! It borrows the ledger, in which its messages count. *Never:* a queue, a binding, a channel.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crosstie_collections::Beside;

use crate::MessageContent;
use crate::ledger::Ledger;
use crate::topology::{ExchangeKey, OfExchange};

/// The histories of a vhost share a bound. At it, the exchange with the largest history forgets its oldest messages.
#[derive(Debug)]
pub(crate) struct Histories {
    histories: Beside<OfExchange, History>,
    /// Every history that is not empty.
    by_size: BTreeSet<(usize, ExchangeKey)>,
    messages: usize,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct History {
    /// The oldest first.
    messages: VecDeque<Arc<MessageContent>>,
    bytes: usize,
}

impl Histories {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            histories: Beside::new(),
            by_size: BTreeSet::new(),
            messages: 0,
            bytes: 0,
            bytes_max,
        }
    }

    /// Changes the bound; the next message applies it.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Adds a message to the history of an exchange, which keeps that many.
    pub(crate) fn keep(
        &mut self,
        exchange: ExchangeKey,
        messages_max: usize,
        content: Arc<MessageContent>,
        ledger: &mut Ledger,
    ) {
        ledger.account_content(&content);
        self.change(exchange, |history| {
            history.bytes += bytes_of(&content);
            history.messages.push_back(content);
            1
        });
        while self.len(exchange) > messages_max {
            self.forget_oldest(exchange, ledger);
        }
        while self.bytes > self.bytes_max
            && let Some((_, largest)) = self.by_size.last().copied()
        {
            ledger.counts.history_evicted += 1;
            self.forget_oldest(largest, ledger);
        }
    }

    /// The history of an exchange, the oldest message first.
    pub(crate) fn of(&self, exchange: ExchangeKey) -> Vec<Arc<MessageContent>> {
        let history = self.histories.find(exchange);
        history.map_or_else(Vec::new, |history| {
            history.messages.iter().cloned().collect()
        })
    }

    /// Forgets the history of a deleted exchange.
    pub(crate) fn end(&mut self, exchange: ExchangeKey, ledger: &mut Ledger) {
        while self.len(exchange) > 0 {
            self.forget_oldest(exchange, ledger);
        }
        self.histories.remove(exchange);
    }

    /// Forgets the messages that are refused.
    pub(crate) fn withdraw(
        &mut self,
        is_refused: impl Fn(&Arc<MessageContent>) -> bool,
        ledger: &mut Ledger,
    ) {
        let exchanges: Vec<_> = self.by_size.iter().map(|(_, exchange)| *exchange).collect();
        for exchange in exchanges {
            self.change(exchange, |history| {
                let before = history.messages.len();
                history.messages.retain(|content| {
                    let is_kept = !is_refused(content);
                    if !is_kept {
                        history.bytes -= bytes_of(content);
                        ledger.release_content(content);
                    }
                    is_kept
                });
                history.messages.len() as isize - before as isize
            });
        }
    }

    /// Number of messages in all histories.
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }

    /// Their bytes, with those that queues hold, too.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(crate) fn contents(&self) -> impl Iterator<Item = &Arc<MessageContent>> {
        let histories = self.histories.iter();
        histories.flat_map(|(_, history)| &history.messages)
    }

    fn len(&self, exchange: ExchangeKey) -> usize {
        let history = self.histories.find(exchange);
        history.map_or(0, |history| history.messages.len())
    }

    fn forget_oldest(&mut self, exchange: ExchangeKey, ledger: &mut Ledger) {
        self.change(exchange, |history| {
            let Some(content) = history.messages.pop_front() else {
                return 0;
            };
            history.bytes -= bytes_of(&content);
            ledger.release_content(&content);
            -1
        });
    }

    /// Changes a history; `change` returns by how many messages.
    fn change(&mut self, exchange: ExchangeKey, change: impl FnOnce(&mut History) -> isize) {
        let history = self.histories.entry(exchange, History::default);
        let before = history.bytes;
        let messages = change(history);
        self.messages = self.messages.saturating_add_signed(messages);
        self.bytes = self.bytes - before + history.bytes;
        self.by_size.remove(&(before, exchange));
        if !history.messages.is_empty() {
            self.by_size.insert((history.bytes, exchange));
        }
    }
}

fn bytes_of(content: &MessageContent) -> usize {
    content.memory_bytes() + size_of::<Arc<MessageContent>>()
}

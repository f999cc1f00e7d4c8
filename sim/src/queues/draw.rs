//! Draws the next operation, from the present state.

use super::model::{Model, Queue};
use super::operation::{Channel, Operation, QueueKind, Settlement};
use crate::Chance;

const QUEUES: &[&str] = &["q0", "q1", "q2", "q3"];
/// Their dead-letter targets: one each, so that the order of queues does not matter.
const DEAD: &[&str] = &["d0", "d1", "d2", "d3"];
const EXCHANGES: &[(&str, &str)] = &[("x.d", "direct"), ("x.f", "fanout"), ("x.t", "topic")];
const KEYS: &[&str] = &["a", "b", "a.b", "a.b.c", ""];
const PATTERNS: &[&str] = &["a", "a.b", "a.*", "a.#", "#", "*.b.#", "#.c"];

/// The features of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// Queues that count deliveries; they know no prefetch per channel.
    with_quorum: bool,
    with_transactions: bool,
    persistent_one_in: usize,
}

/// Numbers that are never used twice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    connection: u32,
    message: u64,
    consumer: u64,
}

impl Habits {
    pub(super) fn draw(chance: &mut Chance) -> Self {
        Self {
            with_quorum: chance.one_in(2),
            with_transactions: chance.one_in(2),
            persistent_one_in: 1 + chance.below(3),
        }
    }
}

pub(super) fn draw(
    chance: &mut Chance,
    habits: Habits,
    last: &mut Last,
    model: &Model,
    pending: usize,
) -> Operation {
    loop {
        // A client that waits for a commit should send nothing.
        let says_nothing = !chance.one_in(20);
        let channels = model.channels.iter().map(|open| open.channel);
        let channels: Vec<Channel> = channels
            .filter(|channel| !(says_nothing && model.is_committing(*channel)))
            .collect();
        let Some(from) = chance.pick_any(&channels) else {
            return draw_connection(chance, last, model);
        };
        if let Some(operation) = draw_end_of_transaction(chance, model, from) {
            return operation;
        }
        let accessible: Vec<&Queue> = model
            .queues
            .iter()
            .filter(|queue| !queue.kind.exclusive || queue.owner == from.connection)
            .collect();
        let queue = chance.pick_any(&accessible).map(|queue| queue.name.clone());
        let drawn = draw_of_channel(chance, habits, last, model, pending, (from, queue));
        if let Some(operation) = drawn {
            return operation;
        }
    }
}

/// The next method of a channel's client, on this queue if it concerns one; `None` if there is nothing to apply it to.
fn draw_of_channel(
    chance: &mut Chance,
    habits: Habits,
    last: &mut Last,
    model: &Model,
    pending: usize,
    (from, queue): (Channel, Option<String>),
) -> Option<Operation> {
    let is_deaf = model.refusing.contains(&from.connection);
    Some(match (chance.below(100), queue) {
        (0..3, _) => draw_connection(chance, last, model),
        (3, _) => draw_end(chance, from),
        (4..6, _) => return draw_exchange(chance, from, model),
        (6..12, _) => return draw_queue(chance, habits, from, model),
        (12..17, Some(queue)) => return draw_binding(chance, from, model, queue),
        (17, Some(name)) if chance.one_in(2) => Operation::DeleteQueue { from, name },
        (18, Some(name)) => Operation::Purge { from, name },
        (19..21, _) if habits.with_transactions => Operation::TxSelect(from),
        (19..22, _) => Operation::ConfirmSelect(from),
        (22..50, queue) => {
            let exchange = draw_exchange_to_publish(chance, model);
            draw_publish(chance, habits, last, from, (exchange, queue), is_deaf)
        }
        (50..53, _) => Operation::Qos {
            from,
            count: chance.below(4) as u16,
            global: !habits.with_quorum && chance.one_in(2),
        },
        (53..59, Some(queue)) => draw_consume(chance, last, from, queue),
        (59..62, _) => return draw_cancel(chance, model),
        (62..66, Some(queue)) if !is_deaf => Operation::Get {
            from,
            queue,
            no_ack: chance.one_in(3),
        },
        (66..80, _) => return draw_settlement(chance, model, from),
        (80, _) => Operation::Recover(from),
        (81..86, _) => Operation::Pass {
            milliseconds: 1 + chance.below(20) as u64,
        },
        (86..88, _) => Operation::Refuse {
            connection: from.connection,
            refusing: !is_deaf,
        },
        (88..97, _) if pending > 0 => Operation::Commit {
            inputs: 1 + chance.below(pending),
        },
        (97..99, _) if pending > 0 => Operation::FailCommit {
            inputs: 1 + chance.below(pending),
        },
        (99, _) if chance.one_in(3) => match chance.one_in(2) {
            true => Operation::Crash,
            false => Operation::Stop,
        },
        _ => return None,
    })
}

fn draw_exchange(chance: &mut Chance, from: Channel, model: &Model) -> Option<Operation> {
    let (name, kind) = chance.pick(EXCHANGES);
    if model.exchanges.iter().any(|known| known.name == name) {
        return chance.one_in(4).then(|| Operation::DeleteExchange {
            from,
            name: name.to_owned(),
        });
    }
    Some(Operation::DeclareExchange {
        from,
        name: name.to_owned(),
        kind,
        durable: !chance.one_in(3),
    })
}

fn draw_binding(
    chance: &mut Chance,
    from: Channel,
    model: &Model,
    queue: String,
) -> Option<Operation> {
    let exchange = chance.pick_any(&model.exchanges)?;
    let bound = model.bindings.iter().find(|known| known.queue == queue);
    Some(match bound.filter(|_| chance.one_in(5)) {
        Some(binding) => Operation::Unbind {
            from,
            exchange: binding.exchange.clone(),
            queue,
            key: binding.key.clone(),
        },
        None => Operation::Bind {
            from,
            exchange: exchange.name,
            queue,
            key: chance.pick(PATTERNS).to_owned(),
        },
    })
}

/// Mostly an existing one.
fn draw_exchange_to_publish<'m>(chance: &mut Chance, model: &'m Model) -> &'m str {
    let exchanges = model.exchanges.iter();
    let exchanges: Vec<&str> = exchanges.map(|known| known.name.as_str()).collect();
    match chance.pick_any(&exchanges) {
        Some(exchange) if !chance.one_in(50) => exchange,
        _ => chance.pick(EXCHANGES).0,
    }
}

fn draw_consume(chance: &mut Chance, last: &mut Last, from: Channel, queue: String) -> Operation {
    last.consumer += 1;
    Operation::Consume {
        from,
        queue,
        tag: format!("c{}", last.consumer),
        no_ack: chance.one_in(4),
        priority: chance.one_in(3).then(|| chance.pick(&[-5, 0, 1, 10])),
    }
}

fn draw_cancel(chance: &mut Chance, model: &Model) -> Option<Operation> {
    let consumers = model.queues.iter().flat_map(|queue| &queue.consumers);
    let consumers: Vec<_> = consumers.cloned().collect();
    let consumer = chance.pick_any(&consumers)?;
    Some(Operation::Cancel {
        from: consumer.channel,
        tag: consumer.tag,
    })
}

/// Transactions are some operations long.
fn draw_end_of_transaction(chance: &mut Chance, model: &Model, from: Channel) -> Option<Operation> {
    let transaction = model.open(from)?.transaction.as_ref();
    if transaction.is_none() {
        // It is a fault.
        return chance.one_in(500).then_some(Operation::TxCommit(from));
    }
    if !chance.one_in(6) {
        return None;
    }
    Some(if chance.one_in(4) || model.has_several_ends(from) {
        Operation::TxRollback(from)
    } else {
        Operation::TxCommit(from)
    })
}

fn draw_connection(chance: &mut Chance, last: &mut Last, model: &Model) -> Operation {
    let is_full = model.connections.len() >= 4;
    match chance.pick_any(&model.connections) {
        Some(connection) if is_full && chance.one_in(4) => Operation::Disconnect { connection },
        Some(connection) if is_full || chance.one_in(2) => {
            let channels = model.channels.iter().map(|open| open.channel);
            let own = channels.filter(|channel| channel.connection == connection);
            let number = own.map(|channel| channel.number).max().unwrap_or_default() + 1;
            Operation::OpenChannel(Channel { connection, number })
        }
        _ => {
            last.connection += 1;
            Operation::Connect {
                connection: last.connection,
            }
        }
    }
}

fn draw_end(chance: &mut Chance, from: Channel) -> Operation {
    if chance.one_in(2) {
        Operation::CloseChannel(from)
    } else {
        Operation::Disconnect {
            connection: from.connection,
        }
    }
}

/// A queue that is not there, or one that is as it is.
fn draw_queue(
    chance: &mut Chance,
    habits: Habits,
    from: Channel,
    model: &Model,
) -> Option<Operation> {
    let place = chance.below(QUEUES.len());
    let is_for_dead = chance.one_in(3);
    let name = if is_for_dead {
        DEAD[place]
    } else {
        QUEUES[place]
    };
    let name = name.to_owned();
    if let Some(known) = model.queue(&name) {
        let is_foreign = known.kind.exclusive && known.owner != from.connection;
        let kind = known.kind.clone();
        return (!is_foreign).then_some(Operation::DeclareQueue { from, name, kind });
    }
    let mut kind = QueueKind {
        durable: chance.one_in(2),
        ..QueueKind::default()
    };
    if !is_for_dead {
        kind.is_quorum = habits.with_quorum && chance.one_in(2);
        kind.durable |= kind.is_quorum;
        kind.exclusive = !kind.durable && chance.one_in(4);
        kind.auto_delete = !kind.is_quorum && chance.one_in(6);
        kind.is_single_active = chance.one_in(6);
        kind.message_ttl_ms = chance.one_in(4).then(|| 5 + chance.below(60) as u64);
        kind.length_max = chance.one_in(4).then(|| 1 + chance.below(4));
        kind.rejects_publish = kind.length_max.is_some() && chance.one_in(2);
        kind.dead_letter_queue = chance.one_in(2).then(|| DEAD[place].to_owned());
        kind.keeps_letters = kind.is_quorum && kind.dead_letter_queue.is_some() && chance.one_in(2);
        // Otherwise it would not keep any.
        kind.rejects_publish |= kind.keeps_letters;
        kind.delivery_limit = (kind.is_quorum && !chance.one_in(3)).then(|| chance.below(3) as u32);
    }
    if !kind.is_quorum && chance.one_in(3) {
        kind.priority_max = chance.pick(&[1, 3, 255]);
    }
    Some(Operation::DeclareQueue { from, name, kind })
}

fn draw_publish(
    chance: &mut Chance,
    habits: Habits,
    last: &mut Last,
    from: Channel,
    (exchange, queue): (&str, Option<String>),
    is_deaf: bool,
) -> Operation {
    last.message += 1;
    let (exchange, key) = match queue {
        Some(queue) if chance.one_in(2) => (String::new(), queue),
        _ if chance.one_in(6) => (String::new(), chance.pick(QUEUES).to_owned()),
        _ => (exchange.to_owned(), chance.pick(KEYS).to_owned()),
    };
    Operation::Publish {
        from,
        exchange,
        key,
        message: last.message,
        persistent: chance.one_in(habits.persistent_one_in),
        mandatory: !is_deaf && chance.one_in(6),
        expiration_ms: chance.one_in(8).then(|| 1 + chance.below(80) as u64),
        priority: chance
            .one_in(2)
            .then(|| chance.pick(&[0, 1, 2, 3, 4, 200, 255])),
    }
}

fn draw_settlement(chance: &mut Chance, model: &Model, from: Channel) -> Option<Operation> {
    let held = model.unsaid_by(from);
    let settlement = match chance.below(5) {
        0 => Settlement::Requeue,
        1 => Settlement::Reject,
        _ => Settlement::Accept,
    };
    let is_unknown = chance.one_in(60);
    let tag = match chance.pick_any(&held) {
        _ if is_unknown => 1_000_000,
        Some(held) => held.tag,
        None => return None,
    };
    Some(Operation::Settle {
        from,
        tag,
        multiple: !is_unknown && chance.one_in(4),
        settlement,
    })
}

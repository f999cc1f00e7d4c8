//! The loss of a store, in words for an operator.

use std::fmt;
use std::sync::Arc;

use crosstie_queues::QueueId;

use crate::names::Names;
use crate::segments::record::QueueKey;
use crate::segments::recover::{Loss, Recovered};

/// A queue with data that cannot be read. The rest of the store is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub vhost: Arc<str>,
    pub id: QueueId,
    /// Empty if the queue's declaration is missing as well.
    pub queue: Arc<str>,
    /// Messages that are not as they were written.
    pub messages: u64,
    /// Records of acknowledgements that are not: their messages may come once more.
    pub acknowledgements: u64,
}

impl Damaged {
    pub(crate) fn new(names: &Names, key: QueueKey, messages: u64, acknowledgements: u64) -> Self {
        let empty = || Arc::from("");
        Self {
            vhost: names.vhost_name(key.vhost).map_or_else(empty, Arc::clone),
            id: QueueId(key.queue),
            queue: names.queue_name(key).map_or_else(empty, Arc::clone),
            messages,
            acknowledgements,
        }
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            vhost,
            id,
            queue,
            messages,
            acknowledgements,
        } = self;
        match queue.is_empty() {
            true => write!(f, "queue {} of vhost '{vhost}'", id.0)?,
            false => write!(f, "queue '{queue}' of vhost '{vhost}'")?,
        }
        if *messages > 0 {
            write!(f, ": {}", counted(*messages, "message"))?;
        }
        if *acknowledgements > 0 {
            let records = counted(*acknowledgements, "record");
            write!(
                f,
                ": {records} of acknowledgements, so that messages may come twice"
            )?;
        }
        Ok(())
    }
}

/// The missing data of a store, a clause each.
pub(crate) fn describe(recovered: &Recovered, names: &Names, lost_entities: usize) -> Vec<String> {
    let mut clauses = Vec::new();
    let Loss {
        gaps,
        segments,
        entities,
        is_manifest_unknown,
        acknowledgements: _,
    } = &recovered.loss;
    if *is_manifest_unknown {
        clauses.push("its manifest cannot be read, so that missing segments are not known".into());
    }
    for number in segments {
        let queues = messages_in(recovered, names, *number);
        let queues: Vec<_> = queues.iter().map(ToString::to_string).collect();
        clauses.push(match queues.is_empty() {
            true => format!("segment {number} is missing"),
            false => format!("segment {number} is missing, with {}", queues.join(", ")),
        });
    }
    for (number, from, to) in gaps {
        let records = counted(to - from + 1, "record");
        clauses.push(format!(
            "{records} of segment {number}, of queues that are not known"
        ));
    }
    let entities = (entities.len() + lost_entities) as u64;
    if entities > 0 {
        let declarations = counted(entities, "declaration");
        clauses.push(format!(
            "{declarations} of exchanges, queues, bindings or settings"
        ));
    }
    clauses
}

/// Queues named one by one, in a clause each.
const UNDECLARED_MAX: usize = 20;

/// Queues with readable messages that no declaration names, and their messages. If declarations are missing, these may be
/// theirs; otherwise the queues were transient, and a start forgets them.
pub(crate) fn undeclared(recovered: &Recovered, names: &Names) -> Vec<(QueueKey, u64)> {
    let queues = recovered.state.queues.iter();
    let undeclared = queues.filter(|(key, queue)| {
        let is_declared =
            names.queue_name(**key).is_some() && names.vhost_name(key.vhost).is_some();
        key.vhost != 0 && queue.count > 0 && !is_declared
    });
    let mut undeclared: Vec<_> = undeclared
        .map(|(key, queue)| (*key, queue.count as u64))
        .collect();
    undeclared.sort_unstable();
    undeclared
}

/// Those queues, a clause each; `are_anew`: they have been declared anew.
pub(crate) fn name_undeclared(
    mut undeclared: Vec<(QueueKey, u64)>,
    names: &Names,
    are_anew: bool,
) -> Vec<String> {
    let rest = undeclared.split_off(undeclared.len().min(UNDECLARED_MAX));
    let mut clauses: Vec<_> = undeclared
        .into_iter()
        .map(|(key, count)| {
            let messages = counted(count, "message");
            let vhost = match names.vhost_name(key.vhost) {
                Some(name) => format!("vhost '{name}'"),
                None => format!("vhost number {}", key.vhost),
            };
            let number = key.queue;
            let queue = names.queue_name(key).map(|name| format!("queue '{name}' of {vhost}"));
            match queue.filter(|_| are_anew) {
                Some(queue) => format!(
                    "the declaration of queue number {number}, whose {messages} are now in {queue}"
                ),
                None => format!(
                    "queue {number} of {vhost}: {messages} without a declaration, which `--accept-loss` and `crosstie \
                     store salvage` declare anew"
                ),
            }
        })
        .collect();
    if !rest.is_empty() {
        let messages = rest.iter().map(|(_, messages)| messages).sum();
        let (queues, messages) = (
            counted(rest.len() as u64, "queue"),
            counted(messages, "message"),
        );
        clauses.push(format!("{queues} more without a declaration: {messages}"));
    }
    clauses
}

/// The messages that lived in a segment, by queue.
fn messages_in(recovered: &Recovered, names: &Names, number: u32) -> Vec<Damaged> {
    let Some(segment) = recovered.state.segments.get(&number) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for key in &segment.queues {
        let run = recovered
            .state
            .queues
            .get(key)
            .and_then(|of| of.runs.get(&number));
        let count = run.map_or(0, |run| run.left.live.len());
        if count > 0 && key.vhost != 0 {
            found.push(Damaged::new(names, *key, count as u64, 0));
        }
    }
    found
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

//! A vhost of one store in the place of what another store has of it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crosstie_queues::{Position, Record};

use crate::error::StoreError;
use crate::{Batch, Store, StoreConfig};

/// What is in the store now, and what was there before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    pub queues: u64,
    pub messages: u64,
    pub queues_before: u64,
    pub messages_before: u64,
}

/// Has `store` keep of a vhost what `from` does, and nothing else; other vhosts are as they were. Nobody may have either of
/// them open. It is one commit: all of it is done, or nothing.
pub fn replace(store: &Path, vhost: &str, from: &Path) -> Result<Replaced, StoreError> {
    let of_vhost = of_vhost(from, vhost)?;
    let mut replaced = Replaced::default();
    count(&of_vhost, &mut replaced.queues, &mut replaced.messages);
    let (mut store, restored) = Store::open(config(store))?;
    let restored = restored.into_iter();
    let before = restored.filter(|found| *found.vhost == *vhost);
    let before: Vec<_> = before.map(|found| found.record).collect();
    count(
        &before,
        &mut replaced.queues_before,
        &mut replaced.messages_before,
    );
    // What is bound goes after its bindings.
    let mut records: Vec<_> = before.iter().rev().filter_map(end).collect();
    records.extend(of_vhost);
    let mut batch = Batch::default();
    batch.push(&Arc::from(vhost), records, Position(1));
    store.commit(&batch)?;
    Ok(replaced)
}

fn of_vhost(path: &Path, vhost: &str) -> Result<Vec<Record>, StoreError> {
    let missing = |what| StoreError::io(path, what, io::ErrorKind::NotFound.into());
    if !path.exists() {
        return Err(missing("looking for it"));
    }
    let (_, restored) = Store::open(config(path))?;
    let found = restored.into_iter();
    let found = found.filter(|found| *found.vhost == *vhost);
    let records: Vec<_> = found.map(|found| found.record).collect();
    match records.is_empty() {
        true => Err(missing("looking for the vhost in it")),
        false => Ok(records),
    }
}

fn config(path: &Path) -> StoreConfig {
    StoreConfig {
        path: path.to_owned(),
        bytes_max: None,
    }
}

fn count(records: &[Record], queues: &mut u64, messages: &mut u64) {
    for record in records {
        match record {
            Record::QueueDeclared { .. } => *queues += 1,
            Record::Enqueued { .. } => *messages += 1,
            _ => {}
        }
    }
}

/// What ends it; messages go with their queue.
fn end(record: &Record) -> Option<Record> {
    Some(match record {
        Record::ExchangeDeclared { name, .. } => Record::ExchangeDeleted {
            name: Arc::clone(name),
        },
        Record::QueueDeclared { id, .. } => Record::QueueDeleted { id: *id },
        Record::Bound {
            source,
            destination,
            routing_key,
            arguments,
        } => Record::Unbound {
            source: Arc::clone(source),
            destination: destination.clone(),
            routing_key: Arc::clone(routing_key),
            arguments: arguments.clone(),
        },
        _ => return None,
    })
}

//! Replaces a vhost in one store by the same vhost of another store.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crosstie_queues::{Position, QueueId, Record};

use crate::error::StoreError;
use crate::{Batch, NewSetting, Store, StoreConfig, contents};

/// The sizes of the vhost in the store, after and before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    pub queues: u64,
    pub messages: u64,
    pub queues_before: u64,
    pub messages_before: u64,
}

/// Replaces a vhost in `store` by the one of `from`; other vhosts are not changed. Neither store may be open. It is one
/// commit: all of it is done, or nothing.
///
/// The settings of the vhost in `from` become settings of the broker, in the place of those whose keys are the vhost's.
pub fn replace(
    store: &Path,
    vhost: &str,
    from: &Path,
    is_of_vhost: &dyn Fn(&str) -> bool,
) -> Result<Replaced, StoreError> {
    let (settings, of_vhost): (Vec<_>, Vec<_>) = records(from, vhost)?
        .into_iter()
        .partition(|record| matches!(record, Record::Setting { .. }));
    let mut replaced = Replaced::default();
    count(&of_vhost, &mut replaced.queues, &mut replaced.messages);
    let (mut store, restored) = Store::open(StoreConfig::new(store))?;
    let restored = restored.into_iter();
    let before = restored.filter(|found| *found.vhost == *vhost);
    let before: Vec<_> = before.map(|found| found.record).collect();
    count(
        &before,
        &mut replaced.queues_before,
        &mut replaced.messages_before,
    );
    // Queues and exchanges are removed after their bindings.
    let mut records: Vec<_> = before.iter().rev().filter_map(end).collect();
    store.open_log()?;
    if let Some(number) = store.vhost_number(vhost) {
        // Messages that a vhost had let out of memory when it was killed: a queue of the copy may have their number.
        let undeclared = store.undeclared().into_iter();
        let of_vhost = undeclared.filter(|key| key.vhost == number);
        records.extend(of_vhost.map(|key| Record::Purged {
            queue: QueueId(key.queue),
        }));
    }
    records.extend(of_vhost);
    let mut batch = Batch::default();
    batch.push(&Arc::from(vhost), records, Position(1));
    let former = store.take_settings().into_iter();
    let former = former.filter(|former| is_of_vhost(&former.key));
    let mut new: BTreeMap<_, _> = former.map(|former| (former.key, None)).collect();
    new.extend(settings.into_iter().filter_map(|setting| match setting {
        Record::Setting { key, value } if is_of_vhost(&key) => Some((key, value)),
        _ => None,
    }));
    let new: Vec<NewSetting> = new.into_iter().collect();
    store.commit_with_settings(&batch, &new)?;
    Ok(replaced)
}

/// The records of a vhost in a store, which may not be open. An error if there are none.
pub fn records(path: &Path, vhost: &str) -> Result<Vec<Record>, StoreError> {
    let missing = |what| StoreError::io(path, what, io::ErrorKind::NotFound.into());
    if !path.exists() {
        return Err(missing("looking for it"));
    }
    let found = contents(path)?.into_iter();
    let found = found.filter(|found| *found.vhost == *vhost);
    let records: Vec<_> = found.map(|found| found.record).collect();
    match records.is_empty() {
        true => Err(missing("looking for the vhost in it")),
        false => Ok(records),
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

/// The record that ends it; messages are removed with their queue.
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
            ..
        } => Record::Unbound {
            source: Arc::clone(source),
            destination: destination.clone(),
            routing_key: Arc::clone(routing_key),
            arguments: arguments.clone(),
        },
        _ => return None,
    })
}

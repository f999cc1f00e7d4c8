//! Records of other state machines than vhosts: octets at places of named groups, in a store of their own.
//!
//! A group is a queue of the segments, and a record one of its messages. So commits, checksums, cleaning, backups and
//! checks are those of a broker's store, and damage is found for each group. The setting `records` has the kind of the
//! records and their owner: no broker takes such a store for its own, and no other owner does.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crosstie_queues::{MessageContent, Position, QueueId, Record, StoredMessage};

use crate::{Committer, CommitterConfig, DiskLow, Store, StoreConfig, StoreError, StoreErrorKind};

/// The records of one owner.
#[derive(Clone, Debug)]
pub struct RecordStoreConfig {
    pub path: PathBuf,
    /// The subject of the records, for example `mqtt`.
    pub kind: &'static str,
    pub owner: Arc<str>,
    /// Continue without confirmed data that is missing or damaged.
    pub accepts_loss: bool,
    /// Free bytes on the disk below which a warning is reported. 0: never.
    pub disk_free_bytes_min: u64,
}

/// One change of the stored records. A place of a group has one record in the whole life of the store, so that no order of
/// removals matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A group has a name for operators. It comes before its records.
    Opened {
        group: u64,
        name: Arc<str>,
    },
    Put {
        group: u64,
        place: i64,
        octets: Vec<u8>,
    },
    Removed {
        group: u64,
        place: i64,
    },
    /// With its records.
    Closed {
        group: u64,
    },
}

/// The records of a store, by groups and in the order of their places.
#[derive(Debug, Default)]
pub struct FoundRecords {
    pub groups: BTreeSet<u64>,
    pub records: Vec<(u64, i64, Arc<MessageContent>)>,
    /// Confirmed data that is missing or damaged, a clause each. There is some only if losses are accepted.
    pub lost: Vec<String>,
}

/// A store that is open, and not written yet.
#[derive(Debug)]
pub struct RecordStore {
    store: Store,
    config: RecordStoreConfig,
}

/// A store that is written, by a thread of its own. Dropping it commits what was submitted.
pub struct RecordCommitter {
    committer: Committer,
    owner: Arc<str>,
}

/// The setting with the kind.
const KEY: &str = "records";

/// Approximate bytes of one commit.
const COMMIT_BYTES_MAX: usize = 16 << 20;

impl RecordStore {
    /// Opens or makes the store. Damage is an error that names it, unless losses are accepted.
    pub fn open(config: RecordStoreConfig) -> Result<(Self, FoundRecords), StoreError> {
        let (mut store, restored) = Store::open(StoreConfig {
            accepts_loss: config.accepts_loss,
            ..StoreConfig::new(&config.path)
        })?;
        let kind: Arc<str> = format!("{} {}", config.kind, config.owner).into();
        let settings = store.take_settings();
        let known = settings.iter().find(|setting| &*setting.key == KEY);
        let is_new = known.is_none() && settings.is_empty() && restored.is_empty();
        if known.is_none_or(|known| known.value != kind) && !is_new {
            let found = known.map_or("a broker", |known| &known.value).to_owned();
            let expected = kind.to_string();
            let kind = StoreErrorKind::OtherRecords { found, expected };
            return Err(StoreError::new(&config.path, kind));
        }
        let damage: Vec<_> = store.damage().iter().map(ToString::to_string).collect();
        if !config.accepts_loss && !damage.is_empty() {
            let what = damage.join("; ");
            return Err(StoreError::new(&config.path, StoreErrorKind::Loss { what }));
        }
        if is_new {
            store.put_settings(&[(KEY.into(), Some(kind))])?;
        }
        store.wake()?;
        let mut found = FoundRecords {
            lost: store.accepted().iter().cloned().chain(damage).collect(),
            ..FoundRecords::default()
        };
        for one in restored {
            match one.record {
                Record::QueueDeclared { id, .. } => drop(found.groups.insert(id.0)),
                Record::Enqueued {
                    queue,
                    place,
                    message,
                } => found.records.push((queue.0, place, message.content)),
                _ => {}
            }
        }
        Ok((Self { store, config }, found))
    }

    /// The time in milliseconds since 1970, which is not before that of the last commit.
    pub fn now_ms(&self) -> u64 {
        self.store.now_ms()
    }

    /// Begins to write. `on_committed` is called from the store's thread, in the order of positions: with an error, the
    /// records up to the position are not on the disk. They are kept, and tried again each second.
    pub fn start(
        self,
        on_committed: impl Fn(u64, Result<(), &StoreError>) + Send + 'static,
        on_disk_low: impl Fn(DiskLow) + Send + 'static,
    ) -> io::Result<RecordCommitter> {
        let config = CommitterConfig {
            commit_bytes_max: COMMIT_BYTES_MAX,
            disk_free_bytes_min: self.config.disk_free_bytes_min,
            ..CommitterConfig::default()
        };
        let committer = Committer::start_with(
            self.store,
            config,
            move |_, position, outcome| {
                on_committed(position.0, outcome.map_err(|failed| failed.error));
            },
            on_disk_low,
        )?;
        Ok(RecordCommitter {
            committer,
            owner: self.config.owner,
        })
    }
}

impl RecordCommitter {
    /// Submits the changes of one input, up to and including a position: they are committed together. Returns the bytes
    /// that wait. Never waits for the disk.
    pub fn submit(&self, changes: Vec<Change>, position: u64) -> usize {
        let mut records = Vec::with_capacity(changes.len());
        for change in changes {
            if let Change::Closed { group } = change {
                // On a full disk removals alone are written before what was submitted earlier. The end of a group may
                // follow from that: its records have moved to other groups.
                let name = "".into();
                records.push(Change::Opened { group, name }.into_record());
            }
            records.push(change.into_record());
        }
        self.committer
            .submit(&self.owner, records, Position(position))
    }

    pub fn waiting_bytes(&self) -> usize {
        self.committer.waiting_bytes()
    }

    /// Writes what was submitted, and closes the store.
    pub fn stop(self) -> Result<(), StoreError> {
        self.committer.stop()
    }
}

impl Change {
    fn into_record(self) -> Record {
        match self {
            Self::Opened { group, name } => {
                Record::queue_declared(QueueId(group), name, Default::default())
            }
            Self::Put {
                group,
                place,
                octets,
            } => Record::enqueued(
                QueueId(group),
                place,
                StoredMessage::new(Arc::new(MessageContent::new("", "", &[], &octets))),
            ),
            Self::Removed { group, place } => Record::dequeued(QueueId(group), place),
            Self::Closed { group } => Record::QueueDeleted { id: QueueId(group) },
        }
    }
}

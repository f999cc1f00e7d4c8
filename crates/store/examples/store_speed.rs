//! Measures the cost of storing a message: `store_speed [DIRECTORY]`.
//!
//! Commits of 1, 64 and 512 messages of 100 bytes to a durable queue, which are removed a hundred commits later. Beside
//! them, as many bare writes and `fdatasync`s of as many bytes in the same directory: the disk's own share.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_amqp::{BasicProperties, TableBuf};
use crosstie_queues::{MessageContent, Position, QueueId, Record, StoredMessage};
use crosstie_store::{Batch, Store, StoreConfig, StoreError};

const BODY_BYTES: usize = 100;
const LASTING_COMMITS: i64 = 100;
const DURATION: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let mut out = io::stdout();
    writeln!(
        out,
        "batch  messages/s  commits/s  µs/message  fdatasyncs/s  commits per fdatasync"
    )?;
    for batch in [1, 64, 512] {
        let syncs = time_syncs(&directory, batch as usize * BODY_BYTES)?;
        let commits = time_commits(&directory, batch)?;
        let messages = commits * batch as f64;
        writeln!(
            out,
            "{batch:5} {messages:11.0} {commits:10.0} {:11.2} {syncs:13.0} {:22.2}",
            1e6 / messages,
            commits / syncs,
        )?;
    }
    Ok(())
}

/// Commits per second; each has a batch of messages come, and an earlier batch go.
fn time_commits(directory: &Path, batch: i64) -> Result<f64, StoreError> {
    let path = directory.join("store_speed.store");
    remove(&path);
    let config = StoreConfig {
        path: path.clone(),
        bytes_max: None,
    };
    let (mut store, _) = Store::open(config)?;
    let vhost: Arc<str> = "/".into();
    let declared = Record::QueueDeclared {
        id: QueueId(1),
        name: "q".into(),
        auto_delete: false,
        arguments: TableBuf::new(),
    };
    let mut first = Batch::default();
    first.push(&vhost, vec![declared], Position(1));
    store.commit(&first)?;
    let begun = Instant::now();
    let mut commits: i64 = 0;
    while begun.elapsed() < DURATION {
        let mut records: Vec<Record> = (commits * batch..(commits + 1) * batch)
            .map(enqueued)
            .collect();
        if let Some(gone) = commits.checked_sub(LASTING_COMMITS).filter(|n| *n >= 0) {
            records.extend(
                (gone * batch..(gone + 1) * batch).map(|place| Record::Dequeued {
                    queue: QueueId(1),
                    place,
                }),
            );
        }
        let mut waiting = Batch::default();
        waiting.push(&vhost, records, Position(commits as u64 + 2));
        waiting.cancel();
        store.commit(&waiting)?;
        commits += 1;
    }
    let rate = commits as f64 / begun.elapsed().as_secs_f64();
    drop(store);
    remove(&path);
    Ok(rate)
}

fn enqueued(place: i64) -> Record {
    let mut properties = Vec::new();
    BasicProperties {
        delivery_mode: Some(2),
        ..BasicProperties::default()
    }
    .write(&mut properties);
    let content = MessageContent::new("", "q", &properties, &[b'x'; BODY_BYTES]);
    Record::Enqueued {
        queue: QueueId(1),
        place,
        message: StoredMessage {
            content: Arc::new(content),
            expires_at: None,
            deliveries: 0,
        },
    }
}

/// Writes and syncs per second, over and over in a file that has its space already.
fn time_syncs(directory: &Path, bytes: usize) -> io::Result<f64> {
    let path = directory.join("store_speed.sync");
    let file = File::create(&path)?;
    let room = 16 << 20;
    file.write_all_at(&vec![0; room], 0)?;
    file.sync_all()?;
    let block = vec![b'x'; bytes];
    let begun = Instant::now();
    let mut count = 0;
    while begun.elapsed() < DURATION {
        let place = count * bytes % (room - bytes);
        file.write_all_at(&block, place as u64)?;
        file.sync_data()?;
        count += 1;
    }
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}

/// Removes the files of an earlier run or of this one.
fn remove(path: &Path) {
    for ending in ["", "-wal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        // It may not be there.
        let _ = std::fs::remove_file(name);
    }
}

//! Measures the cost of storing a message: `store_speed [DIRECTORY]`.
//!
//! Commits of 1 and 100 messages of 100 to 20,000 bytes to a durable queue: rate, processor time of all threads, and space
//! on the disk. Beside them, as many bare writes and `fdatasync`s of as many bytes in the same directory: the disk's own
//! share.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_amqp::{BasicProperties, TableBuf};
use crosstie_queues::{MessageContent, Position, QueueId, Record, StoredMessage};
use crosstie_store::{Batch, Store, StoreConfig};

const DURATION: Duration = Duration::from_secs(2);

/// Bodies of one measurement.
const BYTES_MAX: usize = 1 << 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let mut out = io::stdout();
    writeln!(
        out,
        "batch   body  messages/s  µs CPU/message  bytes on disk/message  fdatasyncs/s  commits per fdatasync"
    )?;
    for batch in [1, 100] {
        for body_bytes in [100, 1000, 4000, 20_000] {
            let syncs = time_syncs(&directory, batch as usize * body_bytes)?;
            let Cost {
                messages,
                seconds,
                cpu_s,
                bytes,
            } = time_commits(&directory, batch, body_bytes)?;
            writeln!(
                out,
                "{batch:5} {body_bytes:6} {:11.0} {:15.2} {:22.1} {syncs:13.0} {:22.2}",
                messages / seconds,
                cpu_s * 1e6 / messages,
                bytes as f64 / messages,
                messages / batch as f64 / seconds / syncs,
            )?;
        }
    }
    Ok(())
}

struct Cost {
    messages: f64,
    seconds: f64,
    cpu_s: f64,
    bytes: u64,
}

/// Commits a batch of messages after the other.
fn time_commits(
    directory: &Path,
    batch: i64,
    body_bytes: usize,
) -> Result<Cost, Box<dyn std::error::Error>> {
    let path = directory.join("store_speed.store");
    remove(&path);
    let (mut store, _) = Store::open(StoreConfig::new(path.clone()))?;
    let vhost: Arc<str> = "/".into();
    let declared = Record::queue_declared(QueueId(1), "q", TableBuf::new());
    let mut first = Batch::default();
    first.push(&vhost, vec![declared], Position(1));
    store.commit(&first)?;
    let mut messages: i64 = 0;
    let (begun, cpu_before) = (Instant::now(), cpu_s()?);
    while begun.elapsed() < DURATION && (messages as usize) * body_bytes < BYTES_MAX {
        let places = messages..messages + batch;
        let records = places.map(|place| enqueued(place, body_bytes)).collect();
        let mut waiting = Batch::default();
        waiting.push(&vhost, records, Position(messages as u64 + 2));
        store.commit(&waiting)?;
        messages += batch;
    }
    let (seconds, cpu_s) = (begun.elapsed().as_secs_f64(), cpu_s()? - cpu_before);
    drop(store);
    let bytes = on_disk(&path)?;
    remove(&path);
    Ok(Cost {
        messages: messages as f64,
        seconds,
        cpu_s,
        bytes,
    })
}

/// Processor time of this process.
fn cpu_s() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    // In ticks of 10 ms: utime and stime.
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / 100.0)
}

/// Space of a file, or of a directory's files, but for zeros for later.
fn on_disk(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(fs::metadata(path)?.blocks() * 512);
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let is_spare = entry
            .path()
            .extension()
            .is_some_and(|ending| ending == "spare");
        if !is_spare {
            bytes += entry.metadata()?.blocks() * 512;
        }
    }
    Ok(bytes)
}

fn enqueued(place: i64, body_bytes: usize) -> Record {
    let mut properties = Vec::new();
    BasicProperties {
        delivery_mode: Some(2),
        ..BasicProperties::default()
    }
    .write(&mut properties);
    let content = MessageContent::new("", "q", &properties, &vec![b'x'; body_bytes]);
    Record::enqueued(QueueId(1), place, StoredMessage::new(Arc::new(content)))
}

/// Writes and syncs per second, over and over in a file that has its space already.
fn time_syncs(directory: &Path, bytes: usize) -> io::Result<f64> {
    let path = directory.join("store_speed.sync");
    let file = File::create(&path)?;
    let room = (16 << 20).max(2 * bytes);
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
    fs::remove_file(&path)?;
    Ok(rate)
}

/// Removes the store of an earlier run or of this one.
fn remove(path: &Path) {
    // It may not be there.
    let _ = fs::remove_dir_all(path);
}

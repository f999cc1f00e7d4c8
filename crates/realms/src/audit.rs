//! The audit log: refused logins and requests with their origin and reason. A separate thread writes the file, so that
//! no serving thread waits for a disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use crosstie_auth::wamp;
use crosstie_wamp::codec;
use crosstie_wamp::{Serializer, Value};

/// The audit log of a node. Dropping it writes the last lines.
#[derive(Debug)]
pub struct Audit {
    lines: Option<SyncSender<Vec<u8>>>,
    /// Number of lines lost for lack of room or by a failing disk.
    lost: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

/// Maximum number of lines that wait for the disk; further ones are counted, and the next line has their number.
const LINES_MAX: usize = 10_000;

impl Audit {
    /// Continues the file, or creates one that only this user can read.
    pub fn open(path: &Path, file_bytes_max: usize) -> io::Result<Self> {
        let lost = Arc::new(AtomicU64::new(0));
        let file = Writer::open(path.to_owned(), file_bytes_max as u64, Arc::clone(&lost))?;
        let (lines, received) = sync_channel(LINES_MAX);
        let writer = thread::Builder::new().name("audit".to_owned());
        Ok(Self {
            lines: Some(lines),
            lost,
            writer: Some(writer.spawn(move || file.run(&received))?),
        })
    }

    /// Adds a line: a dictionary of the time and these texts.
    pub fn note(&self, given: &[(&str, &str)]) {
        let now = rfc3339(SystemTime::now());
        let text = |(key, text): &(&str, &str)| ((*key).to_owned(), Value::from(*text));
        let mut entries = vec![text(&("time", &now))];
        entries.extend(given.iter().map(text));
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            entries.push(("lines_lost_before".to_owned(), Value::from(lost)));
        }
        let mut line = Vec::new();
        let written = codec::encode_value(&Value::Dict(entries), Serializer::Json, &mut line);
        line.push(b'\n');
        let lines = self.lines.as_ref();
        if written.is_err() || lines.is_none_or(|lines| lines.try_send(line).is_err()) {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            // A thread that panicked has logged that already.
            let _ = writer.join();
        }
    }
}

struct Writer {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    lost: Arc<AtomicU64>,
}

impl Writer {
    fn open(path: PathBuf, bytes_max: u64, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let file = append(&path)?;
        Ok(Self {
            bytes: file.metadata()?.len(),
            path,
            file,
            bytes_max,
            lost,
        })
    }

    fn run(mut self, lines: &Receiver<Vec<u8>>) {
        while let Ok(line) = lines.recv() {
            if let Err(e) = self.write(&line)
                && self.lost.fetch_add(1, Ordering::Relaxed) == 0
            {
                tracing::error!("cannot write the audit log {}: {e}", self.path.display());
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.bytes_max {
            let mut before = self.path.clone().into_os_string();
            before.push(".1");
            fs::rename(&self.path, before)?;
            self.file = append(&self.path)?;
            self.bytes = 0;
        }
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    wamp::rfc3339(since.as_millis() as u64)
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)
}

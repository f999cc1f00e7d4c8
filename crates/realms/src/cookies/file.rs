//! The file of a transport's cookies: lines of JSON in Crossbar.io's form. A separate thread writes and syncs the file,
//! so that no serving thread waits for a disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::mem;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crosstie_auth::wamp::cookie::{Cookies, Record};
use parking_lot::{Condvar, Mutex};

pub(super) struct CookieFile {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
}

/// Pending output.
#[derive(Default)]
struct Work {
    bytes: Vec<u8>,
    /// The bytes replace the file's contents.
    is_whole: bool,
    /// Number of lines in the file afterwards.
    lines: usize,
    is_over: bool,
}

/// A line is far shorter.
const LINE_BYTES_MAX: u64 = 256 * 1024;
/// Number of lines about deleted cookies, beyond that of the present ones, at which the file is rewritten.
const LINES_GONE_MAX: usize = 1_024;

impl CookieFile {
    /// Reads the file into `cookies`, in which the last line about a cookie counts, and rewrites it without deleted
    /// ones.
    pub(super) fn open(path: PathBuf, cookies: &mut Cookies, now_ms: u64) -> io::Result<Self> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        read(&path, cookies, now_ms).map_err(named)?;
        let mut work = Work::default();
        work.replace(cookies.records());
        let mut bytes = mem::take(&mut work.bytes);
        let file = replace(&path, &bytes).map_err(named)?;
        bytes.clear();
        work.is_whole = false;
        let shared = Arc::new(Shared {
            work: Mutex::new(work),
            changed: Condvar::new(),
        });
        let served = Arc::clone(&shared);
        let writer = thread::Builder::new().name("cookies".to_owned());
        let writer = writer.spawn(move || served.write_all(file, &path))?;
        Ok(Self {
            shared,
            writer: Some(writer),
        })
    }

    /// Adds a line about a cookie: its presence, or its deletion at that time.
    pub(super) fn append(&self, record: &Record, deleted_ms: Option<u64>) {
        let mut work = self.shared.work.lock();
        record.write(deleted_ms, &mut work.bytes);
        work.lines += 1;
        self.shared.changed.notify_one();
    }

    /// Whether the file should be rewritten.
    pub(super) fn is_long(&self, cookies: usize) -> bool {
        self.shared.work.lock().lines > 2 * cookies + LINES_GONE_MAX
    }

    pub(super) fn rewrite<'r>(&self, records: impl Iterator<Item = &'r Record>) {
        self.shared.work.lock().replace(records);
        self.shared.changed.notify_one();
    }
}

impl Drop for CookieFile {
    fn drop(&mut self) {
        self.shared.work.lock().is_over = true;
        self.shared.changed.notify_one();
        if let Some(writer) = self.writer.take() {
            // A thread that panicked has logged that already.
            let _ = writer.join();
        }
    }
}

impl Work {
    fn replace<'r>(&mut self, records: impl Iterator<Item = &'r Record>) {
        self.bytes.clear();
        self.lines = 0;
        self.is_whole = true;
        for record in records {
            record.write(None, &mut self.bytes);
            self.lines += 1;
        }
    }
}

impl Shared {
    fn write_all(&self, mut file: File, path: &Path) {
        let mut was_said = false;
        loop {
            let mut work = self.work.lock();
            while work.bytes.is_empty() && !work.is_whole && !work.is_over {
                self.changed.wait(&mut work);
            }
            if work.bytes.is_empty() && !work.is_whole {
                return;
            }
            let bytes = mem::take(&mut work.bytes);
            let is_whole = mem::take(&mut work.is_whole);
            drop(work);
            let written = match is_whole {
                true => replace(path, &bytes).map(|new| file = new),
                false => file.write_all(&bytes).and_then(|()| file.sync_data()),
            };
            let Err(e) = written else {
                was_said = false;
                continue;
            };
            if !mem::replace(&mut was_said, true) {
                tracing::error!("cannot write the cookies {}: {e}", path.display());
            }
            if !self.take_back(bytes, is_whole) {
                return;
            }
        }
    }

    /// Restores unwritten bytes, and waits a second. Returns whether to try again.
    fn take_back(&self, mut bytes: Vec<u8>, is_whole: bool) -> bool {
        let mut work = self.work.lock();
        if !work.is_whole {
            bytes.append(&mut work.bytes);
            work.bytes = bytes;
            work.is_whole = is_whole;
        }
        if !work.is_over {
            self.changed.wait_for(&mut work, Duration::from_secs(1));
        }
        !work.is_over
    }
}

fn read(path: &Path, cookies: &mut Cookies, now_ms: u64) -> io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    let (mut number, mut unread) = (0_u64, 0_u64);
    loop {
        line.clear();
        let taken = (&mut lines)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if taken == 0 {
            break;
        }
        number += 1;
        match Record::read(line.trim_ascii()) {
            Some((text, kept)) => {
                cookies.forget(&text);
                if let Some(record) = kept.filter(|record| record.expires_ms() > now_ms) {
                    cookies.keep(record, &mut Vec::new());
                }
            }
            // A line cut by a crash, or of foreign origin.
            None => unread += 1,
        }
    }
    if unread > 0 {
        tracing::warn!(
            "{}: {unread} of {number} lines are no cookies",
            path.display()
        );
    }
    Ok(())
}

/// Replaces the file as a whole; only the node's user can read the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(".new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&beside, path)?;
    Ok(file)
}

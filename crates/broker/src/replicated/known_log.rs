//! A node's memory of a vhost's log: its id and a minimum length. A log with another id, or a shorter one, is not
//! opened.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crosstie_ledger::Sequence;
use serde_json::{Value as Json, json};

/// A small file beside the store.
pub(super) struct Known {
    path: PathBuf,
    pub(super) log: u64,
    pub(super) sequence: u64,
    written: Option<Instant>,
    is_new: bool,
}

/// Minimum interval between writes while the log grows.
const WRITE_EVERY: Duration = Duration::from_secs(1);

impl Known {
    /// Reads the file if it exists.
    pub(crate) fn read(path: PathBuf) -> io::Result<Self> {
        let mut known = Self {
            path,
            log: 0,
            sequence: 0,
            written: None,
            is_new: false,
        };
        let text = match fs::read(&known.path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(known),
            Err(e) => return Err(named(&known.path, &e)),
        };
        let wrong = || {
            let why = "expected the id and the length of a vhost's log";
            named(&known.path, &io::Error::other(why))
        };
        let json: Json = serde_json::from_slice(&text).map_err(|_| wrong())?;
        let log = json["log"].as_str().ok_or_else(wrong)?;
        known.log = u64::from_str_radix(log, 16).map_err(|_| wrong())?;
        known.sequence = json["sequence"].as_u64().ok_or_else(wrong)?;
        Ok(known)
    }

    /// The known end, for [`crosstie_ledger::Ledger::check_end`].
    pub(crate) fn end(&self) -> Option<(u64, Sequence)> {
        (self.log != 0).then_some((self.log, Sequence(self.sequence)))
    }

    /// Notes that the log has that entry.
    pub(super) fn note(&mut self, log: u64, sequence: u64) {
        if log == 0 || (log == self.log && sequence <= self.sequence) {
            return;
        }
        let is_first = log != self.log;
        (self.log, self.sequence) = (log, sequence);
        self.is_new = true;
        let is_due = self.written.is_none_or(|at| at.elapsed() >= WRITE_EVERY);
        if is_first || is_due {
            self.write();
        }
    }

    /// Writes the file if it is outdated.
    pub(crate) fn write(&mut self) {
        if !self.is_new {
            return;
        }
        match self.try_write() {
            Ok(()) => self.is_new = false,
            Err(e) => tracing::error!("{}", named(&self.path, &e)),
        }
        self.written = Some(Instant::now());
    }

    /// Whether the file is up to date.
    pub(super) fn is_written(&self) -> bool {
        !self.is_new
    }

    fn try_write(&self) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let beside = self.path.with_extension("new");
        let mut file = fs::File::create(&beside)?;
        let known = json!({"log": format!("{:016x}", self.log), "sequence": self.sequence});
        file.write_all(known.to_string().as_bytes())?;
        file.sync_data()?;
        fs::rename(&beside, &self.path)
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

//! The file of a store: checks that it is ours, intact and not in use; creates it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{StoreError, StoreErrorKind};
use crate::form::Form;
use crate::room::log_pages;

/// How long another process may take to end after it was told to.
const IN_USE_MAX: Duration = Duration::from_secs(2);

/// The log is copied into the file when it has this many pages of 4 KiB. Many, because each time
/// costs two syncs more, and pages that were changed often are copied once.
const LOG_PAGES: u32 = 4096;

/// Files that this process has open, by device and number. SQLite's locks are between processes,
/// and a process that closes a file a second time loses them.
static OPEN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// An open file, checked.
pub(crate) struct StoreFile {
    // Closed before its place in the list is freed.
    pub connection: Connection,
    _held: Held,
}

/// A file's place in the list of open ones.
struct Held {
    id: (u64, u64),
}

impl StoreFile {
    /// Opens the file, if there is one.
    pub(crate) fn open(path: &Path, form: &Form) -> Result<Option<Self>, StoreError> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                check_absence(path)?;
                return Ok(None);
            }
            Err(error) => return Err(StoreError::io(path, "looking for it", error)),
        };
        if !metadata.is_file() {
            return Err(foreign(path, "it is no file"));
        }
        let held = Held::take((metadata.dev(), metadata.ino()))
            .ok_or_else(|| StoreError::new(path, StoreErrorKind::InUse))?;
        check_header(path, form)?;
        let connection = connect(path).map_err(|error| match error.sqlite_error_code() {
            // It has our header.
            Some(rusqlite::ErrorCode::NotADatabase) => damaged(path, error.to_string()),
            _ => StoreError::sqlite(path, "opening it", error),
        })?;
        check_pages(&connection, path)?;
        Ok(Some(Self {
            connection,
            _held: held,
        }))
    }

    /// Whether closing it copies its log into it, as it does unless this says otherwise.
    pub(crate) fn closes_with_checkpoint(&self, does: bool) -> rusqlite::Result<()> {
        set_checkpoint(&self.connection, does)
    }

    /// Copies its log into it, which is empty then. The file stays locked.
    pub(crate) fn copy_log(&self) -> rusqlite::Result<()> {
        self.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
    }

    /// Creates the file, which must not exist, and opens it.
    pub(crate) fn create(path: &Path, form: &Form) -> Result<Self, StoreError> {
        let draft = beside(path, ".new");
        let made = write_draft(&draft, path, form).and_then(|()| {
            // A link takes no other file's place, so that one made meanwhile is found.
            fs::hard_link(&draft, path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => StoreError::new(path, StoreErrorKind::InUse),
                _ => StoreError::io(path, "making it", error),
            })
        });
        // If that fails, the next draft replaces it.
        let _ = fs::remove_file(&draft);
        made?;
        let folder = folder(path);
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| StoreError::io(path, "syncing its directory", error))?;
        Self::open(path, form)?.ok_or_else(|| damaged(path, "it went while it was made"))
    }
}

impl Held {
    fn take(id: (u64, u64)) -> Option<Self> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains(&id) {
            return None;
        }
        open.push(id);
        Some(Self { id })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|id| *id != self.id);
    }
}

/// There is no file: there may be none yet, but not a log without its file.
fn check_absence(path: &Path) -> Result<(), StoreError> {
    let log = beside(path, "-wal");
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let what = format!("{} is there without it", log.display());
        return Err(damaged(path, what));
    }
    // Told now, and not when the first message is to be kept.
    fs::metadata(folder(path))
        .map(drop)
        .map_err(|error| StoreError::io(path, "looking for its directory", error))
}

/// Checks the first bytes before SQLite does, which would roll back a transaction of another program.
fn check_header(path: &Path, form: &Form) -> Result<(), StoreError> {
    let mut header = Vec::with_capacity(100);
    File::open(path)
        .and_then(|file| file.take(100).read_to_end(&mut header))
        .map_err(|error| StoreError::io(path, "reading it", error))?;
    if header.is_empty() {
        return Err(damaged(path, "it is empty, as no store ever is"));
    }
    let number = |at: usize| {
        let bytes = header.get(at..at + 4)?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    };
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(foreign(path, "it is no SQLite file"));
    }
    match number(68) {
        Some(id) if id == form.application_id => {}
        Some(_) => return Err(foreign(path, "it is the SQLite file of something else")),
        None => return Err(damaged(path, "it ends in its header")),
    }
    match number(60).map(i64::from) {
        Some(version) if (form.version..=form.version_max).contains(&version) => Ok(()),
        found => Err(StoreError::new(
            path,
            StoreErrorKind::Version {
                found: found.unwrap_or_default(),
                expected: form.version_max,
            },
        )),
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open_plain(path)?;
    connection.busy_timeout(IN_USE_MAX)?;
    // It is not shared, so that the log's index is in memory and the lock is kept.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // As long as it is not known to be whole it is left as it is.
    set_checkpoint(&connection, false)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // The log is synced at each commit.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", log_pages(path, LOG_PAGES))?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Whether the log is copied into the file when it is closed.
fn set_checkpoint(connection: &Connection, does: bool) -> rusqlite::Result<()> {
    let config = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(config, !does).map(drop)
}

fn check_pages(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", (), |row| row.get(0))
        .map_err(|error| StoreError::sqlite(path, "checking it", error))?;
    if verdict != "ok" {
        return Err(damaged(path, verdict.replace('\n', " ")));
    }
    set_checkpoint(connection, true).map_err(|error| StoreError::sqlite(path, "opening it", error))
}

/// Writes an empty store, whole before it gets its name.
fn write_draft(draft: &Path, path: &Path, form: &Form) -> Result<(), StoreError> {
    let _ = fs::remove_file(draft);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        // Only the owner may read messages.
        .mode(0o600)
        .open(draft)
        .map_err(|error| StoreError::io(path, "making it", error))?;
    let write = || {
        let connection = open_plain(draft)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "application_id", form.application_id)?;
        connection.pragma_update(None, "user_version", form.version)?;
        let tables = form.tables;
        connection.execute_batch(&format!("BEGIN; {tables} COMMIT;"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.close().map_err(|(_, error)| error)
    };
    write().map_err(|error| StoreError::sqlite(path, "making it", error))?;
    File::open(draft)
        .and_then(|file| file.sync_all())
        .map_err(|error| StoreError::io(path, "making it", error))
}

pub(crate) fn open_plain(path: &Path) -> rusqlite::Result<Connection> {
    // Without its own lock: a connection moves between threads, but is used by one at a time.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

pub(crate) fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."))
}

pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn foreign(path: &Path, what: impl Into<String>) -> StoreError {
    StoreError::new(path, StoreErrorKind::Foreign { what: what.into() })
}

fn damaged(path: &Path, what: impl Into<String>) -> StoreError {
    StoreError::new(path, StoreErrorKind::Damaged { what: what.into() })
}

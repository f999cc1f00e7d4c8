//! Why a store cannot be opened or written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

/// The fault of a file, and the next step for the operator.
#[derive(Debug)]
pub struct StoreError {
    pub path: PathBuf,
    pub kind: StoreErrorKind,
}

#[derive(Debug)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It is a file of something else.
    Foreign { what: String },
    /// It is a store that cannot be read as it is.
    Damaged { what: String },
    /// Confirmed data is missing.
    Loss { what: String },
    /// Messages of a queue are not as they were written.
    Messages { messages: usize },
    /// Another process, or another router of this one, has it.
    InUse,
    /// It has the records of another owner, or of a broker.
    OtherRecords { found: String, expected: String },
    /// It has the events of another realm.
    OtherRealm { realm: String },
    /// Neither a backup nor a salvaged store takes another file's place.
    Exists,
    /// A restore replaces a store only if that is asked for.
    Replaces,
    /// Its name is needed for a store that is to be made, and it was not made for that.
    InTheWay,
    /// A file system is mounted there, so that nothing can take its place.
    Mounted,
    /// It is something else than a backup.
    NoBackup,
    /// A backup of which a part cannot be read.
    DamagedBackup { what: String },
    /// A backup that was cut short, or is being made.
    Partial,
    /// The store had to do something else before the backup was whole.
    Abandoned { why: &'static str },
    /// The disk, or the bound on the file, is full.
    Full,
    /// It is a store of version 0.1.0.
    Earlier,
    /// It is of another version of this program.
    Version { found: i64, expected: i64 },
    /// The system refused something.
    Io {
        doing: &'static str,
        error: io::Error,
    },
    /// SQLite did.
    Sqlite {
        doing: &'static str,
        error: rusqlite::Error,
    },
}

impl StoreError {
    /// The disk, or the bound on the file, is full.
    pub fn is_full(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Full)
    }

    pub(crate) fn new(path: &Path, kind: StoreErrorKind) -> Self {
        Self {
            path: path.to_owned(),
            kind,
        }
    }

    pub(crate) fn io(path: &Path, doing: &'static str, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
            _ => StoreErrorKind::Io { doing, error },
        };
        Self::new(path, kind)
    }

    pub(crate) fn sqlite(path: &Path, doing: &'static str, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::InUse,
            Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
            Some(ErrorCode::NotADatabase) => StoreErrorKind::Foreign {
                what: "it is no SQLite file".to_owned(),
            },
            // SQLite has several words for it.
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
                if is_read_only(path) =>
            {
                let error = io::ErrorKind::ReadOnlyFilesystem.into();
                StoreErrorKind::Io { doing, error }
            }
            Some(ErrorCode::DatabaseCorrupt) => StoreErrorKind::Damaged {
                what: error.to_string(),
            },
            _ => StoreErrorKind::Sqlite { doing, error },
        };
        Self::new(path, kind)
    }
}

/// Whether no file of this folder can be written.
fn is_read_only(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let found = rustix::fs::statvfs(folder);
    found.is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

impl StoreError {
    /// Why a backup, a salvage or a restore was not made.
    fn fmt_copy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            StoreErrorKind::Exists => write!(
                f,
                "{path} is there already; it is left as it is: name a path where nothing is"
            ),
            StoreErrorKind::Replaces => write!(
                f,
                "{path} is there already; it is left as it is: with `--replace` the backup takes its place, and it is \
                 kept beside that"
            ),
            StoreErrorKind::InTheWay => write!(
                f,
                "{path} is in the way of a store that is to be made by that name; it is left as it is: move it away"
            ),
            StoreErrorKind::Mounted => write!(
                f,
                "a file system is mounted at {path}, so that nothing can take its name: use a directory in it as the \
                 store"
            ),
            StoreErrorKind::NoBackup => write!(
                f,
                "{path} is no backup: expected a file that `crosstie backup` made"
            ),
            StoreErrorKind::DamagedBackup { what } => write!(
                f,
                "{path} is damaged ({what}): restore another backup, or `crosstie store salvage` brings what can be \
                 read of it into a new store"
            ),
            StoreErrorKind::Partial => write!(
                f,
                "{path} is there already, from a backup that is being made or was cut short: in the \
                 latter case, remove it"
            ),
            StoreErrorKind::Abandoned { why } => write!(f, "{path} was not made: {why}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            StoreErrorKind::Foreign { what } => write!(
                f,
                "{path} is not a store of Crosstie ({what}); it is left as it is: \
                 name another file for the store, or move this one away"
            ),
            StoreErrorKind::Damaged { what } => write!(
                f,
                "{path} is damaged ({what}); it is left as it is: put a backup in its place \
                 (`crosstie restore`), or move it away to begin without messages"
            ),
            StoreErrorKind::Loss { what } => write!(
                f,
                "{path} is damaged, and confirmed data is missing: {what}; it is left as it is: see all of it \
                 (`crosstie store check`), put a backup in its place (`crosstie restore`), or continue without that \
                 data (`--accept-loss`)"
            ),
            StoreErrorKind::Messages { messages } => write!(
                f,
                "{path}: {messages} of them damaged; purge or delete the queue, or start with `--accept-loss` to \
                 continue without the damaged ones"
            ),
            StoreErrorKind::InUse => write!(
                f,
                "{path} is in use by another process or another router; each needs a store of its \
                 own"
            ),
            StoreErrorKind::OtherRecords { found, expected } => write!(
                f,
                "{path} has the records of {found}, expected those of {expected}; it is left as it is: each owner \
                 needs a store of its own"
            ),
            StoreErrorKind::OtherRealm { realm } => write!(
                f,
                "{path} has the events of realm {realm}; it is left as it is: each realm needs a \
                 store of its own"
            ),
            StoreErrorKind::Exists
            | StoreErrorKind::Replaces
            | StoreErrorKind::InTheWay
            | StoreErrorKind::Mounted
            | StoreErrorKind::NoBackup
            | StoreErrorKind::DamagedBackup { .. }
            | StoreErrorKind::Partial
            | StoreErrorKind::Abandoned { .. } => self.fmt_copy(f),
            StoreErrorKind::Full => write!(f, "{path}: no space left for it"),
            StoreErrorKind::Earlier => write!(
                f,
                "{path} is a store of version 0.1.0, one SQLite file; it is left as it is: a start of this version \
                 upgrades it, and keeps it beside the new store"
            ),
            StoreErrorKind::Version { found, expected } => write!(
                f,
                "{path} is a store of version {found}, this program reads version {expected}: \
                 name another file for the store, or use the program that wrote it"
            ),
            StoreErrorKind::Io { doing, error } => write!(f, "{path}: {doing}: {error}"),
            StoreErrorKind::Sqlite { doing, error } => write!(f, "{path}: {doing}: {error}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            StoreErrorKind::Io { error, .. } => Some(error),
            StoreErrorKind::Sqlite { error, .. } => Some(error),
            _ => None,
        }
    }
}

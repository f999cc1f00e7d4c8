//! The state of a file, as far as it shows that the file was written anew.
//!
//! Files are checked at intervals instead of watched by the system: a file that is mounted into a container or over a
//! network is replaced without a notification. A file is read again once it has been unchanged for an interval, so that
//! a partly written file is not used.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The interval. A changed file is read within twice as long.
pub const PERIOD: Duration = Duration::from_millis(500);

/// Distinguishes states of a file; `None` if the file does not exist.
pub type Stamp = Option<(SystemTime, u64, u64)>;

/// The present state of a file.
pub fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len(), found.ino()))
}

//! Files that are files: a pipe in the place of one would keep the node waiting for ever.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it; anything else is an error, and at once.
pub(super) fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// As [`open`], with other options.
pub(super) fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Without effect on a regular file.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "expected a regular file",
    ))
}

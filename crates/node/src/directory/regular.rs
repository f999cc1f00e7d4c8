//! Opens regular files only: a pipe in place of one would block the node forever.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading; anything else is an immediate error.
pub(super) fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Like [`open`], with other options.
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

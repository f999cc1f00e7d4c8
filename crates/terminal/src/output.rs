//! Standard output, which may be a closed pipe or a full disk.

use std::fmt;
use std::io::{self, ErrorKind, Write};

/// The error of a failed print.
#[derive(Debug)]
pub struct NotPrinted(io::Error);

impl fmt::Display for NotPrinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl std::error::Error for NotPrinted {}

/// Prints one line at once. `false`: the reader has closed.
pub fn print_line(line: &str) -> Result<bool, NotPrinted> {
    print(&format!("{line}\n"))
}

/// Prints a text at once. `false`: the reader has closed.
pub fn print(text: &str) -> Result<bool, NotPrinted> {
    print_bytes(&[text.as_bytes()])
}

/// Prints bytes at once, whatever their encoding. `false`: the reader has closed.
pub fn print_bytes(parts: &[&[u8]]) -> Result<bool, NotPrinted> {
    let mut out = io::stdout().lock();
    let mut written = parts.iter().try_for_each(|part| out.write_all(part));
    written = written.and_then(|()| out.flush());
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(NotPrinted(error)),
    }
}

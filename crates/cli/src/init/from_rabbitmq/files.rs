//! Files of RabbitMQ.

use std::path::Path;

use anyhow::{Context as _, bail};

/// The text of a file of at most that many bytes.
pub(super) fn read(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    use std::io::Read as _;
    let name = path.display();
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
    let read = file.take(bytes_max + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read {name}"))?;
    if text.len() as u64 > bytes_max {
        bail!("{name}: expected at most {bytes_max} bytes");
    }
    Ok(text)
}

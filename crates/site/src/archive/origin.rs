//! The origin of an archive, and the check of its digest.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use crosstie_config::WebArchive;
use crosstie_front::http_client::Outgoing;
use ring::digest::{Context, SHA256};
use tokio::runtime::Handle;

/// Timeout of a download.
const DOWNLOAD_MAX: Duration = Duration::from_secs(300);

/// Downloads a missing archive to its path.
pub(super) fn fetch(model: &WebArchive, path: &Path, keeper: &Handle) -> io::Result<()> {
    let missing = |why: &str| io::Error::new(io::ErrorKind::NotFound, why.to_owned());
    let Some(origin) = &model.origin else {
        return Err(missing("it is not there, and has no \"origin\""));
    };
    if !model.download {
        return Err(missing("it is not there, and \"download\" is not set"));
    }
    tracing::info!("{} is fetched from {origin}", path.display());
    let server = Outgoing::new(&[])?;
    let (url, bytes_max) = (origin.clone(), model.archive_bytes_max);
    let (done, fetched) = mpsc::sync_channel(1);
    // This thread waits, and may be one that must not run a nested wait.
    keeper.spawn(async move {
        let fetched = server
            .get(&url, "application/zip", DOWNLOAD_MAX, bytes_max)
            .await;
        let _ = done.send(fetched.map(|answer| answer.body));
    });
    let gone = |_| io::Error::other("the router is stopping");
    let bytes = fetched.recv().map_err(gone)?;
    let bytes = bytes.map_err(|why| io::Error::other(format!("{origin}: {why}")))?;
    if !model.hashes.is_empty() {
        is_one_of(digest(&mut &bytes[..])?, &model.hashes)?;
    }
    write(path, &bytes)
}

/// Writes the file completely or not at all.
fn write(path: &Path, bytes: &Bytes) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let mut file = File::create(&beside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let written = written.and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Checks that a file has one of these digests.
pub(super) fn check(mut file: &File, hashes: &[String]) -> io::Result<()> {
    is_one_of(digest(&mut file)?, hashes)
}

fn is_one_of(digest: String, hashes: &[String]) -> io::Result<()> {
    if hashes.contains(&digest) {
        return Ok(());
    }
    let text = format!("its SHA-256 is {digest}, which is not in \"hashes\"");
    Err(io::Error::other(text))
}

/// The SHA-256 of all bytes of a reader.
fn digest(bytes: &mut impl Read) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = bytes.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        context.update(&buffer[..length]);
    }
    let digest = context.finish();
    Ok(digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

//! The files of streams at a start.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_queues::{QueueId, Vhost};
use crosstie_streams::Directory;

/// The directory of the streams of a store.
fn directory_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".streams");
    name.into()
}

/// Opens the streams that the vhosts have declared. `vhosts` is `None` if another node has the store: the files are that
/// node's. An error names the path.
pub(super) fn open<'v, H: 'v>(
    store: &Path,
    vhosts: Option<impl Iterator<Item = (&'v Arc<str>, &'v mut Vhost<H>)>>,
    stored: &BTreeSet<Arc<str>>,
) -> Result<(Directory, Vec<Trouble>), String> {
    let mut directory = Directory::new(&directory_of(store));
    let mut troubles = Vec::new();
    let Some(vhosts) = vhosts else {
        return Ok((directory, troubles));
    };
    for (name, vhost) in vhosts {
        let declared = vhost.declared_streams();
        let (found, orphans) = directory.open(name, &declared)?;
        for orphan in orphans {
            tracing::warn!(
                "vhost '{name}': no queue declares the stream that is now in '{orphan}'"
            );
        }
        for stream in found {
            vhost.restore_stream(stream.id, &stream.extent);
            troubles.extend(stream.damages.into_iter().map(|what| Trouble {
                vhost: Arc::clone(name),
                id: stream.id,
                what,
            }));
        }
    }
    directory.remove_deleted(stored.iter())?;
    Ok((directory, troubles))
}

/// Marks the directory of a vhost's streams before its deletion: if the store has lost the vhost, a start removes what is
/// left of the files.
pub(super) fn mark_deleted(store: &Path, vhost: &str) -> io::Result<()> {
    Directory::new(&directory_of(store)).mark_deleted(vhost)
}

/// Sets the streams' files aside that a former vhost of that name has left. Returns their path.
pub(super) fn set_left_aside(store: &Path, vhost: &str) -> io::Result<Option<String>> {
    Directory::new(&directory_of(store)).set_left_aside(vhost)
}

/// Messages of a stream that cannot be read.
pub(super) struct Trouble {
    pub(super) vhost: Arc<str>,
    pub(super) id: QueueId,
    pub(super) what: String,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_files_of_another_nodes_store_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = directory.path().join("kept");
        let streams = directory_of(&store).join("vhost-v");
        let nothing = || std::iter::empty::<(&Arc<str>, &mut Vhost<u64>)>();
        fs::create_dir_all(streams.join("1-0000000000000001")).expect("is made");
        mark_deleted(&store, "v").expect("is marked");
        let others = Some(nothing()).filter(|_| false);
        open(&store, others, &BTreeSet::new()).expect("is opened");
        assert!(streams.exists());
        open(&store, Some(nothing()), &BTreeSet::new()).expect("is opened");
        assert!(!streams.exists());
    }
}

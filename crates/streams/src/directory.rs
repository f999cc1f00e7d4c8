//! The directory of all streams, as it is found at a start.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_queues::{QueueId, StreamDeclared, StreamExtent};

use crate::disk::{Disk, RealDisk};
use crate::files;
use crate::log::Log;
use crate::open;

/// A stream of a vhost.
pub(crate) type Key = (Arc<str>, QueueId);

/// The files of all streams. Nothing is made before the first message.
#[derive(Debug)]
pub struct Directory {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) logs: HashMap<Key, Arc<Log>>,
    /// Paths that are to be removed.
    pub(crate) removed: Vec<String>,
    pub(crate) root: PathBuf,
}

/// A stream that has files.
#[derive(Clone, Debug)]
pub struct Found {
    pub id: QueueId,
    pub extent: StreamExtent,
    /// Messages that were confirmed, or may have been, and cannot be read.
    pub damages: Vec<String>,
}

impl Directory {
    pub fn new(root: &Path) -> Self {
        Self {
            disk: Arc::new(RealDisk::new(root)),
            logs: HashMap::new(),
            removed: Vec::new(),
            root: root.to_owned(),
        }
    }

    /// Opens the streams of a vhost that has declared these. Also returns the directories that no stream declares: they
    /// are set aside under another name. Those of vhosts that are not opened stay as they are. An error names the path.
    pub fn open(
        &mut self,
        vhost: &Arc<str>,
        declared: &[StreamDeclared],
    ) -> Result<(Vec<Found>, Vec<String>), String> {
        let directory = files::of_vhost(vhost);
        let names = self.disk.names(&directory);
        let names = names.map_err(|error| self.error(&directory, &error))?;
        let mut declared: HashMap<String, &StreamDeclared> = declared
            .iter()
            .map(|stream| (stream.id.0.to_string(), stream))
            .collect();
        let mut found = Vec::new();
        let mut orphans = Vec::new();
        for name in names.clone() {
            let path = format!("{directory}/{name}");
            if name.ends_with(files::DELETED) {
                self.removed.push(path);
            } else if let Some(stream) = declared.remove(&name) {
                let opened = open::open(&*self.disk, &path);
                let opened = opened.map_err(|error| self.error(&path, &error))?;
                found.push(Found {
                    id: stream.id,
                    extent: opened.table.extent(),
                    damages: opened.damages.iter().map(ToString::to_string).collect(),
                });
                let log = Log::new(path, stream.limits, opened.table);
                self.logs
                    .insert((Arc::clone(vhost), stream.id), Arc::new(log));
            } else if name.parse::<u64>().is_ok() {
                let aside = format!("{directory}/{}", aside(&name, &names));
                let moved = self.disk.rename(&path, &aside);
                moved.map_err(|error| self.error(&path, &error))?;
                orphans.push(self.root.join(aside).display().to_string());
            }
        }
        Ok((found, orphans))
    }

    fn error(&self, path: &str, error: &io::Error) -> String {
        format!("'{}': {error}", self.root.join(path).display())
    }
}

/// A name for an orphan that none has yet: another stream may have had its number before.
fn aside(name: &str, names: &[String]) -> String {
    let orphan = format!("{name}{}", files::ORPHAN);
    let numbered = (2..).map(|nth| format!("{orphan}-{nth}"));
    let mut free = std::iter::once(orphan.clone())
        .chain(numbered)
        .filter(|aside| !names.contains(aside));
    free.next().unwrap_or(orphan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orphan_gets_a_name_that_is_free() {
        let names = |names: &[&str]| -> Vec<_> { names.iter().map(ToString::to_string).collect() };
        assert_eq!(aside("12", &names(&["12", "3"])), "12.orphan");
        assert_eq!(aside("12", &names(&["12", "12.orphan"])), "12.orphan-2");
        let both = names(&["12", "12.orphan", "12.orphan-2"]);
        assert_eq!(aside("12", &both), "12.orphan-3");
    }
}

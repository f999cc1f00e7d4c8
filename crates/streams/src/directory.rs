//! The directory of all streams, as it is found at a start.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_disk::{Disk, RealDisk, names_if_there, open_or_create};
use crosstie_queues::{QueueId, StreamDeclared, StreamExtent};

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
    root: PathBuf,
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

    /// Marks the directory of a vhost that is about to be deleted from the store, if it has one.
    pub fn mark_deleted(&self, vhost: &str) -> io::Result<()> {
        let directory = files::of_vhost(vhost);
        if names_if_there(&*self.disk, &directory)?.is_empty() {
            return Ok(());
        }
        open_or_create(&*self.disk, &format!("{directory}/{}", files::MARK))?.sync()?;
        self.disk.sync(&directory)
    }

    /// Sets the files aside that are left of a former vhost of that name, before another is created. Returns their path. What
    /// is marked is removed at the next start.
    pub fn set_left_aside(&self, vhost: &str) -> io::Result<Option<String>> {
        let directory = files::of_vhost(vhost);
        let names = names_if_there(&*self.disk, &directory)?;
        let suffix = match names.iter().any(|name| name == files::MARK) {
            true => files::DELETED,
            false => files::ORPHAN,
        };
        let aside = set_aside(&*self.disk, &directory, suffix)?;
        Ok(aside.map(|aside| self.root.join(aside).display().to_string()))
    }

    /// Has the directories of vhosts removed that are marked, if the store has nothing of the vhost. To be called after all
    /// vhosts are opened. An error names the path.
    pub fn remove_deleted<'s>(
        &mut self,
        stored: impl Iterator<Item = &'s Arc<str>>,
    ) -> Result<(), String> {
        let stored: HashSet<String> = stored.map(|vhost| files::of_vhost(vhost)).collect();
        let names = names_if_there(&*self.disk, "");
        for name in names.map_err(|error| self.error("", &error))? {
            if name.ends_with(files::DELETED) {
                self.removed.push(name);
                continue;
            }
            let Ok(parts) = self.disk.names(&name) else {
                continue;
            };
            let is_marked = parts.iter().any(|part| part == files::MARK);
            if stored.contains(&name) {
                if is_marked {
                    // The store has not deleted it.
                    let mark = format!("{name}/{}", files::MARK);
                    let removed = self.disk.remove(&mark);
                    removed.map_err(|error| self.error(&mark, &error))?;
                }
                continue;
            }
            if !is_marked && !parts.is_empty() {
                continue;
            }
            let aside = set_aside(&*self.disk, &name, files::DELETED);
            let aside = aside.map_err(|error| self.error(&name, &error))?;
            self.removed.extend(aside);
        }
        Ok(())
    }

    /// Opens the streams of a vhost that has declared these. Also returns the directories that no stream declares, by
    /// number and name: they are set aside under another name. Those of vhosts that are not opened stay as they are. An error names the path.
    pub fn open(
        &mut self,
        vhost: &Arc<str>,
        declared: &[StreamDeclared],
    ) -> Result<(Vec<Found>, Vec<String>), String> {
        let directory = files::of_vhost(vhost);
        let names = names_if_there(&*self.disk, &directory);
        let mut names = names.map_err(|error| self.error(&directory, &error))?;
        let ids: HashMap<String, &StreamDeclared> = declared
            .iter()
            .map(|stream| (stream.id.0.to_string(), stream))
            .collect();
        for name in &mut names {
            // Earlier versions named it by its number alone.
            if let Some(stream) = ids.get(name) {
                let path = files::of_stream(vhost, stream.id, &stream.name);
                let renamed = self.disk.rename(&format!("{directory}/{name}"), &path);
                renamed.map_err(|error| self.error(&path, &error))?;
                *name = files::stream_name(stream.id, &stream.name);
            }
        }
        let mut declared: HashMap<String, &StreamDeclared> = declared
            .iter()
            .map(|stream| (files::stream_name(stream.id, &stream.name), stream))
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
            } else if files::is_of_stream(&name) {
                let aside = format!("{directory}/{}", aside(&name, &names));
                let moved = self.disk.rename(&path, &aside);
                moved.map_err(|error| self.error(&path, &error))?;
                orphans.push(self.root.join(aside).display().to_string());
            }
        }
        Ok((found, orphans))
    }

    #[cfg(test)]
    pub(crate) fn on(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            logs: HashMap::new(),
            removed: Vec::new(),
            root: PathBuf::new(),
        }
    }

    fn error(&self, path: &str, error: &io::Error) -> String {
        format!("'{}': {error}", self.root.join(path).display())
    }
}

/// Gives the directory of a vhost's streams a name that none has. Returns that; `None` if there is no directory.
pub(crate) fn set_aside(
    disk: &dyn Disk,
    directory: &str,
    suffix: &str,
) -> io::Result<Option<String>> {
    let names: HashSet<String> = names_if_there(disk, "")?.into_iter().collect();
    if !names.contains(directory) {
        if !names.is_empty() {
            // An attempt before may have failed here.
            disk.sync("")?;
        }
        return Ok(None);
    }
    let numbered = (1..=u64::MAX).map(|nth| format!("{directory}.{nth}{suffix}"));
    let mut free = numbered.filter(|aside| !names.contains(aside));
    let aside = free.next().unwrap_or_default();
    disk.rename(directory, &aside)?;
    // Before a later file by the former path: a power loss must not bring these back beside it.
    disk.sync("")?;
    Ok(Some(aside))
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
    use std::fs;

    use crosstie_queues::StreamLimits;

    use super::*;

    #[test]
    fn a_stream_has_its_own_files_and_not_those_of_its_number() {
        let directory = tempfile::tempdir().expect("a directory");
        let vhost: Arc<str> = "/".into();
        let declared = |name: &str| StreamDeclared {
            id: QueueId(12),
            name: name.into(),
            limits: StreamLimits::default(),
        };
        let path = files::of_stream(&vhost, QueueId(12), "one");
        fs::create_dir_all(directory.path().join(&path)).expect("is made");
        let open = |name: &str| {
            let opened = Directory::new(directory.path()).open(&vhost, &[declared(name)]);
            let (found, orphans) = opened.expect("is opened");
            (found.len(), orphans)
        };
        assert_eq!(open("one"), (1, vec![]));
        let former = directory.path().join("vhost-%2f/12");
        fs::rename(directory.path().join(&path), &former).expect("is renamed");
        assert_eq!(open("one"), (1, vec![]), "the name of an earlier version");
        assert!(!former.exists());
        // A restored backup declares another stream by that number.
        let (found, orphans) = open("other");
        assert_eq!((found, orphans.len()), (0, 1));
        assert!(
            orphans[0].ends_with(&format!("{path}.orphan")),
            "{orphans:?}"
        );
    }

    #[test]
    fn what_is_left_of_a_deleted_vhost_is_not_the_next_ones() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = Directory::new(root.path());
        let path = root.path().join("vhost-v");
        assert_eq!(directory.set_left_aside("v").expect("is there"), None);
        for is_marked in [false, true] {
            fs::create_dir_all(path.join("1-0000000000000001")).expect("is made");
            if is_marked {
                directory.mark_deleted("v").expect("is marked");
            }
            let aside = directory.set_left_aside("v").expect("is set aside");
            let end = if is_marked { ".1.deleted" } else { ".1.orphan" };
            assert!(aside.is_some_and(|aside| aside.ends_with(end)));
            assert!(!path.exists());
        }
        // A start removes what was marked, and keeps the other one.
        let mut directory = Directory::new(root.path());
        directory.remove_deleted([].iter()).expect("is there");
        assert_eq!(directory.removed, ["vhost-v.1.deleted"]);
        // A deletion that was not finished meets an earlier one.
        fs::create_dir_all(path.join("1-0000000000000001")).expect("is made");
        directory.mark_deleted("v").expect("is marked");
        directory.removed.clear();
        directory.remove_deleted([].iter()).expect("is there");
        directory.removed.sort();
        assert_eq!(
            directory.removed,
            ["vhost-v.1.deleted", "vhost-v.2.deleted"]
        );
    }

    #[test]
    fn an_orphan_gets_a_name_that_is_free() {
        let names = |names: &[&str]| -> Vec<_> { names.iter().map(ToString::to_string).collect() };
        assert_eq!(aside("12", &names(&["12", "3"])), "12.orphan");
        assert_eq!(aside("12", &names(&["12", "12.orphan"])), "12.orphan-2");
        let both = names(&["12", "12.orphan", "12.orphan-2"]);
        assert_eq!(aside("12", &both), "12.orphan-3");
    }
}

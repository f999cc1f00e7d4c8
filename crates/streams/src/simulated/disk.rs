//! A disk in memory. Until a sync, a power loss may take any write, or a part of it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::chance::Chance;
use crate::disk::{Disk, DiskFile};

#[derive(Debug, Default)]
pub(crate) struct SimulatedDisk {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<String, usize>,
    /// As a power loss would leave them: the names that are synced, and what changed since.
    synced_names: BTreeMap<String, usize>,
    changes: Vec<Change>,
    contents: Vec<Content>,
    /// Operations until the disk fails, and whether it then fails for good.
    fails_in: Option<(u64, bool)>,
}

#[derive(Clone, Debug)]
enum Change {
    Named(String, usize),
    Removed(String),
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    writes: Vec<Write>,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes(u64, Vec<u8>),
    Length(u64),
}

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bytes(at, written) => {
                let end = *at as usize + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at as usize..end].copy_from_slice(written);
            }
            Self::Length(length) => bytes.resize(*length as usize, 0),
        }
    }
}

impl State {
    /// Counts an operation that changes the disk.
    fn step(&mut self) -> io::Result<()> {
        match &mut self.fails_in {
            Some((0, is_for_good)) => {
                if !*is_for_good {
                    self.fails_in = None;
                }
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Named(path, content) => drop(names.insert(path.clone(), *content)),
            Self::Removed(path) => drop(names.remove(path)),
        }
    }

    fn path(&self) -> &str {
        match self {
            Self::Named(path, _) | Self::Removed(path) => path,
        }
    }
}

impl SimulatedDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no test panics while it holds this")
    }

    /// Has the operation after so many others fail; `is_for_good`: and all after it.
    pub(crate) fn fail_in(&self, operations: u64, is_for_good: bool) {
        self.state().fails_in = Some((operations, is_for_good));
    }

    pub(crate) fn work_again(&self) {
        self.state().fails_in = None;
    }

    /// Loses some of what was not synced.
    pub(crate) fn lose_power(&self, chance: &mut Chance) {
        let state = &mut *self.state();
        state.fails_in = None;
        let mut names = state.synced_names.clone();
        // File systems keep the order of a directory's changes.
        let kept = chance.below(state.changes.len() as u64 + 1) as usize;
        for change in state.changes.drain(..).take(kept) {
            change.apply(&mut names);
        }
        state.names = names.clone();
        state.synced_names = names;
        for content in &mut state.contents {
            let mut bytes = content.synced.clone();
            for write in content.writes.drain(..) {
                match (chance.below(3), write) {
                    (0, _) => {}
                    (1, Write::Bytes(at, written)) => {
                        let kept = chance.below(written.len() as u64) as usize;
                        Write::Bytes(at, written[..kept].to_vec()).apply(&mut bytes);
                    }
                    (_, write) => write.apply(&mut bytes),
                }
            }
            content.bytes.clone_from(&bytes);
            content.synced = bytes;
        }
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Changes a file's bytes.
    pub(crate) fn damage(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let state = &mut *self.state();
        let content = state.names.get(path).copied();
        if let Some(content) = content.and_then(|at| state.contents.get_mut(at)) {
            change(&mut content.bytes);
        }
    }
}

impl Disk for Arc<SimulatedDisk> {
    fn make_directory(&self, _path: &str) -> io::Result<()> {
        self.state().step()
    }

    fn names(&self, path: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{path}/");
        let state = self.state();
        let names = state
            .names
            .keys()
            .filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.map(str::to_owned).collect())
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        let prefix = format!("{path}/");
        let state = &mut *self.state();
        state.step()?;
        let is_in = |change: &Change| {
            let name = change.path().strip_prefix(&prefix);
            name.is_some_and(|name| !name.contains('/'))
        };
        let synced: Vec<_> = state.changes.iter().filter(|c| is_in(c)).cloned().collect();
        state.changes.retain(|change| !is_in(change));
        for change in synced {
            change.apply(&mut state.synced_names);
        }
        Ok(())
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        for name in self.names(path)? {
            self.remove(&format!("{path}/{name}"))?;
        }
        Ok(())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        if !state.names.contains_key(path) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        state.change(Change::Removed(path.to_owned()));
        Ok(())
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let content = match state.names.get(path) {
            Some(content) => *content,
            None => {
                state.step()?;
                state.contents.push(Content::default());
                let content = state.contents.len() - 1;
                state.change(Change::Named(path.to_owned(), content));
                content
            }
        };
        drop(state);
        let disk = Self::clone(self);
        Ok(Arc::new(SimulatedFile { disk, content }))
    }

    fn open_to_read(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let content = self.state().names.get(path).copied();
        let content = content.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let disk = Self::clone(self);
        Ok(Arc::new(SimulatedFile { disk, content }))
    }
}

struct SimulatedFile {
    disk: Arc<SimulatedDisk>,
    content: usize,
}

impl fmt::Debug for SimulatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.content)
    }
}

impl SimulatedFile {
    fn write(&self, write: Write) -> io::Result<()> {
        let mut state = self.disk.state();
        let stepped = state.step();
        let content = &mut state.contents[self.content];
        if stepped.is_err() {
            // A full disk takes a part.
            if let Write::Bytes(at, bytes) = &write {
                let part = Write::Bytes(*at, bytes[..bytes.len() / 2].to_vec());
                part.apply(&mut content.bytes);
                content.writes.push(part);
            }
            return stepped;
        }
        write.apply(&mut content.bytes);
        content.writes.push(write);
        Ok(())
    }
}

impl DiskFile for SimulatedFile {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write(Write::Bytes(at, bytes.to_vec()))
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let content = &state.contents[self.content].bytes;
        let content = content.get(at as usize..).unwrap_or_default();
        let count = content.len().min(bytes.len());
        bytes[..count].copy_from_slice(&content[..count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        let content = &mut state.contents[self.content];
        content.synced.clone_from(&content.bytes);
        content.writes.clear();
        Ok(())
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.write(Write::Length(bytes))
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.disk.state().contents[self.content].bytes.len() as u64)
    }
}

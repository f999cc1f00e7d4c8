//! A store that is opened: what is at its path, what has been lost, and what is handed over.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::mem;
use std::path::Path;
use std::sync::Arc;

use crosstie_disk::{RealDisk, room};
use crosstie_queues::{LEVELED, QueueId};

use crate::claim::Claim;
use crate::clock::Clock;
use crate::damage::{describe, name_undeclared, undeclared};
use crate::error::{StoreError, StoreErrorKind};
use crate::gather::Gathered;
use crate::loaded::Loaded;
use crate::names::Names;
use crate::place::{self, Found, Lock, sync_folder};
use crate::segments::clean::{PATIENCE, left_bytes};
use crate::segments::contents::{Contents, Snapshot};
use crate::segments::entity::Entity;
use crate::segments::log::{Log, LogConfig, Purpose};
use crate::segments::manifest::{self, Manifest};
use crate::segments::record::{QueueKey, RESTED};
use crate::segments::recover::{Recovered, recover};
use crate::store::{Form, Mending, Repair, Written, lock};
use crate::write::Writer;
use crate::{Batch, Damaged, Restored, Store, StoreConfig, build};

/// A store that was read, and locked.
struct Opened {
    recovered: Recovered,
    lock: Lock,
}

/// Bytes of a segment on the smallest file system.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;

/// A segment takes no more than this part of a file system.
const SHARE: u64 = 16;

impl Store {
    /// Opens the store, if it exists, and reads its contents: exchanges, queues, bindings, and then the messages of
    /// each queue in their order. The files are not changed before [`Self::wake`] or the first commit, except that a
    /// store of version 0.1.0, or a backup, is replaced by a store with its contents.
    pub fn open(config: StoreConfig) -> Result<(Self, Vec<Restored>), StoreError> {
        Self::open_deep(config, Loaded::ALL)
    }

    /// The same, but of queues that are not to be loaded it reads only the extent
    /// ([`crosstie_queues::Record::Kept`]), one for each priority: their vhost requests them page by page. The same holds
    /// for queues with damaged messages. Messages with priorities that an earlier version wrote are read.
    pub fn open_deep(
        config: StoreConfig,
        loaded: Loaded,
    ) -> Result<(Self, Vec<Restored>), StoreError> {
        let (mut store, opened) = Self::find(config)?;
        let Some(opened) = opened else {
            return Ok((store, Vec::new()));
        };
        let mut gathered = Gathered::default();
        let path = &store.config.path;
        let all = i64::MAX;
        opened.gather(path, &mut gathered, |key| (key.vhost == 0).then_some(all))?;
        let prioritized = gathered.prioritized();
        let state = &opened.recovered.state;
        let loaded = loaded.choose(state);
        let is_deep = |key: &QueueKey| !loaded.contains(key);
        opened.gather(path, &mut gathered, |key| match is_deep(key) {
            _ if key.vhost == 0 => None,
            false => Some(all),
            true => prioritized.contains(key).then_some(LEVELED - 1),
        })?;
        let deep: Vec<_> = state
            .queues
            .keys()
            .filter(|key| key.vhost != 0 && is_deep(key))
            .copied()
            .collect();
        let restored = store.judge(opened, gathered, &prioritized, deep)?;
        Ok((store, restored))
    }

    fn find(mut config: StoreConfig) -> Result<(Self, Option<Opened>), StoreError> {
        // The working directory may change.
        let absolute = std::path::absolute(&config.path)
            .map_err(|error| StoreError::io(&config.path, "finding it", error))?;
        config.path = place::follow(&absolute)?;
        let path = config.path.clone();
        let mut store = Self {
            config,
            form: Form::Absent(None),
            names: Names::default(),
            damage: Vec::new(),
            accepted: Vec::new(),
            settings: Vec::new(),
            clock: Clock::begin(0),
            obstacle: None,
            cleaning: None,
            patience: PATIENCE,
        };
        let mut found = place::find(&path)?;
        let mut claim = None;
        if found.is_to_be_replaced() || place::is_half_replaced(&path) {
            // Held until the store is locked: meanwhile there are files by other names.
            claim = Some(Claim::take(&path)?);
            found = place::find(&path)?;
        }
        if found == Found::Nothing && place::is_half_replaced(&path) {
            place::finish_replacement(&path)?;
            found = Found::Segments;
        }
        if found.is_to_be_replaced() {
            store.accepted = build::replace_file(&path, found, store.config.accepts_loss)?;
            found = Found::Segments;
        }
        if found != Found::Segments {
            match claim.map_or_else(|| Claim::take(&path), Ok) {
                Ok(claim) => store.form = Form::Absent(Some(claim)),
                Err(error) => store.obstacle = Some(error),
            }
            return Ok((store, None));
        }
        let lock = Lock::take(&path)?;
        drop(claim);
        let recovered = recover_at(&path)?;
        store.clock = Clock::begin(recovered.confirmed.time_ms);
        Ok((store, Some(Opened { recovered, lock })))
    }

    /// Judges what was read.
    fn judge(
        &mut self,
        opened: Opened,
        mut gathered: Gathered,
        prioritized: &HashSet<QueueKey>,
        mut deep: Vec<QueueKey>,
    ) -> Result<Vec<Restored>, StoreError> {
        let Opened {
            mut recovered,
            lock,
        } = opened;
        let acknowledgements = recovered.loss.acknowledgements.clone();
        let accepts_loss = self.config.accepts_loss;
        let (mut missing, anew) = find_missing(&mut recovered, &mut gathered, accepts_loss);
        // A start forgets the messages of other queues that are not declared.
        let names = &gathered.names;
        gathered
            .damaged
            .retain(|key, _| names.queue_name(*key).is_some());
        let damage = gathered.damage(&acknowledgements);
        // Messages with priorities that an earlier version wrote are needed in memory, so that they cannot be set apart.
        let in_memory = gathered.damaged.iter().filter(|(key, places)| {
            prioritized.contains(key) && places.iter().any(|place| *place < LEVELED)
        });
        missing.extend(in_memory.map(|(key, places)| {
            let messages = places.len() as u64;
            Damaged::new(&gathered.names, *key, messages, 0).to_string()
        }));
        if !self.config.accepts_loss {
            if !missing.is_empty() {
                let what = missing.join("; ");
                return Err(StoreError::new(
                    &self.config.path,
                    StoreErrorKind::Loss { what },
                ));
            }
            deep.extend(gathered.damaged.keys());
        }
        self.damage = damage;
        let mut repair = Repair::default();
        if self.config.accepts_loss {
            self.accepted.extend(missing);
            let damaged = gathered.damaged.iter();
            let lost = gathered.lost_entities.iter();
            repair.places = damaged
                .map(|(key, places)| (*key, places.clone()))
                .chain(lost.map(|(key, place)| (*key, vec![*place])))
                .collect();
            repair.anew = anew;
        }
        for key in deep {
            let Some(queue) = recovered.state.queues.get(&key) else {
                continue;
            };
            let id = QueueId(key.queue);
            let kept = match prioritized.contains(&key) {
                true => queue.kept_by_level(id),
                false => queue.kept(id).into_iter().collect(),
            };
            gathered.kept.insert(key, kept);
        }
        self.settings = gathered.take_settings();
        let (restored, mut names) = gathered.into_restored();
        for key in recovered.state.queues.keys() {
            names.note_number(key.vhost);
        }
        self.names = names;
        self.form = Form::Read(Box::new(recovered), repair, lock);
        Ok(restored)
    }

    /// The vhosts run from now on: forgets the places that a store has only of vhosts that have ended in good order,
    /// and the messages of queues that are not declared, which a vhost had let out of memory.
    pub fn wake(&mut self) -> Result<(), StoreError> {
        self.open_log()?;
        if !matches!(self.form, Form::Written(_)) {
            return Ok(());
        }
        let mut forgotten = self.undeclared();
        if self.names.wake() {
            forgotten.push(RESTED);
        }
        forgotten.sort_unstable();
        let bytes_max = 64 * forgotten.len() as u64;
        self.commit_with(bytes_max, Purpose::Freeing, |draft, _, _| {
            forgotten.iter().for_each(|queue| draft.purge(*queue));
        })
    }

    /// The queues with messages that are not declared. The store must be open for writing.
    pub(crate) fn undeclared(&self) -> Vec<QueueKey> {
        let Form::Written(written) = &self.form else {
            return Vec::new();
        };
        let state = lock(written.log.state());
        let queues = state.queues.iter();
        let undeclared = queues.filter(|(key, queue)| {
            key.vhost != 0 && queue.count > 0 && self.names.queue_name(**key).is_none()
        });
        undeclared.map(|(key, _)| *key).collect()
    }

    /// Opens the log for writing, or makes the store, and continues without what is missing.
    pub(crate) fn written(&mut self) -> Result<(), StoreError> {
        let path = self.config.path.clone();
        if let Form::Absent(claim) = &mut self.form {
            if claim.is_none() {
                *claim = Some(Claim::take(&path)?);
                self.obstacle = None;
            }
            let lock = make(&path)?;
            self.form = Form::Unread(Repair::default(), lock);
        }
        if let Form::Unread(..) = self.form {
            // A store that was just made has a name that lasts, before anything is in it.
            sync_folder(&path)?;
            let mut recovered = recover_at(&path)?;
            if self.config.accepts_loss {
                recovered.accept();
            }
            let unread = mem::replace(&mut self.form, Form::Absent(None));
            if let Form::Unread(repair, lock) = unread {
                self.form = Form::Read(Box::new(recovered), repair, lock);
            }
        }
        if let Form::Read(..) = self.form {
            let read = mem::replace(&mut self.form, Form::Absent(None));
            if let Form::Read(recovered, repair, lock) = read {
                place::forget_replacement(&path);
                self.open_read(*recovered, repair, lock)?;
            }
        }
        self.mend()
    }

    fn open_read(
        &mut self,
        recovered: Recovered,
        repair: Repair,
        lock: Lock,
    ) -> Result<(), StoreError> {
        let path = &self.config.path;
        let given_up = recovered.given_up.iter().map(|listed| listed.number);
        let mending = Mending {
            remains: recovered.remains.clone(),
            given_up: given_up.collect(),
            repair,
        };
        let disk = Arc::new(RealDisk::new(path));
        match Log::open(disk, recovered, log_config(&self.config)) {
            Ok(log) => {
                let state = Arc::clone(log.state());
                self.form = Form::Written(Box::new(Written {
                    contents: Contents::new(Arc::clone(log.disk()), state, log.store()),
                    log,
                    mending: Some(mending),
                    _lock: lock,
                }));
                Ok(())
            }
            Err(fault) => {
                let error = StoreError::fault(path, fault);
                // Nothing was committed since it was read.
                self.form = Form::Unread(mending.repair, lock);
                Err(error)
            }
        }
    }

    /// Removes damaged places, and writes records again that a segment had which is given up. If that fails, it is
    /// tried again before the next commit.
    fn mend(&mut self) -> Result<(), StoreError> {
        let Form::Written(written) = &mut self.form else {
            return Ok(());
        };
        let Some(mending) = written.mending.take() else {
            return Ok(());
        };
        let mended = self.commit_mending(&mending);
        if let Form::Written(written) = &mut self.form {
            match mended {
                Ok(()) => written.log.forget_missing(mending.given_up),
                Err(_) => written.mending = Some(mending),
            }
        }
        mended
    }

    fn commit_mending(&mut self, mending: &Mending) -> Result<(), StoreError> {
        let Mending {
            remains,
            given_up: _,
            repair,
        } = mending;
        let Repair { places, anew } = repair;
        let has_places = places.iter().any(|(_, places)| !places.is_empty());
        let Form::Written(written) = &self.form else {
            return Ok(());
        };
        if remains.is_empty() && !has_places && anew.is_empty() {
            return Ok(());
        }
        let lefts: Vec<_> = {
            let state = lock(written.log.state());
            let left = |(about, queue): &(u32, QueueKey)| {
                let run = state.queues.get(queue)?.runs.get(about)?;
                Some((*about, *queue, run.left.clone()))
            };
            remains.iter().filter_map(left).collect()
        };
        let of_places = places.iter().map(|(_, places)| places.len() as u64);
        let bytes_max = of_places.map(|places| 128 + 32 * places).sum::<u64>()
            + 1024 * anew.len() as u64
            + lefts.iter().map(|(.., left)| left_bytes(left)).sum::<u64>();
        self.commit_with(bytes_max, Purpose::Freeing, |draft, state, names| {
            for (about, queue, left) in lefts {
                draft.remain(queue, about, left);
            }
            for (queue, places) in places {
                for place in places {
                    draft.remove(state, *queue, *place);
                }
            }
            let mut writer = Writer::new(draft, state, names, &Batch::default());
            anew.iter().for_each(|entity| writer.declare_anew(entity));
        })
    }
}

/// Confirmed data that is missing, a clause each. If that is accepted, also declarations in place of those that are lost.
fn find_missing(
    recovered: &mut Recovered,
    gathered: &mut Gathered,
    accepts_loss: bool,
) -> (Vec<String>, Vec<Entity>) {
    let mut missing = describe(recovered, &gathered.names, gathered.lost_entities.len());
    let may_lack_declarations = !missing.is_empty();
    if accepts_loss {
        recovered.accept();
    }
    let mut anew = Vec::new();
    if may_lack_declarations {
        let queues = undeclared(recovered, &gathered.names);
        if accepts_loss {
            anew = gathered.declare_anew(queues.iter().map(|(key, _)| *key));
        }
        missing.extend(name_undeclared(queues, &gathered.names, !anew.is_empty()));
    }
    (missing, anew)
}

impl Opened {
    /// Reads the items of some queues up to a place of each.
    fn gather(
        &self,
        path: &Path,
        gathered: &mut Gathered,
        last: impl Fn(&QueueKey) -> Option<i64>,
    ) -> Result<(), StoreError> {
        let disk = RealDisk::new(path);
        let Recovered {
            state,
            manifest,
            loss,
            ..
        } = &self.recovered;
        for part in &Snapshot::take(state, last).parts {
            // The loss describes its messages.
            if loss.segments.contains(&part.number) {
                continue;
            }
            let visited = part.visit(&disk, manifest.store, &mut |queue, place, item| {
                gathered.add(queue, place, item);
                Ok(())
            });
            visited.map_err(|fault| StoreError::fault(path, fault))?;
        }
        Ok(())
    }
}

/// Reads what a directory has, without changing it.
pub(crate) fn recover_at(path: &Path) -> Result<Recovered, StoreError> {
    let disk = RealDisk::new(path);
    recover(&disk).map_err(|error| StoreError::io(path, "reading it", error))
}

/// Makes a store without anything in it, and locks it.
fn make(path: &Path) -> Result<Lock, StoreError> {
    let fault = |error| StoreError::io(path, "making it", error);
    if path.is_dir() && place::find(path)? == Found::Empty {
        let lock = Lock::take(path)?;
        return match new_manifest(1).write(&RealDisk::new(path)) {
            // If only its sync has failed, there is a store.
            Err(error) if !path.join(manifest::NAME).exists() => Err(fault(error)),
            _ => Ok(lock),
        };
    }
    let draft = place::make_draft(path)?;
    let lock = Lock::take(&draft)?;
    let written = new_manifest(1).write(&RealDisk::new(&draft));
    written.map_err(fault)?;
    place::rename_draft(&draft, path)?;
    Ok(lock)
}

/// Makes a store in an empty directory. Its sequences begin after those of another store.
pub(crate) fn create_in(
    directory: &Path,
    path: &Path,
    config: LogConfig,
    first_sequence: u64,
) -> Result<Log, StoreError> {
    let disk = Arc::new(RealDisk::new(directory));
    let written = new_manifest(first_sequence).write(&*disk);
    written.map_err(|error| StoreError::io(path, "making it", error))?;
    let recovered = recover_at(directory)?;
    Log::open(disk, recovered, config).map_err(|fault| StoreError::fault(path, fault))
}

pub(crate) fn new_manifest(first_sequence: u64) -> Manifest {
    Manifest {
        // Files of another store are noticed by it.
        store: RandomState::new().build_hasher().finish(),
        end_sequence: first_sequence,
        ..Manifest::default()
    }
}

pub(crate) fn log_config(config: &StoreConfig) -> LogConfig {
    let place = crate::file::folder(&config.path);
    let share = room(place).map_or(config.segment_bytes, |room| room.total_bytes / SHARE);
    let share = config.bytes_max.map_or(share, |bytes| share.min(bytes / 4));
    let segment_bytes = share.min(config.segment_bytes).max(SEGMENT_BYTES_MIN);
    LogConfig {
        segment_bytes: segment_bytes / 4096 * 4096,
        bytes_max: config.bytes_max,
        has_thread: true,
    }
}

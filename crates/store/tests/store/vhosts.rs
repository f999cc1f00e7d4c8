//! Vhosts that are created and deleted, with users, permissions and policies as settings: after an end of the process at
//! any commit each change is whole, or was never made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_queues::{Destination, Position, QueueId, Record};
use crosstie_store::{Batch, NewSetting, Restored, Setting, Store, StoreConfig, check};

use crate::rig::*;

/// A vhost as it should be: whether an operator has created it, and the places of each queue's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Expected {
    is_created: bool,
    queues: BTreeMap<u64, BTreeSet<i64>>,
    bindings: usize,
}

/// Vhosts and settings by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct World {
    vhosts: BTreeMap<String, Expected>,
    settings: BTreeMap<String, String>,
}

impl World {
    /// Forgets vhosts without anything.
    fn tidy(&mut self) {
        self.vhosts.retain(|_, of| *of != Expected::default());
    }
}

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// The next operation on a vhost, as a record.
fn draw(chance: &mut Chance, vhost: &mut Expected, place: &mut i64) -> Record {
    *place += 1;
    let id = 1 + chance.below(3);
    if !vhost.is_created {
        vhost.is_created = true;
        return Record::VhostCreated;
    }
    if chance.one_in(6) {
        *vhost = Expected::default();
        return Record::VhostDeleted;
    }
    let Some(messages) = vhost.queues.get_mut(&id) else {
        if chance.one_in(4) {
            // A message that has left memory, of a queue that is not declared: a start forgets it.
            return enqueued(100 + id, *place);
        }
        vhost.queues.insert(id, BTreeSet::new());
        return queue(id, &format!("q{id}"));
    };
    match chance.below(8) {
        0 => {
            vhost.queues.remove(&id);
            if id == 1 {
                vhost.bindings = 0;
            }
            Record::QueueDeleted { id: QueueId(id) }
        }
        1 if vhost.bindings == 0 && id == 1 => {
            vhost.bindings = 1;
            bound("amq.topic", Destination::Queue("q1".into()))
        }
        2 => {
            messages.clear();
            purged(id)
        }
        3 if !messages.is_empty() => {
            let gone = messages.pop_first().unwrap_or_default();
            dequeued(id, gone)
        }
        _ => {
            messages.insert(*place);
            let long = content(&[b'x'; 3000]);
            match chance.one_in(4) {
                true => enqueued_content(id, *place, &long),
                false => enqueued(id, *place),
            }
        }
    }
}

/// The next change of an operator: new vhosts with permissions and policies, other settings, deletions.
fn draw_change(
    chance: &mut Chance,
    names: &[Arc<str>],
    world: &mut World,
) -> (Vec<Arc<str>>, Vec<NewSetting>) {
    let mut created = Vec::new();
    let mut settings = Vec::new();
    for name in names.iter().filter(|_| chance.one_in(2)) {
        let of = world.vhosts.entry(name.to_string()).or_default();
        if !of.is_created {
            of.is_created = true;
            created.push(Arc::clone(name));
            settings.push((format!("[\"permission\",\"{name}\",\"al\"]"), true));
        }
    }
    for _ in 0..chance.below(5) {
        let name = &names[chance.below(names.len() as u64) as usize];
        let key = match chance.below(3) {
            0 => format!("[\"user\",\"{name}\"]"),
            1 => format!("[\"policy\",\"{name}\",\"p\"]"),
            _ => format!("[\"vhost-limits\",\"{name}\"]"),
        };
        settings.push((key, !chance.one_in(3)));
    }
    let settings = settings.into_iter().map(|(key, is_put)| {
        let value = is_put.then(|| format!("{{\"value\":{}}}", chance.below(1_000_000)));
        match &value {
            Some(value) => drop(world.settings.insert(key.clone(), value.clone())),
            None => drop(world.settings.remove(&key)),
        }
        (key.into(), value.map(Arc::from))
    });
    let settings = settings.collect();
    (created, settings)
}

/// What a start finds.
fn found(path: &Path) -> World {
    let mut config = StoreConfig::new(path);
    config.segment_bytes = 64 << 10;
    let (mut store, restored) = Store::open(config).expect("a store");
    let mut world = World::default();
    for Setting { key, value } in store.take_settings() {
        world.settings.insert(key.to_string(), value.to_string());
    }
    for Restored { vhost, record } in restored {
        let of = world.vhosts.entry(vhost.to_string()).or_default();
        match record {
            Record::VhostCreated => of.is_created = true,
            Record::QueueDeclared { id, .. } => drop(of.queues.entry(id.0).or_default()),
            Record::Enqueued { queue, place, .. } if queue.0 < 100 => {
                let messages = of.queues.get_mut(&queue.0);
                let is_new = messages.expect("is declared").insert(place);
                assert!(is_new, "{vhost}: message {place} of queue {queue:?} twice");
            }
            Record::Enqueued { .. } => {}
            Record::Bound { .. } => of.bindings += 1,
            other => panic!("{vhost}: {other:?}"),
        }
    }
    // Records of queues that are not declared have been forgotten with their vhost.
    world.tidy();
    world
}

/// The store as an end of the process in the middle of a commit leaves it: the segment up to some byte.
fn tear(chance: &mut Chance, before: &[(PathBuf, Vec<u8>)], after: &Path, to: &Path) -> bool {
    fs::create_dir(to).expect("made");
    for (file, former) in before {
        let name = file.file_name().expect("a name");
        let mut bytes = former.clone();
        if name.to_string_lossy().ends_with(".segment") {
            let Ok(later) = fs::read(after.join(name)) else {
                return false;
            };
            let differ = |(one, other): (&u8, &u8)| one != other;
            let pairs = || former.iter().zip(&later);
            if let Some(first) = pairs().position(differ) {
                let last = pairs().rposition(differ).unwrap_or(first);
                let upto = first + chance.below((last - first) as u64 + 2) as usize;
                bytes[first..upto.min(later.len())].copy_from_slice(&later[first..upto]);
            }
        }
        fs::write(to.join(name), bytes).expect("written");
    }
    true
}

fn run(seed: u64) {
    let directory = directory();
    let path = directory.path().join("store");
    let mut config = StoreConfig::new(&path);
    config.segment_bytes = 64 << 10;
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut store, _) = Store::open(config.clone()).expect("a store");
    let names: [Arc<str>; 3] = ["a".into(), "b".into(), "c".into()];
    let mut world = World::default();
    let mut place = 0;
    for commit in 0..40 {
        let what = format!("seed {seed}, commit {commit}");
        let before = (world.clone(), snapshot(&path));
        if chance.one_in(4) {
            let (created, settings) = draw_change(&mut chance, &names, &mut world);
            store.create_vhosts(&created, &settings).expect(&what);
        } else {
            let mut batch = Batch::default();
            for _ in 0..1 + chance.below(8) {
                let name = &names[chance.below(3) as usize];
                let of = world.vhosts.entry(name.to_string()).or_default();
                let record = draw(&mut chance, of, &mut place);
                batch.push(name, vec![record], Position(place as u64));
            }
            if chance.one_in(2) {
                batch.cancel();
            }
            store.commit(&batch).expect(&what);
        }
        world.tidy();
        let copied = directory.path().join(format!("{commit}"));
        copy(&path, &copied);
        assert_eq!(found(&copied), world, "{what}");
        let torn = directory.path().join(format!("{commit}-torn"));
        if !before.1.is_empty() && tear(&mut chance, &before.1, &path, &torn) {
            let found = found(&torn);
            assert!(found == before.0 || found == world, "{what}: {found:#?}");
        }
        for gone in [copied, torn] {
            let _ = fs::remove_dir_all(gone);
        }
        if chance.one_in(8) {
            drop(store);
            store = Store::open(config.clone()).expect(&what).0;
            store.wake().expect(&what);
        }
    }
}

#[test]
fn a_vhost_is_whole_or_gone_wherever_a_process_ends() {
    (1..=8).for_each(run);
}

#[test]
fn nothing_of_a_deleted_vhost_is_left() {
    let directory = directory();
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let mut batch = Batch::default();
    let doomed: Arc<str> = "doomed".into();
    let records = |queues: u64| {
        let declared = (1..=queues).map(|id| queue(id, &format!("q{id}")));
        let bound =
            (1..=queues).map(|id| bound("amq.topic", Destination::Queue(format!("q{id}").into())));
        let messages = (1..=queues).map(|id| enqueued(id, 7));
        let rested = (1..=queues).map(|id| rested(id, 7));
        declared.chain(bound).chain(messages).chain(rested)
    };
    batch.push(&"/".into(), records(3).collect(), Position(1));
    batch.push(&doomed, vec![Record::VhostCreated], Position(1));
    batch.push(&doomed, records(2_000).collect(), Position(2));
    store.commit(&batch).expect("written");
    drop(store);
    let (mut store, _) = Store::open(config(&directory)).expect("a store");
    let mut batch = Batch::default();
    batch.push(&doomed, vec![Record::VhostDeleted], Position(3));
    // Twice, as after a disk that was full.
    store.commit(&batch).expect("written");
    store.commit(&batch).expect("written");
    drop(store);
    let left: Vec<_> = kept(&directory).into_iter().map(|(_, kept)| kept).collect();
    assert_eq!(left.len(), 12);
    assert!(kept(&directory).iter().all(|(vhost, _)| vhost == "/"));
    let checked = check(&path(&directory)).expect("is read");
    let vhosts = checked.vhosts.iter();
    let vhosts: Vec<_> = vhosts.filter_map(|vhost| vhost.name.as_deref()).collect();
    assert_eq!(vhosts, ["/"]);
    assert!(checked.faults.is_empty(), "{:?}", checked.faults);
}

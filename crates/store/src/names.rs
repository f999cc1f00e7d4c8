//! The declarations that a store has, and under which place of its queue of entities each is.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crosstie_queues::{Destination, Record};

use crate::segments::entity::Entity;
use crate::segments::record::{ENTITIES, QueueKey};
use crate::segments::state::State;

/// The names of all entities.
#[derive(Debug, Default)]
pub(crate) struct Names {
    places: HashMap<Name, i64>,
    /// The numbers of vhosts, and the names of vhosts and queues by their numbers.
    numbers: HashMap<Arc<str>, u16>,
    vhosts: HashMap<u16, Arc<str>>,
    queues: HashMap<QueueKey, Arc<str>>,
    /// The highest number that a vhost has or had.
    number_last: u16,
    /// Bindings by their source and by their destination.
    bindings: HashMap<End, BTreeSet<Name>>,
    /// Changes since the last [`Self::keep`].
    changes: Vec<Change>,
}

/// The identity of an entity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
    Vhost(Arc<str>),
    Exchange(u16, Arc<str>),
    Queue(QueueKey),
    Binding {
        vhost: u16,
        source: Arc<str>,
        to_queue: bool,
        destination: Arc<str>,
        routing_key: Arc<str>,
        arguments: Box<[u8]>,
    },
    Rested(QueueKey),
    Setting(Arc<str>),
    VhostSetting(u16, Arc<str>),
    /// An operator's creation of a vhost.
    Created(u16),
}

/// An end of a binding: a queue, or an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct End {
    vhost: u16,
    is_queue: bool,
    name: Arc<str>,
}

#[derive(Debug)]
enum Change {
    Added(Name),
    /// With its place, and the name of a queue.
    Removed(Name, i64, Option<Arc<str>>),
    /// With its number and place.
    VhostRemoved(Arc<str>, u16, i64),
}

impl Names {
    /// Adds an entity that was read. Of two of one name, the later one counts.
    pub(crate) fn restore(&mut self, entity: &Entity, place: i64) {
        let name = match entity {
            Entity::Vhost { name, .. } => Some(Name::Vhost(Arc::clone(name))),
            Entity::Declared { vhost, record } => Name::of(*vhost, record),
            Entity::Setting { key, .. } => Some(Name::Setting(Arc::clone(key))),
        };
        let known = name.and_then(|name| self.places.get(&name));
        if known.is_some_and(|known| *known > place) {
            return;
        }
        match entity {
            Entity::Vhost { number, name } => {
                self.note_number(*number);
                self.vhosts.insert(*number, Arc::clone(name));
                self.numbers.insert(Arc::clone(name), *number);
                self.places.insert(Name::Vhost(Arc::clone(name)), place);
            }
            Entity::Declared { vhost, record } => {
                if let Some(name) = Name::of(*vhost, record) {
                    self.insert(name, queue_name(record), place);
                }
            }
            Entity::Setting { key, .. } => self.insert(Name::Setting(Arc::clone(key)), None, place),
        }
    }

    /// A vhost has or had that number. Its number must not be another's while segments have records of its queues.
    pub(crate) fn note_number(&mut self, number: u16) {
        self.number_last = self.number_last.max(number);
    }

    /// The number of a vhost; another one, if it has none.
    pub(crate) fn vhost(&mut self, name: &Arc<str>, place: i64, state: &State) -> Result<u16, u16> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = self.free_number(state);
        self.note_number(number);
        self.vhosts.insert(number, Arc::clone(name));
        self.numbers.insert(Arc::clone(name), number);
        let entity = Name::Vhost(Arc::clone(name));
        self.places.insert(entity.clone(), place);
        self.changes.push(Change::Added(entity));
        Err(number)
    }

    /// Whether the declaration at a place is the one that counts.
    pub(crate) fn is_current(&self, vhost: u16, record: &Record, place: i64) -> bool {
        let name = Name::of(vhost, record);
        name.is_some_and(|name| self.places.get(&name) == Some(&place))
    }

    /// The next number. After the last one, the first that no vhost has and no segment has records of.
    fn free_number(&self, state: &State) -> u16 {
        if let Some(next) = self.number_last.checked_add(1) {
            return next;
        }
        let used: HashSet<u16> = state.queues.keys().map(|key| key.vhost).collect();
        let mut numbers = 1..=u16::MAX;
        let is_free = |number: &u16| !used.contains(number) && !self.vhosts.contains_key(number);
        // `Store` refuses a commit for which no number is left.
        numbers.find(is_free).unwrap_or(u16::MAX)
    }

    /// The number of vhosts that can have numbers yet.
    pub(crate) fn numbers_left(&self, state: &State) -> usize {
        let unused = usize::from(u16::MAX - self.number_last);
        if unused > 0 {
            return unused;
        }
        let mut used: HashSet<u16> = state.queues.keys().map(|key| key.vhost).collect();
        used.extend(self.vhosts.keys());
        used.remove(&ENTITIES.vhost);
        usize::from(u16::MAX) - used.len()
    }

    pub(crate) fn find_vhost(&self, name: &str) -> Option<u16> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn vhost_name(&self, number: u16) -> Option<&Arc<str>> {
        self.vhosts.get(&number)
    }

    pub(crate) fn queue_name(&self, queue: QueueKey) -> Option<&Arc<str>> {
        self.queues.get(&queue)
    }

    /// The names of all queues, with their vhosts.
    pub(crate) fn queue_names(&self) -> BTreeSet<(u16, Arc<str>)> {
        let queues = self.queues.iter();
        queues
            .map(|(key, name)| (key.vhost, Arc::clone(name)))
            .collect()
    }

    /// Adds a declaration; returns the place of the one that it replaces.
    pub(crate) fn declare(&mut self, vhost: u16, record: &Record, place: i64) -> Option<i64> {
        let name = Name::of(vhost, record)?;
        let former = self.remove(&name);
        self.insert(name.clone(), queue_name(record), place);
        self.changes.push(Change::Added(name));
        former
    }

    /// Adds a setting; returns the place of the one that it replaces.
    pub(crate) fn set(&mut self, key: &Arc<str>, place: i64) -> Option<i64> {
        let former = self.unset(key);
        let name = Name::Setting(Arc::clone(key));
        self.insert(name.clone(), None, place);
        self.changes.push(Change::Added(name));
        former
    }

    /// Removes a setting; returns its place.
    pub(crate) fn unset(&mut self, key: &Arc<str>) -> Option<i64> {
        self.remove(&Name::Setting(Arc::clone(key)))
    }

    /// Whether the setting at a place is the one that counts.
    pub(crate) fn is_current_setting(&self, key: &Arc<str>, place: i64) -> bool {
        self.places.get(&Name::Setting(Arc::clone(key))) == Some(&place)
    }

    /// Whether exactly this is declared already; only bindings and vhosts have nothing else to say.
    pub(crate) fn has_binding(&self, vhost: u16, record: &Record) -> bool {
        let name = Name::of(vhost, record);
        name.is_some_and(|name| self.places.contains_key(&name))
    }

    /// Removes a binding, or a setting of a vhost.
    pub(crate) fn unbind(&mut self, vhost: u16, record: &Record) -> Option<i64> {
        let name = Name::of(vhost, record)?;
        self.remove(&name)
    }

    /// Removes an exchange with its bindings; returns their places.
    pub(crate) fn delete_exchange(&mut self, vhost: u16, name: &Arc<str>) -> Vec<i64> {
        let mut places = self.remove_bindings(vhost, false, name);
        places.extend(self.remove(&Name::Exchange(vhost, Arc::clone(name))));
        places
    }

    /// Removes a queue with its bindings; returns their places.
    pub(crate) fn delete_queue(&mut self, queue: QueueKey) -> Vec<i64> {
        let Some(name) = self.queues.get(&queue).map(Arc::clone) else {
            return Vec::new();
        };
        let mut places = self.remove_bindings(queue.vhost, true, &name);
        places.extend(self.remove(&Name::Queue(queue)));
        places
    }

    /// Removes a vhost with all of its declarations. Returns their places, each with whether it is one of [`RESTED`].
    ///
    /// [`RESTED`]: crate::segments::record::RESTED
    pub(crate) fn delete_vhost(&mut self, number: u16, name: &Arc<str>) -> Vec<(bool, i64)> {
        let of_vhost = |found: &&Name| found.vhost() == Some(number);
        let gone: Vec<Name> = self.places.keys().filter(of_vhost).cloned().collect();
        let mut places = Vec::with_capacity(gone.len() + 1);
        for name in gone {
            let is_rested = matches!(name, Name::Rested(_));
            places.extend(self.remove(&name).map(|place| (is_rested, place)));
        }
        self.vhosts.remove(&number);
        self.numbers.remove(name);
        if let Some(place) = self.places.remove(&Name::Vhost(Arc::clone(name))) {
            places.push((false, place));
            let removed = Change::VhostRemoved(Arc::clone(name), number, place);
            self.changes.push(removed);
        }
        places
    }

    /// The number of a vhost's declarations, which a deletion removes.
    pub(crate) fn count_of(&self, number: u16) -> usize {
        let names = self.places.keys();
        names.filter(|name| name.vhost() == Some(number)).count()
    }

    /// Forgets the places from which on messages were never delivered; returns whether there were any.
    pub(crate) fn wake(&mut self) -> bool {
        let before = self.places.len();
        self.places
            .retain(|name, _| !matches!(name, Name::Rested(_)));
        self.places.len() < before
    }

    /// The changes were committed.
    pub(crate) fn keep(&mut self) {
        self.changes.clear();
    }

    /// The changes were not committed.
    pub(crate) fn undo(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Added(Name::Vhost(name)) => {
                    self.vhosts.retain(|_, known| *known != name);
                    self.numbers.remove(&name);
                    self.places.remove(&Name::Vhost(name));
                }
                Change::Added(name) => {
                    self.take(&name);
                }
                Change::Removed(name, place, queue_name) => self.insert(name, queue_name, place),
                Change::VhostRemoved(name, number, place) => {
                    self.vhosts.insert(number, Arc::clone(&name));
                    self.numbers.insert(Arc::clone(&name), number);
                    self.places.insert(Name::Vhost(name), place);
                }
            }
        }
    }

    fn remove_bindings(&mut self, vhost: u16, is_queue: bool, name: &Arc<str>) -> Vec<i64> {
        let end = End {
            vhost,
            is_queue,
            name: Arc::clone(name),
        };
        let bindings = self.bindings.get(&end).cloned().unwrap_or_default();
        bindings
            .iter()
            .filter_map(|binding| self.remove(binding))
            .collect()
    }

    fn insert(&mut self, name: Name, queue_name: Option<Arc<str>>, place: i64) {
        for end in name.ends().into_iter().flatten() {
            self.bindings.entry(end).or_default().insert(name.clone());
        }
        if let (Name::Queue(queue), Some(queue_name)) = (&name, queue_name) {
            self.queues.insert(*queue, queue_name);
        }
        self.places.insert(name, place);
    }

    fn remove(&mut self, name: &Name) -> Option<i64> {
        let (place, queue_name) = self.take(name)?;
        let removed = Change::Removed(name.clone(), place, queue_name);
        self.changes.push(removed);
        Some(place)
    }

    fn take(&mut self, name: &Name) -> Option<(i64, Option<Arc<str>>)> {
        let place = self.places.remove(name)?;
        for end in name.ends().into_iter().flatten() {
            if let Some(bindings) = self.bindings.get_mut(&end) {
                bindings.remove(name);
                if bindings.is_empty() {
                    self.bindings.remove(&end);
                }
            }
        }
        let queue_name = match name {
            Name::Queue(queue) => self.queues.remove(queue),
            _ => None,
        };
        Some((place, queue_name))
    }
}

impl Name {
    fn of(vhost: u16, record: &Record) -> Option<Self> {
        Some(match record {
            Record::ExchangeDeclared { name, .. } => Self::Exchange(vhost, Arc::clone(name)),
            Record::QueueDeclared { id, .. } => Self::Queue(QueueKey { vhost, queue: id.0 }),
            Record::Bound {
                source,
                destination,
                routing_key,
                arguments,
                ..
            }
            | Record::Unbound {
                source,
                destination,
                routing_key,
                arguments,
            } => {
                let (to_queue, destination) = match destination {
                    Destination::Exchange(name) => (false, name),
                    Destination::Queue(name) => (true, name),
                };
                Self::Binding {
                    vhost,
                    source: Arc::clone(source),
                    to_queue,
                    destination: Arc::clone(destination),
                    routing_key: Arc::clone(routing_key),
                    arguments: arguments.as_table().bytes().into(),
                }
            }
            Record::Rested { queue, .. } => Self::Rested(QueueKey {
                vhost,
                queue: queue.0,
            }),
            Record::VhostCreated => Self::Created(vhost),
            Record::Setting { key, .. } => Self::VhostSetting(vhost, Arc::clone(key)),
            _ => return None,
        })
    }

    /// The vhost whose declaration it is; `None` for that of a vhost, and for a setting of the broker.
    fn vhost(&self) -> Option<u16> {
        match self {
            Self::Vhost(_) | Self::Setting(_) => None,
            Self::Exchange(vhost, _)
            | Self::VhostSetting(vhost, _)
            | Self::Created(vhost)
            | Self::Binding { vhost, .. } => Some(*vhost),
            Self::Queue(queue) | Self::Rested(queue) => Some(queue.vhost),
        }
    }

    fn ends(&self) -> [Option<End>; 2] {
        let Self::Binding {
            vhost,
            source,
            to_queue,
            destination,
            ..
        } = self
        else {
            return [None, None];
        };
        let end = |is_queue, name: &Arc<str>| End {
            vhost: *vhost,
            is_queue,
            name: Arc::clone(name),
        };
        [Some(end(false, source)), Some(end(*to_queue, destination))]
    }
}

/// The name of a vhost or a queue that is declared anew.
pub(crate) fn salvaged_name(number: u64, is_taken: impl Fn(&str) -> bool) -> Arc<str> {
    let names = (1..).map(|nth| match nth {
        1 => format!("salvaged-{number}"),
        _ => format!("salvaged-{number}-{nth}"),
    });
    let mut free = names.filter(|name| !is_taken(name));
    free.next().unwrap_or_default().into()
}

fn queue_name(record: &Record) -> Option<Arc<str>> {
    match record {
        Record::QueueDeclared { name, .. } => Some(Arc::clone(name)),
        _ => None,
    }
}

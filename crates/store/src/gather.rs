//! Items that were read, as the records of a restore.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crosstie_queues::{Destination, Kept, QueueId, Record, StoredMessage};

use crate::names::{Names, salvaged_name};
use crate::segments::bytes::SEQUENCE_MAX;
use crate::segments::contents::Item;
use crate::segments::entity::Entity;
use crate::segments::record::{ENTITIES, QueueKey, RESTED};
use crate::{Damaged, Restored, Setting};

/// Everything of a store.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) names: Names,
    /// Declarations with their places; the sort key of each is its kind, vhost and name.
    declared: Vec<(u16, Record, i64)>,
    /// Settings with their places.
    settings: Vec<(Setting, i64)>,
    messages: HashMap<QueueKey, Vec<(i64, StoredMessage)>>,
    /// Places of messages that are not as they were written.
    pub(crate) damaged: BTreeMap<QueueKey, Vec<i64>>,
    /// Declarations and settings that are not.
    pub(crate) lost_entities: Vec<(QueueKey, i64)>,
    /// Queues of which only the extent is handed over, and the messages before it.
    pub(crate) kept: BTreeMap<QueueKey, Vec<Kept>>,
}

impl Gathered {
    pub(crate) fn add(&mut self, queue: QueueKey, place: i64, item: Item) {
        match item {
            Item::Entity(Some(entity)) => {
                self.names.restore(&entity, place);
                match entity {
                    Entity::Vhost { .. } => {}
                    Entity::Declared { vhost, record } => {
                        self.declared.push((vhost, record, place))
                    }
                    Entity::Setting { key, value } => {
                        self.settings.push((Setting { key, value }, place));
                    }
                }
            }
            // Without that, messages count as delivered.
            Item::Entity(None) if queue == RESTED => {}
            Item::Entity(None) => self.lost_entities.push((queue, place)),
            Item::Message(Some(message)) => {
                self.messages
                    .entry(queue)
                    .or_default()
                    .push((place, message));
            }
            Item::Message(None) => self.damaged.entry(queue).or_default().push(place),
        }
    }

    /// The queues with priorities.
    pub(crate) fn prioritized(&self) -> HashSet<QueueKey> {
        let declared = self.declared.iter();
        let prioritized = declared.filter_map(|(vhost, record, _)| match record {
            Record::QueueDeclared { id, arguments, .. } => {
                let max = arguments.as_table().find("x-max-priority")?;
                max.as_i64().is_some_and(|max| max > 0).then_some(QueueKey {
                    vhost: *vhost,
                    queue: id.0,
                })
            }
            _ => None,
        });
        prioritized.collect()
    }

    /// Declares queues and vhosts whose declarations are lost: durable classic queues, by new names. Returns the
    /// declarations.
    pub(crate) fn declare_anew(&mut self, queues: impl Iterator<Item = QueueKey>) -> Vec<Entity> {
        let mut anew = Vec::new();
        let queues: Vec<_> = queues.collect();
        let of_declared = self.declared.iter().map(|(vhost, ..)| *vhost);
        let vhosts = of_declared.chain(queues.iter().map(|key| key.vhost));
        let vhosts: BTreeSet<u16> = vhosts.collect();
        for number in vhosts {
            if self.names.vhost_name(number).is_none() {
                let names = &self.names;
                let name = salvaged_name(number.into(), |name| names.find_vhost(name).is_some());
                self.add_anew(Entity::Vhost { number, name }, &mut anew);
            }
        }
        let mut taken = self.names.queue_names();
        for key in queues {
            if self.names.queue_name(key).is_some() {
                continue;
            }
            let name = salvaged_name(key.queue, |name| taken.contains(&(key.vhost, name.into())));
            taken.insert((key.vhost, Arc::clone(&name)));
            let record = Record::queue_declared(QueueId(key.queue), name, Default::default());
            let vhost = key.vhost;
            self.add_anew(Entity::Declared { vhost, record }, &mut anew);
        }
        anew
    }

    fn add_anew(&mut self, entity: Entity, anew: &mut Vec<Entity>) {
        // Behind all real ones. It gets another place when it is written.
        let place = SEQUENCE_MAX as i64 + 1 + anew.len() as i64;
        self.add(ENTITIES, place, Item::Entity(Some(entity.clone())));
        anew.push(entity);
    }

    /// The queues with damaged messages, or with acknowledgements that are.
    pub(crate) fn damage(&self, acknowledgements: &[QueueKey]) -> Vec<Damaged> {
        let mut found: BTreeMap<QueueKey, (u64, u64)> = BTreeMap::new();
        for (queue, places) in &self.damaged {
            found.entry(*queue).or_default().0 += places.len() as u64;
        }
        for queue in acknowledgements {
            found.entry(*queue).or_default().1 += 1;
        }
        let found = found.into_iter();
        found
            .map(|(queue, (messages, acknowledgements))| {
                Damaged::new(&self.names, queue, messages, acknowledgements)
            })
            .collect()
    }

    /// The settings, by their keys.
    pub(crate) fn take_settings(&mut self) -> Vec<Setting> {
        let names = &self.names;
        let settings = std::mem::take(&mut self.settings).into_iter();
        let settings = settings.filter(|(found, at)| names.is_current_setting(&found.key, *at));
        let mut settings: Vec<_> = settings.map(|(setting, _)| setting).collect();
        settings.sort_by(|a, b| a.key.cmp(&b.key));
        settings
    }

    /// Exchanges, queues, bindings, the messages of each queue in their order, and the places from which on messages
    /// were never delivered.
    pub(crate) fn into_restored(self) -> (Vec<Restored>, Names) {
        let Self {
            names,
            mut declared,
            messages,
            kept,
            ..
        } = self;
        declared.retain(|(vhost, record, place)| names.is_current(*vhost, record, *place));
        declared.sort_by(|a, b| order(a).cmp(&order(b)));
        let is_rested = |record: &Record| matches!(record, Record::Rested { .. });
        let first_rested = declared.partition_point(|(_, record, _)| !is_rested(record));
        let rested = declared.split_off(first_rested);
        let mut restored = Vec::new();
        let mut push = |vhost: u16, record| {
            // A vhost's name is there before anything of it.
            if let Some(vhost) = names.vhost_name(vhost) {
                let vhost = Arc::clone(vhost);
                restored.push(Restored { vhost, record });
            }
        };
        for (vhost, record, _) in declared {
            push(vhost, record);
        }
        let messages: BTreeMap<_, _> = messages.into_iter().collect();
        for (key, mut of_queue) in messages {
            if let Some(from) = kept.get(&key).and_then(|kept| kept.first()) {
                of_queue.retain(|(place, _)| *place < from.from);
            }
            if !of_queue.is_sorted_by_key(|(place, _)| *place) {
                of_queue.sort_by_key(|(place, _)| *place);
            }
            for (place, message) in of_queue {
                let queue = QueueId(key.queue);
                let record = Record::enqueued(queue, place, message);
                push(key.vhost, record);
            }
        }
        for (key, kept) in kept {
            for kept in kept {
                push(key.vhost, Record::Kept(kept));
            }
        }
        for (vhost, record, _) in rested {
            push(vhost, record);
        }
        (restored, names)
    }
}

/// The order of a restore: a binding after its ends.
fn order((vhost, record, _): &(u16, Record, i64)) -> (u8, u16, u64, [&str; 3], bool, &[u8]) {
    let empty: &[u8] = &[];
    match record {
        Record::ExchangeDeclared { name, .. } => (0, *vhost, 0, [name, "", ""], false, empty),
        Record::QueueDeclared { id, .. } => (1, *vhost, id.0, [""; 3], false, empty),
        Record::Bound {
            source,
            destination,
            routing_key,
            arguments,
            ..
        } => {
            let (to_queue, name) = match destination {
                Destination::Exchange(name) => (false, name),
                Destination::Queue(name) => (true, name),
            };
            let names: [&str; 3] = [source, name, routing_key];
            (2, *vhost, 0, names, to_queue, arguments.as_table().bytes())
        }
        Record::Setting { key, .. } => (3, *vhost, 0, [key, "", ""], false, empty),
        Record::Rested { queue, .. } => (4, *vhost, queue.0, [""; 3], false, empty),
        _ => (3, *vhost, 0, [""; 3], false, empty),
    }
}

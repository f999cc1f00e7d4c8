//! The scripts' notation.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_amqp::method::{
    ExchangeBind, ExchangeDeclare, ExchangeDelete, ExchangeUnbind, QueueBind, QueueUnbind,
};
use crosstie_amqp::{Method, ReplyCode, TableBuf, Value};
use crosstie_auth::Permissions;

use super::super::{
    Caller, QueueArguments, QueueFlags, Resource, Topology, check_queue_equivalent,
};
use crate::keys::OfQueue;
use crate::slab::Slab;
use crate::{Fault, Journal, QueueKey, Record, VhostLimits};

/// Runs a script, and compares what each step says with what is indented below it.
pub(super) fn check(script: &str) {
    check_within(&limits(), script);
}

/// The same within other limits.
pub(super) fn check_within(limits: &VhostLimits, script: &str) {
    let mut world = World::new();
    world.topology = Topology::new("/".into(), limits, 1);
    let mut lines = script
        .lines()
        .filter(|line| !line.trim().is_empty())
        .peekable();
    while let Some(step) = lines.next() {
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
            expected += line.trim();
            expected.push('\n');
        }
        let said = world.run(step);
        assert_eq!(said.trim_end(), expected.trim_end(), "after: {step}");
    }
}

pub(super) struct World {
    pub(super) topology: Topology,
    pub(super) journal: Journal,
    keys: Slab<OfQueue, String>,
    declared: BTreeMap<String, (QueueFlags, TableBuf)>,
    locked: BTreeSet<QueueKey>,
    user: String,
    permissions: Permissions,
    kept: Vec<Record>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            topology: Topology::new("/".into(), &limits(), 1),
            journal: Journal::default(),
            keys: Slab::new(),
            declared: BTreeMap::new(),
            locked: BTreeSet::new(),
            user: "guest".to_owned(),
            permissions: Permissions::all(),
            kept: Vec::new(),
        }
    }

    pub(super) fn add_queue(&mut self, name: &str, is_durable: bool) -> QueueKey {
        let key = self.keys.insert(name.to_owned());
        self.topology.add_queue(name.into(), key, is_durable, 0);
        key
    }

    fn run(&mut self, step: &str) -> String {
        if let Some(repeated) = step.strip_prefix("times ") {
            return self.repeat(repeated);
        }
        let words: Vec<&str> = step.split_whitespace().collect();
        let (verb, words) = words.split_first().expect("a verb");
        let words: Vec<&str> = words
            .iter()
            .map(|word| if *word == "''" { "" } else { *word })
            .collect();
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        let has = |flag: &str| words.contains(&flag);
        let arguments = arguments(&words);
        let arguments = arguments.as_table();
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        let user = self.user.clone();
        let permissions = self.permissions.clone();
        let caller = |method: Method<'static>| Caller {
            user: &user,
            permissions: &permissions,
            method: method.ids(),
        };
        let locked = &self.locked;
        let lock = |caller: Caller<'_>, name: &str, key| match locked.contains(&key) {
            true => Err(caller.fault(ReplyCode::ResourceLocked, format!("{name} is locked"))),
            false => Ok(()),
        };
        let result: Result<(), Fault> = match *verb {
            "exchange" => {
                let method = ExchangeDeclare {
                    exchange: word(0),
                    kind: word(1),
                    passive: has("passive"),
                    durable: has("durable"),
                    auto_delete: has("auto_delete"),
                    internal: has("internal"),
                    no_wait: false,
                    arguments,
                };
                let caller = caller(ExchangeDeclare::default().into());
                topology.declare_exchange(&caller, &method, journal)
            }
            "delete" => {
                let method = ExchangeDelete {
                    exchange: word(0),
                    if_unused: has("if_unused"),
                    no_wait: false,
                };
                let caller = caller(ExchangeDelete::default().into());
                topology.delete_exchange(&caller, &method, journal)
            }
            "bind" => {
                let method = QueueBind {
                    queue: word(0),
                    exchange: word(1),
                    routing_key: word(2),
                    no_wait: false,
                    arguments,
                };
                let caller = caller(QueueBind::default().into());
                let check = |key| lock(caller, word(0), key);
                topology.bind_queue(&caller, &method, check, journal)
            }
            "unbind" => {
                let method = QueueUnbind {
                    queue: word(0),
                    exchange: word(1),
                    routing_key: word(2),
                    arguments,
                };
                let caller = caller(QueueUnbind::default().into());
                let check = |key| lock(caller, word(0), key);
                topology.unbind_queue(&caller, &method, check, journal)
            }
            "bind_exchange" => {
                let method = ExchangeBind {
                    destination: word(0),
                    source: word(1),
                    routing_key: word(2),
                    no_wait: false,
                    arguments,
                };
                let caller = caller(ExchangeBind::default().into());
                topology.bind_exchange(&caller, &method, journal)
            }
            "unbind_exchange" => {
                let method = ExchangeUnbind {
                    destination: word(0),
                    source: word(1),
                    routing_key: word(2),
                    no_wait: false,
                    arguments,
                };
                let caller = caller(ExchangeUnbind::default().into());
                topology.unbind_exchange(&caller, &method, journal)
            }
            "publish" => {
                let caller = caller(crosstie_amqp::method::BasicPublish::default().into());
                topology.exchange_to_publish(&caller, word(0)).map(drop)
            }
            "declare" => {
                let flags = QueueFlags {
                    durable: has("durable"),
                    exclusive: has("exclusive"),
                    auto_delete: has("auto_delete"),
                };
                let queue = Resource::queue(word(0), "/");
                let caller = caller(crosstie_amqp::method::QueueDeclare::default().into());
                if let Some((known, known_arguments)) = self.declared.get(word(0)) {
                    let current = (*known, known_arguments.as_table());
                    check_queue_equivalent(&caller, queue, current, (flags, arguments))
                } else {
                    let check = caller.check_not_reserved(queue);
                    let parse = |()| QueueArguments::parse(&caller, queue, flags, arguments);
                    check.and_then(parse).map(|_| {
                        let declared = (flags, arguments.into());
                        self.declared.insert(word(0).to_owned(), declared);
                    })
                }
            }
            "route" => {
                let mut found = Vec::new();
                if let Some(exchange) = topology.exchange(word(0)) {
                    topology.route(exchange, word(1), arguments, &mut found);
                }
                let names = found.iter().filter_map(|key| self.keys.find(*key));
                let mut names: Vec<_> = names.cloned().collect();
                names.sort();
                return names.join(" ");
            }
            "queue" => {
                self.add_queue(word(0), has("durable"));
                Ok(())
            }
            "lock" => {
                self.locked.extend(topology.queue(word(0)));
                Ok(())
            }
            "drop" => {
                if let Some(key) = topology.queue(word(0)) {
                    topology.remove_queue(key, journal);
                    self.keys.remove(key);
                }
                Ok(())
            }
            "user" => {
                self.user = word(0).to_owned();
                let parsed = Permissions::parse(word(1), word(2), word(3));
                self.permissions = parsed.expect("patterns");
                Ok(())
            }
            "journal" => {
                let records = std::mem::take(&mut journal.records);
                let text = records.iter().map(record_text).collect::<Vec<_>>();
                self.kept.extend(records);
                return text.join("\n");
            }
            "restart" => {
                self.kept.append(&mut journal.records);
                self.topology = Topology::new("/".into(), &limits(), 2);
                self.keys = Slab::new();
                for name in &words {
                    self.add_queue(name, true);
                }
                for record in &self.kept {
                    self.topology.restore(record);
                }
                Ok(())
            }
            "exchanges" => {
                let known = topology.exchanges();
                let known = known.filter(|e| !e.name.is_empty() && !e.name.starts_with("amq."));
                let mut names: Vec<_> = known.map(|e| format!("{} {}", e.name, e.kind)).collect();
                names.sort();
                return names.join("\n");
            }
            "bindings" => {
                let mut texts: Vec<_> = topology
                    .bindings()
                    .map(|b| format!("'{}' {:?} '{}'", b.source, b.destination, b.routing_key))
                    .collect();
                texts.sort();
                return texts.join("\n");
            }
            "clear" => {
                while topology.clear_one(journal) {}
                Ok(())
            }
            "counts" => {
                return format!(
                    "{} exchanges {} bindings {} queues",
                    topology.exchange_count(),
                    topology.binding_count(),
                    topology.queue_count()
                );
            }
            other => panic!("no step {other}"),
        };
        match result {
            Ok(()) => String::new(),
            Err(fault) => format!("{} {}", fault.code.code(), fault.text),
        }
    }
}

impl World {
    /// A step so many times, with its number in the place of `#`.
    fn repeat(&mut self, repeated: &str) -> String {
        let (times, step) = repeated.split_once(' ').expect("a number and a step");
        let times: u32 = times.parse().expect("a number");
        let said = (1..=times).map(|number| self.run(&step.replace('#', &number.to_string())));
        said.collect()
    }
}

/// Words `name=value`: integers, `true`, `false`, `void`, `[a,b]`, `{a:1,b:2}`, `long:5` and other
/// kinds by name, or text.
fn arguments(words: &[&str]) -> TableBuf {
    let fields = words.iter().filter_map(|word| word.split_once('='));
    fields.fold(TableBuf::new(), |table, (name, text)| {
        let list;
        let value = match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "void" => Value::Void,
            "''" => Value::LongString(b""),
            _ => match (text.parse::<i32>(), text.parse::<i64>()) {
                (Ok(number), _) => Value::I32(number),
                (_, Ok(number)) => Value::I64(number),
                _ if text.starts_with('{') => {
                    let inner = text.trim_matches(['{', '}']).replace(':', "=");
                    list = arguments(&inner.split(',').collect::<Vec<_>>());
                    Value::Table(list.as_table())
                }
                _ => of_kind(text).unwrap_or(Value::LongString(text.as_bytes())),
            },
        };
        match text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
        {
            Some(texts) => with_array(table, name, texts),
            None => table.with(name, value),
        }
    })
}

/// `kind:number`.
fn of_kind(text: &str) -> Option<Value<'_>> {
    let (kind, number) = text.split_once(':')?;
    Some(match kind {
        "byte" => Value::U8(number.parse().ok()?),
        "long" => Value::I64(number.parse().ok()?),
        "float" => Value::F32(number.parse().ok()?),
        "double" => Value::F64(number.parse().ok()?),
        "decimal" => Value::Decimal {
            scale: 0,
            value: number.parse().ok()?,
        },
        "timestamp" => Value::Timestamp(number.parse().ok()?),
        "bytes" => Value::ByteArray(number.as_bytes()),
        _ => return None,
    })
}

/// A field of strings, written by hand: the crate has no way to make an array yet.
fn with_array(table: TableBuf, name: &str, texts: &str) -> TableBuf {
    let mut array = Vec::new();
    for text in texts.split(',') {
        array.push(b'S');
        array.extend_from_slice(&(text.len() as u32).to_be_bytes());
        array.extend_from_slice(text.as_bytes());
    }
    let mut bytes = table.as_table().bytes().to_vec();
    bytes.push(name.len() as u8);
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'A');
    bytes.extend_from_slice(&(array.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&array);
    crosstie_amqp::Table::from_bytes(&bytes)
        .expect("a table")
        .into()
}

fn record_text(record: &Record) -> String {
    match record {
        Record::ExchangeDeclared { name, kind, .. } => format!("+ {kind} {name}"),
        Record::ExchangeDeleted { name } => format!("- {name}"),
        Record::Bound {
            source,
            destination,
            routing_key,
            ..
        } => format!("+ {source} -> {destination:?} by '{routing_key}'"),
        Record::Unbound {
            source,
            destination,
            routing_key,
            ..
        } => format!("- {source} -> {destination:?} by '{routing_key}'"),
        other => format!("{other:?}"),
    }
}

fn limits() -> VhostLimits {
    VhostLimits {
        exchanges_max: 20,
        bindings_max: 10,
        ..VhostLimits::default()
    }
}

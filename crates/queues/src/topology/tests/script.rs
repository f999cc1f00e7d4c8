//! The scripts' notation.

use std::collections::{BTreeMap, BTreeSet};

use crosstie_amqp::method::{
    BasicPublish, ExchangeBind, ExchangeDeclare, ExchangeDelete, ExchangeUnbind, QueueBind,
    QueueDeclare, QueueUnbind,
};
use crosstie_amqp::{BasicProperties, Method, Properties, ReplyCode, TableBuf, Value};
use crosstie_auth::Permissions;
use crosstie_collections::Slab;

use super::super::{
    BindingRequest, Caller, QueueArguments, QueueFlags, Resource, Routed, Topology,
    check_queue_equivalent,
};
use crate::keys::OfQueue;
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
        let words: Vec<&str> = step
            .split_whitespace()
            .map(|word| if word == "''" { "" } else { word })
            .collect();
        let step = Step {
            verb: words.first().expect("a verb"),
            words: &words[1..],
            arguments: arguments(&words[1..]),
        };
        if let Some(text) = self.show(&step) {
            return text;
        }
        let user = self.user.clone();
        let permissions = self.permissions.clone();
        let caller = |method: Method<'static>| Caller {
            user: &user,
            permissions: &permissions,
            method: method.ids(),
        };
        let handled = self
            .handle_exchange(&step, caller)
            .or_else(|| self.handle_queue(&step, caller));
        match handled {
            Some(Ok(())) => String::new(),
            Some(Err(fault)) => format!("{} {}", fault.code.code(), fault.text),
            None => {
                self.arrange(&step);
                String::new()
            }
        }
    }

    /// Methods about an exchange.
    fn handle_exchange<'c>(
        &mut self,
        step: &Step<'_>,
        caller: impl Fn(Method<'static>) -> Caller<'c>,
    ) -> Option<Result<(), Fault>> {
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        Some(match step.verb {
            "exchange" => {
                let method = ExchangeDeclare {
                    exchange: step.word(0),
                    kind: step.word(1),
                    passive: step.has("passive"),
                    durable: step.has("durable"),
                    auto_delete: step.has("auto_delete"),
                    internal: step.has("internal"),
                    no_wait: false,
                    arguments: step.arguments.as_table(),
                };
                let caller = caller(ExchangeDeclare::default().into());
                topology.declare_exchange(&caller, &method, journal)
            }
            "delete" => {
                let method = ExchangeDelete {
                    exchange: step.word(0),
                    if_unused: step.has("if_unused"),
                    no_wait: false,
                };
                let caller = caller(ExchangeDelete::default().into());
                topology.delete_exchange(&caller, &method, journal)
            }
            "bind_exchange" | "unbind_exchange" => {
                let (key, table) = (step.word(2), step.arguments.as_table());
                let asked = BindingRequest::exchange(step.word(0), step.word(1), key, table);
                match step.verb {
                    "bind_exchange" => {
                        let caller = caller(ExchangeBind::default().into());
                        topology
                            .bind(&caller, &asked, |_| Ok(()), journal)
                            .map(drop)
                    }
                    _ => {
                        let caller = caller(ExchangeUnbind::default().into());
                        topology.unbind(&caller, &asked, |_| Ok(()), journal)
                    }
                }
            }
            "publish" => {
                let caller = caller(BasicPublish::default().into());
                topology
                    .exchange_to_publish(&caller, step.word(0))
                    .map(drop)
            }
            _ => return None,
        })
    }

    /// Methods about a queue.
    fn handle_queue<'c>(
        &mut self,
        step: &Step<'_>,
        caller: impl Fn(Method<'static>) -> Caller<'c>,
    ) -> Option<Result<(), Fault>> {
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        let locked = &self.locked;
        let lock = |caller: Caller<'_>, name: &str, key| match locked.contains(&key) {
            true => Err(caller.fault(ReplyCode::ResourceLocked, format!("{name} is locked"))),
            false => Ok(()),
        };
        Some(match step.verb {
            "bind" | "unbind" => {
                let (key, table) = (step.word(2), step.arguments.as_table());
                let asked = BindingRequest::queue(step.word(0), step.word(1), key, table);
                match step.verb {
                    "bind" => {
                        let caller = caller(QueueBind::default().into());
                        let check = |key| lock(caller, step.word(0), key);
                        topology.bind(&caller, &asked, check, journal).map(drop)
                    }
                    _ => {
                        let caller = caller(QueueUnbind::default().into());
                        let check = |key| lock(caller, step.word(0), key);
                        topology.unbind(&caller, &asked, check, journal)
                    }
                }
            }
            "declare" => self.declare(step, &caller(QueueDeclare::default().into())),
            _ => return None,
        })
    }

    fn declare(&mut self, step: &Step<'_>, caller: &Caller<'_>) -> Result<(), Fault> {
        let flags = QueueFlags {
            durable: step.has("durable"),
            exclusive: step.has("exclusive"),
            auto_delete: step.has("auto_delete"),
        };
        let (name, arguments) = (step.word(0), step.arguments.as_table());
        let queue = Resource::queue(name, "/");
        if let Some((known, known_arguments)) = self.declared.get(name) {
            let current = (*known, known_arguments.as_table());
            return check_queue_equivalent(caller, queue, current, (flags, arguments));
        }
        caller.check_not_reserved(queue)?;
        QueueArguments::parse(caller, queue, flags, arguments)?;
        let declared = (flags, arguments.into());
        self.declared.insert(name.to_owned(), declared);
        Ok(())
    }

    /// Steps that only look.
    fn show(&mut self, step: &Step<'_>) -> Option<String> {
        let topology = &mut self.topology;
        Some(match step.verb {
            "route" => {
                let mut found = Vec::new();
                if let Some(exchange) = topology.exchange(step.word(0)) {
                    let (properties, headers) = properties(&step.arguments);
                    let message = Routed {
                        routing_key: step.word(1),
                        headers: headers.as_table(),
                        properties: Properties::from_checked_bytes(&properties),
                    };
                    topology.route(exchange, message, &mut found);
                }
                let names = found.iter().filter_map(|key| self.keys.find(*key));
                let mut names: Vec<_> = names.cloned().collect();
                names.sort();
                names.join(" ")
            }
            "journal" => {
                let records = std::mem::take(&mut self.journal.records);
                let text = records.iter().map(record_text).collect::<Vec<_>>();
                self.kept.extend(records);
                text.join("\n")
            }
            "exchanges" => {
                let known = topology.exchanges();
                let known = known.map(|(_, exchange)| exchange);
                let known = known.filter(|e| !e.name.is_empty() && !e.name.starts_with("amq."));
                let mut names: Vec<_> = known.map(|e| format!("{} {}", e.name, e.kind)).collect();
                names.sort();
                names.join("\n")
            }
            "bindings" => {
                let mut texts: Vec<_> = topology
                    .bindings()
                    .map(|b| format!("'{}' {:?} '{}'", b.source, b.destination, b.routing_key))
                    .collect();
                texts.sort();
                texts.join("\n")
            }
            "counts" => format!(
                "{} exchanges {} bindings {} queues",
                topology.exchange_count(),
                topology.binding_count(),
                topology.queue_count()
            ),
            _ => return None,
        })
    }

    /// Steps that no client takes.
    fn arrange(&mut self, step: &Step<'_>) {
        let (topology, journal) = (&mut self.topology, &mut self.journal);
        match step.verb {
            "queue" => {
                self.add_queue(step.word(0), step.has("durable"));
            }
            "lock" => self.locked.extend(topology.queue(step.word(0))),
            "drop" => {
                if let Some(key) = topology.queue(step.word(0)) {
                    topology.remove_queue(key, journal);
                    self.keys.remove(key);
                }
            }
            "user" => {
                self.user = step.word(0).to_owned();
                let parsed = Permissions::parse(step.word(1), step.word(2), step.word(3));
                self.permissions = parsed.expect("patterns");
            }
            "restart" | "restart_backwards" => {
                self.kept.append(&mut journal.records);
                self.topology = Topology::new("/".into(), &limits(), 2);
                self.keys = Slab::new();
                for name in step.words {
                    self.add_queue(name, true);
                }
                let (bound, others): (Vec<_>, Vec<_>) =
                    (self.kept.iter()).partition(|record| matches!(record, Record::Bound { .. }));
                match step.verb {
                    "restart" => self.kept.iter().for_each(|r| self.topology.restore(r)),
                    // As a store may, which has bindings in another order.
                    _ => (others.into_iter().chain(bound.into_iter().rev()))
                        .for_each(|record| self.topology.restore(record)),
                }
            }
            "clear" => while topology.clear_one(journal) {},
            other => panic!("no step {other}"),
        }
    }
}

/// One line of a script.
struct Step<'s> {
    verb: &'s str,
    words: &'s [&'s str],
    arguments: TableBuf,
}

impl<'s> Step<'s> {
    fn word(&self, index: usize) -> &'s str {
        self.words.get(index).copied().unwrap_or_default()
    }

    fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
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

/// The properties of a message: `message_id`, `correlation_id` and `timestamp` from fields of these names, and headers
/// from the others.
fn properties(fields: &TableBuf) -> (Vec<u8>, TableBuf) {
    let mut named = BasicProperties::default();
    let mut headers = TableBuf::new();
    for (name, value) in fields.as_table().iter() {
        match (name, value) {
            ("message_id", _) => named.message_id = value.as_str(),
            ("correlation_id", _) => named.correlation_id = value.as_str(),
            ("timestamp", Value::Timestamp(seconds)) => named.timestamp = Some(seconds),
            _ => headers = headers.with(name, value),
        }
    }
    let mut bytes = Vec::new();
    named.write(&mut bytes);
    (bytes, headers)
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
            order,
            ..
        } => {
            let order = match order {
                0 => String::new(),
                order => format!(" at {order}"),
            };
            format!("+ {source} -> {destination:?} by '{routing_key}'{order}")
        }
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

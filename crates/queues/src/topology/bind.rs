//! Adding and removing of bindings.

use std::sync::Arc;

use crosstie_amqp::Table;
use crosstie_auth::Access;

use super::bindings::{Binding, BindingKey};
use super::cost::BINDING_STEPS;
use super::destinations::Target;
use super::exchange::{Details, ExchangeKind};
use super::hashing::Weight;
use super::headers::HeadersPattern;
use super::resource::ResourceKind;
use super::{Caller, ExchangeKey, Resource, Topology, record, strip_line_ends};
use crate::{Destination, Fault, Journal, QueueKey, Record};

impl Topology {
    /// The name of a target.
    pub(super) fn destination(&self, target: Target) -> Option<Destination> {
        Some(match target {
            Target::Exchange(key) => Destination::Exchange(self.exchanges.find(key)?.name.clone()),
            Target::Queue(key) => Destination::Queue(self.queues.find(key)?.name.clone()),
        })
    }

    /// Adds a binding unless it exists. Returns its place in the order of the source's bindings, if routing depends on
    /// that.
    pub(super) fn add_binding(&mut self, binding: Arc<Binding>, details: Details) -> Option<u64> {
        self.count_steps(BINDING_STEPS);
        let key = self.bindings.insert(&binding)?;
        self.changes += 1;
        self.bytes.held += binding.bytes();
        let mut order = None;
        self.change_exchange(binding.source, |source| {
            order = source.insert(key, &binding, details);
        });
        match binding.target {
            Target::Exchange(exchange) => {
                self.change_exchange(exchange, |exchange| {
                    exchange.incoming.insert(key);
                });
            }
            Target::Queue(queue) => {
                if let Some(queue) = self.queues.find_mut(queue) {
                    queue.incoming.insert(key);
                }
            }
        }
        order
    }

    /// Records a binding, if it is durable.
    fn record_bound(&self, binding: &Binding, order: Option<u64>, journal: &mut Journal) {
        if let Some((source, destination)) = self.ends_if_durable(binding) {
            record(
                journal,
                Record::Bound {
                    source,
                    destination,
                    routing_key: binding.routing_key.clone(),
                    arguments: binding.arguments.clone(),
                    order: order.unwrap_or_default(),
                },
            );
        }
    }

    pub(super) fn target(&self, destination: (ResourceKind, &str)) -> Option<Target> {
        match destination {
            (ResourceKind::Exchange, name) => self.exchange(name).map(Target::Exchange),
            (ResourceKind::Queue, name) => self.queue(name).map(Target::Queue),
        }
    }

    /// The checked key and arguments of a binding of that exchange. `order`: its place among the source's bindings, in a
    /// restore.
    pub(super) fn details(&self, binding: &Binding, order: Option<u64>) -> Result<Details, String> {
        let source = self.exchanges.find(binding.source);
        Ok(match source.map(|exchange| exchange.routes_as) {
            Some(ExchangeKind::Headers) => {
                Details::Pattern(HeadersPattern::parse(&binding.arguments)?)
            }
            Some(ExchangeKind::ConsistentHash) => {
                let weight = Weight::parse(&binding.routing_key)?;
                Details::Weight { weight, order }
            }
            Some(ExchangeKind::ModulusHash) => match self.destination(binding.target) {
                Some(destination) => Details::Destination(destination),
                None => Details::None,
            },
            _ => Details::None,
        })
    }

    /// `queue.bind` or `exchange.bind`. `check`: checks that this connection may use the queue. Returns the binding if it
    /// is new.
    pub(crate) fn bind(
        &mut self,
        caller: &Caller<'_>,
        asked: &BindingRequest<'_>,
        check: impl FnOnce(QueueKey) -> Result<(), Fault>,
        journal: &mut Journal,
    ) -> Result<Option<NewBinding>, Fault> {
        let vhost = self.vhost.clone();
        let names = asked.names();
        let (source, destination) = asked.check(caller, &names, &vhost)?;
        let Some(source_key) = self.exchange(source.name) else {
            return Err(caller.not_found(source));
        };
        self.check_topic(caller, Access::Read, source_key, asked.routing_key)?;
        let Some(target) = self.target((destination.kind, destination.name)) else {
            return Err(caller.not_found(destination));
        };
        if let Target::Queue(queue) = target {
            check(queue)?;
        }
        let binding = Binding::new(source_key, target, asked.routing_key, asked.arguments);
        let details = self.details(&binding, None);
        let details = details.map_err(|text| caller.precondition_failed(text))?;
        if self.bindings.find(&binding).is_some() {
            return Ok(None);
        }
        if self.bindings.len() >= self.bindings_max {
            return Err(caller.precondition_failed(format!(
                "cannot bind {destination}: binding limit in vhost '{vhost}' ({}) is reached",
                self.bindings_max
            )));
        }
        self.check_room(caller, binding.bytes(), || format!("bind {destination}"))?;
        let binding = Arc::new(binding);
        let before = self.before(source_key);
        let order = self.add_binding(binding.clone(), details);
        let checked = self.check_cost(caller, source_key, &before, || {
            format!("bind {destination}")
        });
        match (checked, self.bindings.find(&binding)) {
            (Err(fault), Some(key)) => {
                self.take_binding(key);
                return Err(fault);
            }
            _ => self.record_bound(&binding, order, journal),
        }
        let source = source_key;
        Ok(Some(NewBinding { source, target }))
    }

    /// `queue.unbind` or `exchange.unbind`. Removing an absent binding succeeds, as in RabbitMQ.
    pub(crate) fn unbind(
        &mut self,
        caller: &Caller<'_>,
        asked: &BindingRequest<'_>,
        check: impl FnOnce(QueueKey) -> Result<(), Fault>,
        journal: &mut Journal,
    ) -> Result<(), Fault> {
        let vhost = self.vhost.clone();
        let names = asked.names();
        let (source, destination) = asked.check(caller, &names, &vhost)?;
        if let Some(source) = self.exchange(source.name) {
            self.check_topic(caller, Access::Read, source, asked.routing_key)?;
        }
        let (Some(source), Some(target)) = (
            self.exchange(source.name),
            self.target((destination.kind, destination.name)),
        ) else {
            return Ok(());
        };
        let binding = Binding::new(source, target, asked.routing_key, asked.arguments);
        let Some(binding) = self.bindings.find(&binding) else {
            return Ok(());
        };
        if let Target::Queue(queue) = target {
            check(queue)?;
        }
        let remains_before = self.remains.len();
        if let Some(deserted) = self.remove_binding(binding, journal) {
            self.remove_exchange(deserted, journal);
            self.clear_few(remains_before, journal);
        }
        Ok(())
    }

    /// Whether an exchange has a binding to a queue with that key, and without arguments.
    pub(crate) fn has_binding(&self, exchange: &str, queue: &str, routing_key: &str) -> bool {
        let (Some(source), Some(target)) = (
            self.exchange(exchange),
            self.target((ResourceKind::Queue, queue)),
        ) else {
            return false;
        };
        let binding = Binding::new(source, target, routing_key, Table::default());
        self.bindings.find(&binding).is_some()
    }

    /// Removes a binding; returns its source if that is to be deleted now.
    pub(super) fn remove_binding(
        &mut self,
        key: BindingKey,
        journal: &mut Journal,
    ) -> Option<ExchangeKey> {
        let binding = self.take_binding(key)?;
        if let Some((source, destination)) = self.ends_if_durable(&binding) {
            record(
                journal,
                Record::Unbound {
                    source,
                    destination,
                    routing_key: binding.routing_key.clone(),
                    arguments: binding.arguments.clone(),
                },
            );
        }
        let source = self.exchanges.find(binding.source)?;
        let is_deserted = source.auto_delete && source.outgoing.is_empty();
        is_deserted.then_some(binding.source)
    }

    pub(super) fn take_binding(&mut self, key: BindingKey) -> Option<Arc<Binding>> {
        self.count_steps(BINDING_STEPS);
        let binding = self.bindings.remove(key)?;
        self.changes += 1;
        self.bytes.held -= binding.bytes();
        match binding.target {
            Target::Exchange(exchange) => {
                self.change_exchange(exchange, |exchange| {
                    exchange.incoming.swap_remove(&key);
                });
            }
            Target::Queue(queue) => {
                if let Some(queue) = self.queues.find_mut(queue) {
                    queue.incoming.swap_remove(&key);
                }
            }
        }
        self.change_exchange(binding.source, |source| source.remove(key, &binding));
        Some(binding)
    }

    /// The names of a binding's ends, if both are durable.
    fn ends_if_durable(&self, binding: &Binding) -> Option<(Arc<str>, Destination)> {
        let source = self.exchanges.find(binding.source)?;
        let is_durable = match binding.target {
            Target::Exchange(key) => self.exchanges.find(key)?.durable,
            Target::Queue(key) => self.queues.find(key)?.is_durable,
        };
        if source.durable && is_durable {
            let destination = self.destination(binding.target)?;
            Some((source.name.clone(), destination))
        } else {
            None
        }
    }
}

/// The ends of a binding that was added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewBinding {
    pub(crate) source: ExchangeKey,
    pub(crate) target: Target,
}

/// A binding as a client requests it.
#[derive(Clone, Copy)]
pub(crate) struct BindingRequest<'a> {
    pub(crate) source: &'a str,
    pub(crate) destination: (ResourceKind, &'a str),
    pub(crate) routing_key: &'a str,
    pub(crate) arguments: Table<'a>,
}

/// Source and destination without line ends.
type Names<'a> = [std::borrow::Cow<'a, str>; 2];

impl<'a> BindingRequest<'a> {
    /// A binding of a queue to the exchange `source`.
    pub(crate) fn queue(
        queue: &'a str,
        source: &'a str,
        routing_key: &'a str,
        arguments: Table<'a>,
    ) -> Self {
        Self {
            source,
            destination: (ResourceKind::Queue, queue),
            routing_key,
            arguments,
        }
    }

    /// A binding of an exchange to the exchange `source`.
    pub(crate) fn exchange(
        exchange: &'a str,
        source: &'a str,
        routing_key: &'a str,
        arguments: Table<'a>,
    ) -> Self {
        Self {
            destination: (ResourceKind::Exchange, exchange),
            ..Self::queue(exchange, source, routing_key, arguments)
        }
    }

    fn names(&self) -> Names<'_> {
        [self.source, self.destination.1].map(strip_line_ends)
    }

    /// Checks the permissions to add or remove a binding (write to the destination, read the source), and that neither
    /// is the default exchange.
    fn check<'n>(
        &self,
        caller: &Caller<'_>,
        names: &'n Names<'_>,
        vhost: &'n str,
    ) -> Result<(Resource<'n>, Resource<'n>), Fault> {
        let source = Resource::exchange(&names[0], vhost);
        let destination = Resource {
            kind: self.destination.0,
            name: &names[1],
            vhost,
        };
        caller.check(Access::Write, destination)?;
        caller.check_not_default_of(&[destination, source])?;
        caller.check(Access::Read, source)?;
        Ok((source, destination))
    }
}

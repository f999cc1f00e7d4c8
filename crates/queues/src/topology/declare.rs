//! Declaring and deleting of exchanges.

use crosstie_amqp::method::{ExchangeDeclare, ExchangeDelete};
use crosstie_amqp::{ReplyCode, Table, TableBuf, Value};
use crosstie_auth::Access;

use super::cost::BINDING_STEPS;
use super::delays::{delayed_type, unknown_delayed_type};
use super::exchange::{Exchange, ExchangeKind};
use super::hashing::HashOn;
use super::histories::history_messages;
use super::{Caller, ExchangeKey, Resource, Topology, equivalence, record, strip_line_ends, term};
use crate::{Fault, Journal, Record};

/// An exchange as it is requested.
pub(super) struct Declaration<'a> {
    pub(super) name: &'a str,
    pub(super) kind: ExchangeKind,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) internal: bool,
    pub(super) arguments: Table<'a>,
}

pub(super) const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

impl Topology {
    /// `exchange.declare`.
    pub(crate) fn declare_exchange(
        &mut self,
        caller: &Caller<'_>,
        method: &ExchangeDeclare<'_>,
        journal: &mut Journal,
    ) -> Result<(), Fault> {
        let name = &*strip_line_ends(method.exchange);
        let vhost = self.vhost.clone();
        let resource = Resource::exchange(name, &vhost);
        if method.passive {
            caller.check_not_default(resource)?;
            let found = self.exchange(name).map(drop);
            return found.ok_or_else(|| caller.not_found(resource));
        }
        let Some(kind) = ExchangeKind::find(method.kind) else {
            let text = format!("unknown exchange type '{}'", method.kind);
            return Err(caller.fault(ReplyCode::CommandInvalid, text));
        };
        caller.check_not_default(resource)?;
        caller.check(Access::Configure, resource)?;
        let declaration = Declaration {
            name,
            kind,
            durable: method.durable,
            auto_delete: method.auto_delete,
            internal: method.internal,
            arguments: method.arguments,
        };
        if let Some(key) = self.exchange(name)
            && let Some(exchange) = self.exchanges.find(key)
        {
            return check_equivalent(caller, resource, exchange, &declaration);
        }
        caller.check_not_reserved(resource)?;
        match method.arguments.find(ALTERNATE_EXCHANGE) {
            None => {}
            Some(Value::LongString(bytes)) => {
                let alternate = String::from_utf8_lossy(bytes);
                caller.check(Access::Read, resource)?;
                caller.check(Access::Write, Resource::exchange(&alternate, &vhost))?;
                self.check_alternate(caller, resource, &alternate)?;
            }
            Some(value) => {
                return Err(caller.precondition_failed(format!(
                    "invalid type '{}' for arg '{ALTERNATE_EXCHANGE}' in {resource}",
                    term::kind(value)
                )));
            }
        }
        self.check_exchange_arguments(caller, resource, &declaration)?;
        if self.exchanges.len() >= self.exchanges_max {
            return Err(caller.precondition_failed(format!(
                "cannot declare {resource}: exchange limit in vhost '{vhost}' ({}) is reached",
                self.exchanges_max
            )));
        }
        let bytes = definition_bytes(name, method.arguments);
        self.check_room(caller, bytes, || format!("declare {resource}"))?;
        self.add_exchange(&declaration, journal);
        Ok(())
    }

    /// Checks the arguments of a new exchange that only its type knows.
    fn check_exchange_arguments(
        &self,
        caller: &Caller<'_>,
        resource: Resource<'_>,
        declaration: &Declaration<'_>,
    ) -> Result<(), Fault> {
        let arguments = declaration.arguments;
        let kind = match declaration.kind {
            ExchangeKind::Delayed => {
                let kind = delayed_type(arguments);
                kind.map_err(|text| match unknown_delayed_type(arguments) {
                    Some(text) => caller.fault(ReplyCode::CommandInvalid, text),
                    None => caller.precondition_failed(text),
                })?
            }
            kind => kind,
        };
        match kind {
            ExchangeKind::ConsistentHash => HashOn::parse(arguments).map(drop),
            ExchangeKind::RecentHistory => match history_messages(arguments) {
                Ok(messages) if messages > self.history_messages_max => Err(format!(
                    "cannot declare {resource}: a history of {messages} messages is longer than \
                     history_messages_max ({})",
                    self.history_messages_max
                )),
                parsed => parsed.map(drop),
            },
            _ => Ok(()),
        }
        .map_err(|text| caller.precondition_failed(text))
    }

    /// `exchange.delete`. Deleting an absent exchange succeeds, as in RabbitMQ.
    pub(crate) fn delete_exchange(
        &mut self,
        caller: &Caller<'_>,
        method: &ExchangeDelete<'_>,
        journal: &mut Journal,
    ) -> Result<(), Fault> {
        let name = &*strip_line_ends(method.exchange);
        let vhost = self.vhost.clone();
        let resource = Resource::exchange(name, &vhost);
        caller.check_not_default(resource)?;
        if name.starts_with(RESERVED_PREFIX) {
            let text = format!("deletion of system {resource} not allowed");
            return Err(caller.fault(ReplyCode::AccessRefused, text));
        }
        caller.check(Access::Configure, resource)?;
        let Some(key) = self.exchange(name) else {
            return Ok(());
        };
        let exchange = self.exchanges.find(key);
        if method.if_unused && exchange.is_some_and(|exchange| !exchange.outgoing.is_empty()) {
            return Err(caller.precondition_failed(format!("{resource} in use")));
        }
        let remains_before = self.remains.len();
        self.remove_exchange(key, journal);
        self.clear_few(remains_before, journal);
        Ok(())
    }

    /// Adds an exchange whose name is free.
    pub(super) fn add_exchange(&mut self, declaration: &Declaration<'_>, journal: &mut Journal) {
        let (name, kind, arguments) = (declaration.name, declaration.kind, declaration.arguments);
        let mut exchange = Exchange::new(name.into(), kind, arguments, &self.hasher);
        exchange.durable = declaration.durable;
        exchange.auto_delete = declaration.auto_delete;
        exchange.internal = declaration.internal;
        exchange.alternate = declaration
            .arguments
            .find(ALTERNATE_EXCHANGE)
            .and_then(Value::as_str)
            .map(Into::into);
        let name = exchange.name.clone();
        if declaration.durable {
            record(
                journal,
                Record::ExchangeDeclared {
                    name: name.clone(),
                    kind: declaration.kind.name().into(),
                    auto_delete: declaration.auto_delete,
                    internal: declaration.internal,
                    arguments: TableBuf::from(declaration.arguments),
                },
            );
        }
        self.bytes.held += definition_bytes(&name, declaration.arguments);
        exchange.alternate_of = self.alternates.get(&name).copied().unwrap_or(0);
        let alternate = exchange.alternate.clone();
        let key = self.exchanges.insert(exchange);
        self.changes += 1;
        self.exchange_keys.insert(name, key);
        if let Some(alternate) = alternate {
            self.add_alternate(&alternate);
        }
    }

    /// Removes an exchange; its bindings, and auto-delete exchanges without others, remain to be cleared away.
    pub(super) fn remove_exchange(&mut self, key: ExchangeKey, journal: &mut Journal) {
        if let Some(alternate) = self.exchanges.find(key).and_then(|e| e.alternate.clone()) {
            self.remove_alternate(&alternate);
        }
        let Some(exchange) = self.exchanges.remove(key) else {
            return;
        };
        self.count_steps(BINDING_STEPS);
        self.changes += 1;
        self.exchange_keys.remove(&exchange.name);
        if exchange.keeps_messages {
            self.ended.push(key);
        }
        self.bytes.held -= definition_bytes(&exchange.name, exchange.arguments.as_table());
        if exchange.durable {
            let name = exchange.name.clone();
            record(journal, Record::ExchangeDeleted { name });
        }
        self.leave_exchange(exchange);
    }
}

/// Names with this prefix belong to the broker.
const RESERVED_PREFIX: &str = "amq.";

impl Caller<'_> {
    fn check_not_default(&self, resource: Resource<'_>) -> Result<(), Fault> {
        self.check_not_default_of(&[resource])
    }

    pub(super) fn check_not_default_of(&self, resources: &[Resource<'_>]) -> Result<(), Fault> {
        if !resources.iter().any(Resource::is_default_exchange) {
            return Ok(());
        }
        let text = "operation not permitted on the default exchange";
        Err(self.fault(ReplyCode::AccessRefused, text))
    }

    /// Checks that a new queue or exchange does not have a reserved name: a rule for clients. Definitions may contain
    /// queues with server-generated names.
    pub(crate) fn check_not_reserved(&self, resource: Resource<'_>) -> Result<(), Fault> {
        if self.is_operator() || !resource.name.starts_with(RESERVED_PREFIX) {
            return Ok(());
        }
        let text = format!(
            "{} name '{}' contains reserved prefix '{RESERVED_PREFIX}*'",
            resource.kind.name(),
            resource.name
        );
        Err(self.fault(ReplyCode::AccessRefused, text))
    }
}

fn definition_bytes(name: &str, arguments: Table<'_>) -> usize {
    name.len() + arguments.bytes().len()
}

fn check_equivalent(
    caller: &Caller<'_>,
    resource: Resource<'_>,
    current: &Exchange,
    received: &Declaration<'_>,
) -> Result<(), Fault> {
    let (kind, received_kind) = (current.kind.shown(), received.kind.shown());
    equivalence::check_text(caller, resource, "type", &kind, &received_kind)?;
    let flags = [
        ("durable", current.durable, received.durable),
        ("auto_delete", current.auto_delete, received.auto_delete),
        ("internal", current.internal, received.internal),
    ];
    equivalence::check_flags(caller, resource, &flags)?;
    let arguments = current.arguments.as_table();
    equivalence::check_arguments(
        caller,
        resource,
        [ALTERNATE_EXCHANGE],
        arguments,
        received.arguments,
    )
}

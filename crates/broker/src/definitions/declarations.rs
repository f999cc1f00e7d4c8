//! Declarations of definitions: exchanges, queues and bindings.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_amqp::method::{ExchangeDeclare, QueueDeclare};
use crosstie_config::{DefinedBinding, DefinedExchange, DefinedQueue, Definitions, Skipped};
use crosstie_queues::{Destination, Fault, Time, Vhost};

use crate::arguments;
use crate::declared;

/// An object to be declared.
#[derive(Clone, Copy)]
pub(super) enum Declaration<'d> {
    Exchange(&'d DefinedExchange),
    Queue(&'d DefinedQueue),
    Binding(&'d DefinedBinding),
}

/// All of them; bindings last, as they refer to the others.
pub(super) fn declarations(definitions: &Definitions) -> impl Iterator<Item = Declaration<'_>> {
    let exchanges = definitions.exchanges.iter().map(Declaration::Exchange);
    let queues = definitions.queues.iter().map(Declaration::Queue);
    let bindings = definitions.bindings.iter().map(Declaration::Binding);
    exchanges.chain(queues).chain(bindings)
}

/// Declares missing exchanges, queues and bindings. Returns the declarations that failed.
pub(crate) fn define<P>(
    definitions: &Definitions,
    now: Time,
    vhosts: &mut BTreeMap<Arc<str>, Vhost<P>>,
) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    for declaration in declarations(definitions) {
        skipped.extend(declaration.remark());
        let vhost = vhosts.get_mut(declaration.vhost());
        let why = match vhost.map(|vhost| declaration.declare(now, vhost)) {
            Some(Ok(())) => continue,
            Some(Err(fault)) => fault.text,
            None => "there is no such vhost".to_owned(),
        };
        skipped.push(declaration.skipped(why));
    }
    skipped
}

impl<'d> Declaration<'d> {
    pub(super) fn vhost(&self) -> &'d str {
        match *self {
            Self::Exchange(exchange) => &exchange.vhost,
            Self::Queue(queue) => &queue.vhost,
            Self::Binding(binding) => &binding.vhost,
        }
    }

    /// Declares it in its vhost. If it is there and equal, nothing happens.
    pub(super) fn declare<P>(&self, now: Time, vhost: &mut Vhost<P>) -> Result<(), Fault> {
        match self {
            Self::Exchange(exchange) => {
                let arguments = arguments::from_json(&exchange.arguments);
                vhost.define_exchange(
                    now,
                    &ExchangeDeclare {
                        exchange: &exchange.name,
                        kind: &exchange.kind,
                        passive: false,
                        durable: exchange.is_durable,
                        auto_delete: exchange.is_auto_delete,
                        internal: exchange.is_internal,
                        no_wait: true,
                        arguments: arguments.as_table(),
                    },
                )
            }
            Self::Queue(queue) => {
                let arguments = arguments::from_json(&queue.arguments);
                vhost.define_queue(
                    now,
                    &QueueDeclare {
                        queue: &queue.name,
                        passive: false,
                        durable: queue.is_durable,
                        exclusive: false,
                        auto_delete: queue.is_auto_delete,
                        no_wait: true,
                        arguments: arguments.as_table(),
                    },
                )
            }
            Self::Binding(binding) => {
                let arguments = arguments::from_json(&binding.arguments);
                let name = binding.destination.as_str().into();
                let destination = match binding.is_to_exchange {
                    true => Destination::Exchange(name),
                    false => Destination::Queue(name),
                };
                let (source, key) = (&binding.source, &binding.routing_key);
                vhost.define_binding(now, source, &destination, key, arguments.as_table())
            }
        }
    }

    /// It is not declared.
    pub(super) fn skipped(&self, why: String) -> Skipped {
        Skipped {
            what: self.describe(),
            why,
            is_wider: false,
        }
    }

    /// An argument that is not honoured.
    pub(super) fn remark(&self) -> Option<Skipped> {
        let Self::Queue(queue) = self else {
            return None;
        };
        let arguments = arguments::from_json(&queue.arguments);
        declared::is_at_most_once(arguments.as_table()).then(|| Skipped {
            what: format!("'x-dead-letter-strategy' of {}", self.describe()),
            why: declared::AT_MOST_ONCE.to_owned(),
            is_wider: false,
        })
    }

    fn describe(&self) -> String {
        let vhost = self.vhost();
        match self {
            Self::Exchange(exchange) => format!("exchange '{}' in vhost '{vhost}'", exchange.name),
            Self::Queue(queue) => format!("queue '{}' in vhost '{vhost}'", queue.name),
            Self::Binding(binding) => format!(
                "binding from '{}' to '{}' in vhost '{vhost}'",
                binding.source, binding.destination
            ),
        }
    }
}

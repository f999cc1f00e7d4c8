//! The return of a topology from the store.

use super::Topology;
use super::bindings::Binding;
use super::declare::Declaration;
use super::exchange::ExchangeKind;
use super::resource::ResourceKind;
use crate::{Destination, Journal, Record};

impl Topology {
    /// Restores a record of an exchange or a binding; others belong to the vhost. Its ends must have been restored
    /// before. Bounds do not apply: accepted definitions stay. Nothing is auto-deleted: lost bindings may have kept an
    /// exchange, and otherwise its deletion has a record of its own.
    pub(crate) fn restore(&mut self, record: &Record) {
        // The store has it already.
        let journal = &mut Journal::default();
        match record {
            Record::ExchangeDeclared {
                name,
                kind,
                auto_delete,
                internal,
                arguments,
            } => {
                if let Some(kind) = ExchangeKind::find(kind)
                    && self.exchange(name).is_none()
                {
                    let declaration = Declaration {
                        name,
                        kind,
                        durable: true,
                        auto_delete: *auto_delete,
                        internal: *internal,
                        arguments: arguments.as_table(),
                    };
                    self.add_exchange(&declaration, journal);
                }
            }
            Record::ExchangeDeleted { name } => {
                if let Some(key) = self.exchange(name) {
                    self.remove_exchange(key, journal);
                    self.clear_restored();
                }
            }
            Record::Bound {
                source,
                destination,
                routing_key,
                arguments,
                order,
            } => {
                if let Some(binding) = self.binding(source, destination, routing_key, arguments)
                    && let Ok(details) = self.details(&binding, Some(*order))
                {
                    self.add_binding(binding.into(), details);
                }
            }
            Record::Unbound {
                source,
                destination,
                routing_key,
                arguments,
            } => {
                if let Some(binding) = self.binding(source, destination, routing_key, arguments)
                    && let Some(key) = self.bindings.find(&binding)
                {
                    self.remove_binding(key, journal);
                }
            }
            _ => {}
        }
    }

    fn binding(
        &self,
        source: &str,
        destination: &Destination,
        routing_key: &str,
        arguments: &crosstie_amqp::TableBuf,
    ) -> Option<Binding> {
        let source = self.exchange(source)?;
        let target = self.target(match destination {
            Destination::Exchange(name) => (ResourceKind::Exchange, name),
            Destination::Queue(name) => (ResourceKind::Queue, name),
        })?;
        let arguments = arguments.as_table();
        Some(Binding::new(source, target, routing_key, arguments))
    }
}

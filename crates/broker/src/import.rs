//! Imports the declarations of a definitions file into vhosts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crosstie_amqp::method::{ExchangeDeclare, QueueDeclare};
use crosstie_config::{Amqp, DefinedBinding, DefinedExchange, DefinedQueue, Definitions, Skipped};
use crosstie_metadata::Layers;
use crosstie_queues::{Destination, Fault, Time, Vhost};

use super::arguments;
use super::declared;
use super::limits::vhost_config;
use super::policies;

/// A configuration with the users, vhosts and permissions of its definitions, the rest of these, and the parts that are
/// skipped.
pub(super) fn with_definitions(
    own: &Amqp,
    directory: &Path,
) -> Result<(Amqp, Definitions, Vec<Skipped>), String> {
    let mut amqp = own.clone();
    let Some(path) = &own.definitions else {
        return Ok((amqp, Definitions::default(), Vec::new()));
    };
    let loaded = Definitions::load(&directory.join(path));
    let definitions = loaded.map_err(|e| e.to_string())?;
    let mut skipped = definitions.skipped.clone();
    skipped.extend(amqp.import(&definitions));
    Ok((amqp, definitions, skipped))
}

/// Returns the definitions that an empty broker would reject, beside those that the parser skipped. `amqp` already
/// contains the vhosts of the definitions.
pub fn try_import(amqp: &Amqp, definitions: &Definitions) -> Vec<Skipped> {
    let vhosts = amqp.vhosts.iter().map(|vhost| {
        let name: Arc<str> = vhost.name.as_str().into();
        let mut config = vhost_config(&name, &amqp.limits);
        config.has_streams = vhost.replicated.is_none();
        (name, Vhost::<()>::new(config, 0))
    });
    let mut skipped = policies::add(&mut Layers::default(), definitions);
    skipped.extend(define(definitions, Time(0), &mut vhosts.collect()));
    skipped
}

/// Declares missing exchanges, queues and bindings. Returns the declarations that failed.
pub(super) fn define<P>(
    definitions: &Definitions,
    now: Time,
    vhosts: &mut BTreeMap<Arc<str>, Vhost<P>>,
) -> Vec<Skipped> {
    let mut definer = Definer {
        now,
        vhosts,
        skipped: Vec::new(),
    };
    // Bindings last, as they refer to the others.
    definitions
        .exchanges
        .iter()
        .for_each(|e| definer.exchange(e));
    definitions.queues.iter().for_each(|q| definer.queue(q));
    definitions.bindings.iter().for_each(|b| definer.binding(b));
    definer.skipped
}

struct Definer<'v, P> {
    now: Time,
    vhosts: &'v mut BTreeMap<Arc<str>, Vhost<P>>,
    skipped: Vec<Skipped>,
}

impl<P> Definer<'_, P> {
    fn exchange(&mut self, exchange: &DefinedExchange) {
        let arguments = arguments::from_json(&exchange.arguments);
        let declare = ExchangeDeclare {
            exchange: &exchange.name,
            kind: &exchange.kind,
            passive: false,
            durable: exchange.is_durable,
            auto_delete: exchange.is_auto_delete,
            internal: exchange.is_internal,
            no_wait: true,
            arguments: arguments.as_table(),
        };
        let what = format!("exchange '{}'", exchange.name);
        let now = self.now;
        self.define(&exchange.vhost, &what, |vhost| {
            vhost.define_exchange(now, &declare)
        });
    }

    fn queue(&mut self, queue: &DefinedQueue) {
        let arguments = arguments::from_json(&queue.arguments);
        let declare = QueueDeclare {
            queue: &queue.name,
            passive: false,
            durable: queue.is_durable,
            exclusive: false,
            auto_delete: queue.is_auto_delete,
            no_wait: true,
            arguments: arguments.as_table(),
        };
        let what = format!("queue '{}'", queue.name);
        let now = self.now;
        if declared::is_at_most_once(declare.arguments) {
            self.skipped.push(Skipped {
                what: format!(
                    "'x-dead-letter-strategy' of {what} in vhost '{}'",
                    queue.vhost
                ),
                why: declared::AT_MOST_ONCE.to_owned(),
                is_wider: false,
            });
        }
        self.define(&queue.vhost, &what, |vhost| {
            vhost.define_queue(now, &declare)
        });
    }

    fn binding(&mut self, binding: &DefinedBinding) {
        let arguments = arguments::from_json(&binding.arguments);
        let name = binding.destination.as_str().into();
        let destination = match binding.is_to_exchange {
            true => Destination::Exchange(name),
            false => Destination::Queue(name),
        };
        let (source, target) = (&binding.source, &binding.destination);
        let what = format!("binding from '{source}' to '{target}'");
        let (now, key) = (self.now, &binding.routing_key);
        self.define(&binding.vhost, &what, |vhost| {
            let arguments = arguments.as_table();
            vhost.define_binding(now, source, &destination, key, arguments)
        });
    }

    /// Makes one declaration in a vhost, or notes why it failed.
    fn define(
        &mut self,
        vhost: &str,
        what: &str,
        define: impl FnOnce(&mut Vhost<P>) -> Result<(), Fault>,
    ) {
        let why = match self.vhosts.get_mut(vhost).map(define) {
            Some(Ok(())) => return,
            Some(Err(fault)) => fault.text,
            None => "there is no such vhost".to_owned(),
        };
        self.skipped.push(Skipped {
            what: format!("{what} in vhost '{vhost}'"),
            why,
            is_wider: false,
        });
    }
}

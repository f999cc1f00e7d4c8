//! What a definitions file declares, put into the vhosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_amqp::method::{ExchangeDeclare, QueueDeclare};
use crosstie_config::{Amqp, Definitions, Skipped};
use crosstie_queues::{Destination, Fault, Time, Vhost};

use super::arguments;
use super::broker::vhost_config;
use super::peer::Peer;

type PeersVhost = Vhost<Arc<Peer>>;
type Define<'d> = &'d dyn Fn(&mut PeersVhost) -> Result<(), Fault>;

/// What of the definitions an empty broker would not take, beside what was skipped in reading them.
/// `amqp` has what they say of vhosts already.
pub fn try_import(amqp: &Amqp, definitions: &Definitions) -> Vec<Skipped> {
    let vhosts = amqp.vhosts.iter().map(|vhost| {
        let name: Arc<str> = vhost.name.as_str().into();
        let config = vhost_config(&name, &amqp.limits);
        (name, Vhost::new(config, 0))
    });
    define(definitions, Time(0), &mut vhosts.collect())
}

/// Declares exchanges, queues and bindings that are not there yet; returns what could not be.
pub(super) fn define(
    definitions: &Definitions,
    now: Time,
    vhosts: &mut BTreeMap<Arc<str>, PeersVhost>,
) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    let mut define = |vhost: &str, what: String, define: Define<'_>| {
        let why = match vhosts.get_mut(vhost).map(define) {
            Some(Ok(())) => return,
            Some(Err(fault)) => fault.text,
            None => "there is no such vhost".to_owned(),
        };
        skipped.push(Skipped {
            what: format!("{what} in vhost '{vhost}'"),
            why,
        });
    };
    for exchange in &definitions.exchanges {
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
        define(&exchange.vhost, what, &|vhost| {
            vhost.define_exchange(now, &declare)
        });
    }
    for queue in &definitions.queues {
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
        define(&queue.vhost, what, &|vhost| {
            vhost.define_queue(now, &declare)
        });
    }
    for binding in &definitions.bindings {
        let arguments = arguments::from_json(&binding.arguments);
        let name = binding.destination.as_str().into();
        let destination = match binding.is_to_exchange {
            true => Destination::Exchange(name),
            false => Destination::Queue(name),
        };
        let what = format!(
            "binding from '{}' to '{}'",
            binding.source, binding.destination
        );
        define(&binding.vhost, what, &|vhost| {
            let arguments = arguments.as_table();
            vhost.define_binding(
                now,
                &binding.source,
                &destination,
                &binding.routing_key,
                arguments,
            )
        });
    }
    skipped
}

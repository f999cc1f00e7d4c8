//! Bindings: lists, and those with one key.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crosstie_amqp::TableBuf;
use crosstie_broker::arguments::to_json;
use crosstie_queues::{BindingStatus, Destination, arguments_hash};

use crate::answer::Answer;
use crate::call::Call;
use crate::list::{self, Source};
use crate::request::form_encoded;
use crate::route::Pair;
use crate::row::{self, Columns, Row};

/// A binding and its vhost.
#[derive(Clone)]
struct Found {
    vhost: Arc<str>,
    binding: Arc<BindingStatus>,
}

/// The bindings of all vhosts, or of one.
pub(crate) fn bindings(call: &Call<'_>, vhost: Option<&str>) -> Answer {
    match call.vhosts(vhost) {
        Ok(_) => selected(call, vhost, |_| true),
        Err(answer) => answer,
    }
}

/// The bindings to a queue. That from the default exchange is listed whether or not the queue exists, as in RabbitMQ.
pub(crate) fn of_queue(call: &Call<'_>, vhost: &str, queue: &str) -> Answer {
    let Ok(shared) = call.vhost(vhost) else {
        return Answer::not_found();
    };
    let implicit = implicit(shared.name(), queue.into());
    let mut found = vec![implicit];
    let listed = shared.binding_views(|binding| is_to_queue(binding, queue));
    found.extend(of_vhost(shared.name(), listed));
    list::list(&call.query, Source::of(found, write))
}

/// The bindings from an exchange, or to it.
pub(crate) fn of_exchange(call: &Call<'_>, vhost: &str, exchange: &str, is_source: bool) -> Answer {
    if call.vhost(vhost).is_err() {
        return Answer::not_found();
    }
    selected(call, Some(vhost), |binding| match is_source {
        true => *binding.source == *exchange,
        false => is_to_exchange(binding, exchange),
    })
}

/// The bindings between an exchange and a destination.
pub(crate) fn between(call: &Call<'_>, pair: Pair<'_>) -> Answer {
    match call.vhost(pair.vhost) {
        Ok(_) => selected(call, Some(pair.vhost), |binding| is_of(binding, pair)),
        Err(_) => Answer::not_found(),
    }
}

/// The binding with a key.
pub(crate) fn binding(call: &Call<'_>, pair: Pair<'_>, key: &str) -> Answer {
    let Some(found) = find_binding(call, pair, key) else {
        return Answer::not_found();
    };
    let columns = Columns::parse(call.query.get("columns").unwrap_or_default());
    let mut out = Vec::new();
    row::object(&mut out, &columns, |row| write(&found, row));
    Answer::of_bytes(out)
}

/// A binding as it will be listed.
pub(crate) fn status(pair: Pair<'_>, routing_key: &str, arguments: TableBuf) -> BindingStatus {
    let table = arguments.as_table();
    let mut fields: Vec<_> = table.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    let sorted = fields
        .into_iter()
        .fold(TableBuf::new(), |sorted, (name, value)| {
            sorted.with(name, value)
        });
    let destination = pair.destination.into();
    BindingStatus {
        source: pair.source.into(),
        destination: match pair.is_to_exchange {
            true => Destination::Exchange(destination),
            false => Destination::Queue(destination),
        },
        routing_key: routing_key.into(),
        arguments: sorted,
    }
}

/// The routing key and the arguments of the binding with that key.
pub(crate) fn find(call: &Call<'_>, pair: Pair<'_>, key: &str) -> Option<(Arc<str>, TableBuf)> {
    let found = find_binding(call, pair, key)?;
    let binding = &found.binding;
    Some((Arc::clone(&binding.routing_key), binding.arguments.clone()))
}

fn find_binding(call: &Call<'_>, pair: Pair<'_>, key: &str) -> Option<Found> {
    let shared = call.vhost(pair.vhost).ok()?;
    let found = if pair.source.is_empty() {
        let is_there = shared.has_queue(pair.destination) && !pair.is_to_exchange;
        is_there.then(|| implicit(shared.name(), pair.destination.into()))
    } else {
        let is_it =
            |binding: &BindingStatus| is_of(binding, pair) && properties_key(binding) == key;
        of_vhost(shared.name(), shared.binding_views(is_it)).next()
    };
    found.filter(|found| properties_key(&found.binding) == key)
}

fn selected(
    call: &Call<'_>,
    vhost: Option<&str>,
    is_selected: impl Fn(&BindingStatus) -> bool,
) -> Answer {
    let mut found = Vec::new();
    for vhost in call.vhosts(vhost).unwrap_or_default() {
        let names = vhost.queue_names().into_iter();
        let implicit = names.map(|queue| implicit(vhost.name(), queue));
        found.extend(implicit.filter(|found| is_selected(&found.binding)));
        found.extend(of_vhost(vhost.name(), vhost.binding_views(&is_selected)));
    }
    list::list(&call.query, Source::of(found, write))
}

fn of_vhost(vhost: &Arc<str>, bindings: Vec<BindingStatus>) -> impl Iterator<Item = Found> {
    bindings.into_iter().map(|binding| Found {
        vhost: Arc::clone(vhost),
        binding: Arc::new(binding),
    })
}

/// The default exchange's binding to a queue.
fn implicit(vhost: &Arc<str>, queue: Arc<str>) -> Found {
    Found {
        vhost: Arc::clone(vhost),
        binding: Arc::new(BindingStatus {
            source: "".into(),
            routing_key: Arc::clone(&queue),
            destination: Destination::Queue(queue),
            arguments: TableBuf::new(),
        }),
    }
}

fn is_to_queue(binding: &BindingStatus, queue: &str) -> bool {
    matches!(&binding.destination, Destination::Queue(name) if **name == *queue)
}

fn is_to_exchange(binding: &BindingStatus, exchange: &str) -> bool {
    matches!(&binding.destination, Destination::Exchange(name) if **name == *exchange)
}

fn is_of(binding: &BindingStatus, pair: Pair<'_>) -> bool {
    *binding.source == *pair.source
        && match pair.is_to_exchange {
            true => is_to_exchange(binding, pair.destination),
            false => is_to_queue(binding, pair.destination),
        }
}

/// The name of a binding between its two ends: the routing key, and a hash of the arguments.
pub(crate) fn properties_key(binding: &BindingStatus) -> String {
    let key = form_encoded(&binding.routing_key);
    let table = binding.arguments.as_table();
    match (table.is_empty(), key.is_empty()) {
        (true, true) => "~".to_owned(),
        (true, false) => key,
        (false, _) => {
            let hash = URL_SAFE_NO_PAD.encode(arguments_hash(table).to_be_bytes());
            format!("{key}~{hash}")
        }
    }
}

fn write(Found { vhost, binding }: &Found, row: &mut Row<'_, '_>) {
    let (destination, kind) = match &binding.destination {
        Destination::Exchange(name) => (name, "exchange"),
        Destination::Queue(name) => (name, "queue"),
    };
    row.text("source", &binding.source);
    row.text("vhost", vhost);
    row.text("destination", destination);
    row.text("destination_type", kind);
    row.text("routing_key", &binding.routing_key);
    if row.wants("arguments") {
        row.json("arguments", &to_json(binding.arguments.as_table()));
    }
    if row.wants("properties_key") {
        row.text("properties_key", &properties_key(binding));
    }
}

#[cfg(test)]
mod tests {
    use crosstie_amqp::Value;

    use super::*;

    /// The keys are RabbitMQ's.
    #[test]
    fn bindings_have_keys() {
        let key = |routing_key: &str, arguments: TableBuf| {
            properties_key(&BindingStatus {
                source: "e".into(),
                destination: Destination::Queue("q".into()),
                routing_key: routing_key.into(),
                arguments,
            })
        };
        assert_eq!(key("", TableBuf::new()), "~");
        assert_eq!(key("a.**b+~c%", TableBuf::new()), "a.%2A%2Ab%2B%7Ec%25");
        let one = TableBuf::new().with("x", Value::I64(1));
        assert_eq!(key("k", one), "k~9nmLZQ");
    }
}

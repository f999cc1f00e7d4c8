//! Queues, exchanges and bindings: declared and deleted.

use crosstie_amqp::method::{
    ExchangeBind, ExchangeDeclare, ExchangeDelete, ExchangeUnbind, QueueBind, QueueDeclare,
    QueueDelete, QueuePurge, QueueUnbind,
};
use crosstie_amqp::{Arguments, TableBuf};

use crate::answer::Answer;
use crate::bindings::{self, properties_key};
use crate::call::Call;
use crate::input::Input;
use crate::node;
use crate::node::EXCHANGE_TYPES;
use crate::request::encoded;
use crate::route::Pair;
use crate::talk::{Refusal, Talk};

/// Maximum length of a name, by the protocol.
const NAME_BYTES_MAX: usize = 255;

pub(crate) async fn put_queue(
    call: &Call<'_>,
    vhost: &str,
    name: &str,
    input: &Input,
) -> Result<Answer, Answer> {
    check_name(name)?;
    let shared = present(call, vhost)?;
    let durable = input.boolean("durable")?;
    let auto_delete = input.boolean("auto_delete")?;
    let arguments = input.arguments("arguments")?;
    if let Some(asked) = input.text("node")?
        && asked != node::name(call.api)
    {
        let text = format!("Node {asked} could not be contacted");
        return Err(Answer::bad_request(&text));
    }
    let is_new = !shared.has_queue(name);
    let declare = QueueDeclare {
        queue: name,
        passive: false,
        durable,
        exclusive: false,
        auto_delete,
        no_wait: false,
        arguments: arguments.as_table(),
    };
    asked(call, vhost, &declare).await?;
    Ok(Answer::put(is_new))
}

pub(crate) async fn delete_queue(
    call: &Call<'_>,
    vhost: &str,
    name: &str,
) -> Result<Answer, Answer> {
    let is_there = call.vhost(vhost).is_ok_and(|vhost| vhost.has_queue(name));
    if !is_there {
        return Err(Answer::not_found());
    }
    let delete = QueueDelete {
        queue: name,
        if_unused: call.query.is_true("if-unused"),
        if_empty: call.query.is_true("if-empty"),
        no_wait: false,
    };
    asked(call, vhost, &delete).await?;
    Ok(Answer::no_content())
}

pub(crate) async fn purge(call: &Call<'_>, vhost: &str, name: &str) -> Result<Answer, Answer> {
    let is_there = call.vhost(vhost).is_ok_and(|vhost| vhost.has_queue(name));
    if !is_there {
        return Err(Answer::not_found());
    }
    let purge = QueuePurge {
        queue: name,
        no_wait: false,
    };
    asked(call, vhost, &purge).await?;
    Ok(Answer::no_content())
}

/// `sync` and `cancel_sync` concern mirrored queues, which no queue here is.
pub(crate) fn act(
    call: &Call<'_>,
    vhost: &str,
    queue: &str,
    input: &Input,
) -> Result<Answer, Answer> {
    if !call.vhost(vhost).is_ok_and(|vhost| vhost.has_queue(queue)) {
        return Err(Answer::not_found());
    }
    input.require(&["action"])?;
    match input.text("action")? {
        Some("sync" | "cancel_sync") => Ok(Answer::no_content()),
        other => {
            let text = format!("unknown: {}", other.unwrap_or_default());
            Err(Answer::bad_request(&text))
        }
    }
}

pub(crate) async fn put_exchange(
    call: &Call<'_>,
    vhost: &str,
    name: &str,
    input: &Input,
) -> Result<Answer, Answer> {
    check_name(name)?;
    let shared = present(call, vhost)?;
    let kind = input.text("type")?.unwrap_or("direct");
    if !EXCHANGE_TYPES.iter().any(|(name, _)| *name == kind) {
        let text = format!("invalid exchange type '{kind}'");
        return Err(Answer::bad_request(&text));
    }
    let arguments = input.arguments("arguments")?;
    let durable = input.boolean("durable")?;
    let auto_delete = input.boolean("auto_delete")?;
    let internal = input.boolean("internal")?;
    if name.is_empty() {
        return Err(Answer::not_authorised("Access refused."));
    }
    let is_new = shared.exchange_view(name).is_none();
    let declare = ExchangeDeclare {
        exchange: name,
        kind,
        passive: false,
        durable,
        auto_delete,
        internal,
        no_wait: false,
        arguments: arguments.as_table(),
    };
    asked(call, vhost, &declare).await?;
    Ok(Answer::put(is_new))
}

pub(crate) async fn delete_exchange(
    call: &Call<'_>,
    vhost: &str,
    name: &str,
) -> Result<Answer, Answer> {
    let found = call.vhost(vhost).ok();
    if found.is_none_or(|vhost| vhost.exchange_view(name).is_none()) {
        return Err(Answer::not_found());
    }
    if name.is_empty() {
        return Err(Answer::not_authorised("Access refused."));
    }
    let delete = ExchangeDelete {
        exchange: name,
        if_unused: call.query.is_true("if-unused"),
        no_wait: false,
    };
    asked(call, vhost, &delete).await?;
    Ok(Answer::no_content())
}

/// Makes a binding. The answer names it.
pub(crate) async fn bind(call: &Call<'_>, pair: Pair<'_>, input: &Input) -> Result<Answer, Answer> {
    present(call, pair.vhost)?;
    let arguments = input.arguments("arguments")?;
    let routing_key = input.text("routing_key")?.unwrap_or_default();
    for name in [pair.source, pair.destination, routing_key] {
        check_name(name)?;
    }
    if pair.source.is_empty() {
        return Err(Answer::not_authorised("Access refused."));
    }
    match pair.is_to_exchange {
        true => {
            let bind = ExchangeBind {
                destination: pair.destination,
                source: pair.source,
                routing_key,
                no_wait: false,
                arguments: arguments.as_table(),
            };
            asked(call, pair.vhost, &bind).await?;
        }
        false => {
            let bind = QueueBind {
                queue: pair.destination,
                exchange: pair.source,
                routing_key,
                no_wait: false,
                arguments: arguments.as_table(),
            };
            asked(call, pair.vhost, &bind).await?;
        }
    }
    let key = properties_key(&bindings::status(pair, routing_key, arguments));
    // The key is encoded as in a path, although it is encoded already.
    let location = format!("{}/{}", encoded(pair.destination), encoded(&key));
    Ok(Answer::empty(201).header("location", &location))
}

pub(crate) async fn unbind(call: &Call<'_>, pair: Pair<'_>, key: &str) -> Result<Answer, Answer> {
    let Some((routing_key, arguments)) = bindings::find(call, pair, key) else {
        return Err(Answer::not_found());
    };
    if pair.source.is_empty() {
        return Err(Answer::not_authorised("Access refused."));
    }
    unbound(call, pair, &routing_key, &arguments).await?;
    Ok(Answer::no_content())
}

async fn unbound(
    call: &Call<'_>,
    pair: Pair<'_>,
    routing_key: &str,
    arguments: &TableBuf,
) -> Result<(), Answer> {
    match pair.is_to_exchange {
        true => {
            let unbind = ExchangeUnbind {
                destination: pair.destination,
                source: pair.source,
                routing_key,
                no_wait: false,
                arguments: arguments.as_table(),
            };
            asked(call, pair.vhost, &unbind).await
        }
        false => {
            let unbind = QueueUnbind {
                queue: pair.destination,
                exchange: pair.source,
                routing_key,
                arguments: arguments.as_table(),
            };
            asked(call, pair.vhost, &unbind).await
        }
    }
}

/// Asks the broker as the user.
async fn asked(call: &Call<'_>, vhost: &str, method: &impl Arguments) -> Result<(), Answer> {
    let mut talk = Talk::open(call, vhost).await.map_err(|e| refused(&e))?;
    talk.ask(method).await.map_err(|e| refused(&e))?;
    Ok(())
}

/// RabbitMQ's answer to a refusal by the broker.
pub(crate) fn refused(refusal: &Refusal) -> Answer {
    match refusal.code {
        403 => Answer::not_authorised("Access refused."),
        404 => Answer::missing(refusal.reason()),
        504 => Answer::error(503, "timeout", refusal.reason()),
        _ => Answer::bad_request(refusal.reason()),
    }
}

/// The vhost of a PUT or POST.
fn present(
    call: &Call<'_>,
    vhost: &str,
) -> Result<std::sync::Arc<crosstie_broker::vhost::SharedVhost>, Answer> {
    if !call.api.operators.broker().has_vhost(vhost) {
        return Err(Answer::missing("vhost_not_found"));
    }
    call.vhost(vhost)
        .map_err(|e| Answer::error(503, "vhost_down", &e.to_string()))
}

pub(crate) fn check_name(name: &str) -> Result<(), Answer> {
    match name.len() > NAME_BYTES_MAX {
        true => {
            let text = format!("expected a name of at most 255 octets, got {}", name.len());
            Err(Answer::bad_request(&text))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The locations are RabbitMQ's.
    #[test]
    fn keys_are_encoded_once_more_in_a_location() {
        for (key, expected) in [
            ("a.%2A%2Ab%2B%7Ec%25", "a.%252A%252Ab%252B%257Ec%2525"),
            ("k~9nmLZQ", "k~9nmLZQ"),
            ("~", "~"),
            ("zz", "zz"),
        ] {
            assert_eq!(encoded(key), expected, "{key}");
        }
    }
}

//! The export of definitions: what an import into another broker needs.

use std::sync::Arc;

use crosstie_broker::arguments::to_json;
use crosstie_broker::vhost::SharedVhost;
use crosstie_metadata::PolicyKind;
use crosstie_queues::{BindingStatus, Destination};
use serde_json::{Value as Json, json};

use crate::answer::Answer;
use crate::call::Call;

pub(crate) fn definitions(call: &Call<'_>, vhost: Option<&str>) -> Answer {
    let exported = match vhost {
        None => whole(call),
        Some(name) => match call.vhost(name) {
            Ok(vhost) => of_vhost(call, &vhost),
            Err(_) => return Answer::bad_request("vhost_not_found"),
        },
    };
    let answer = Answer::json(&exported);
    match call.query.get("download").filter(|name| !name.is_empty()) {
        Some(name) => {
            let is_safe = |c: &char| !c.is_control() && !matches!(c, '"' | '\\') && c.is_ascii();
            let name: String = name.chars().filter(is_safe).collect();
            let value = format!("attachment; filename={name}");
            answer.header("content-disposition", &value)
        }
        None => answer,
    }
}

fn whole(call: &Call<'_>) -> Json {
    let broker = call.api.operators.broker();
    let particulars = &broker.particulars;
    let vhosts = call.api.operators.open_vhosts();
    let all = |list: fn(&SharedVhost) -> Vec<Json>| {
        let found = vhosts.iter().flat_map(|vhost| {
            let named = move |mut about: Json| {
                about["vhost"] = Json::from(&**vhost.name());
                about
            };
            list(vhost).into_iter().map(named)
        });
        found.collect::<Vec<Json>>()
    };
    let metadata = call.api.operators.metadata();
    json!({
        "rabbit_version": particulars.version,
        "rabbitmq_version": particulars.version,
        "product_name": particulars.product,
        "product_version": particulars.version,
        "users": metadata.list_users(None),
        "vhosts": vhosts.iter().map(|vhost| json!({"name": &**vhost.name()})).collect::<Vec<_>>(),
        "permissions": metadata.list_permissions(None, None),
        "topic_permissions": metadata.list_topic_permissions(None, None),
        "parameters": metadata.list_parameters(None, None),
        "global_parameters": metadata.list_global_parameters(None),
        "policies": metadata.list_policies(PolicyKind::User, None),
        "queues": all(queues),
        "exchanges": all(exchanges),
        "bindings": all(bindings),
    })
}

fn of_vhost(call: &Call<'_>, vhost: &Arc<SharedVhost>) -> Json {
    let metadata = call.api.operators.metadata();
    let name = Some(&**vhost.name());
    json!({
        "rabbit_version": call.api.operators.broker().particulars.version,
        "parameters": metadata.list_parameters(None, name),
        "policies": metadata.list_policies(PolicyKind::User, name),
        "queues": queues(vhost),
        "exchanges": exchanges(vhost),
        "bindings": bindings(vhost),
    })
}

/// The queues that outlive their connection.
fn queues(vhost: &SharedVhost) -> Vec<Json> {
    let found = vhost.queues().into_iter().filter(|queue| !queue.exclusive);
    let found = found.map(|queue| {
        json!({
            "name": queue.name,
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "arguments": queue.arguments,
        })
    });
    found.collect()
}

fn exchanges(vhost: &SharedVhost) -> Vec<Json> {
    let found = vhost.exchange_views().into_iter();
    let found = found.filter(|found| !found.name.is_empty() && !found.name.starts_with("amq."));
    let found = found.map(|exchange| {
        json!({
            "name": &*exchange.name,
            "type": &*exchange.kind,
            "durable": exchange.durable,
            "auto_delete": exchange.auto_delete,
            "internal": exchange.internal,
            "arguments": to_json(exchange.arguments.as_table()),
        })
    });
    found.collect()
}

fn bindings(vhost: &SharedVhost) -> Vec<Json> {
    let exclusive = vhost.queues().into_iter().filter(|queue| queue.exclusive);
    let exclusive: std::collections::BTreeSet<String> = exclusive.map(|queue| queue.name).collect();
    let is_exported = |binding: &BindingStatus| match &binding.destination {
        Destination::Queue(name) => !exclusive.contains(&**name),
        Destination::Exchange(_) => true,
    };
    let found = vhost.binding_views(is_exported).into_iter().map(|binding| {
        let (destination, kind) = match &binding.destination {
            Destination::Exchange(name) => (name, "exchange"),
            Destination::Queue(name) => (name, "queue"),
        };
        json!({
            "source": &*binding.source,
            "destination": &**destination,
            "destination_type": kind,
            "routing_key": &*binding.routing_key,
            "arguments": to_json(binding.arguments.as_table()),
        })
    });
    found.collect()
}

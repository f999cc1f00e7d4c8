//! The export of definitions: what an import into another broker needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_config::Json;
use crosstie_metadata::{Metadata, PolicyKind};
use crosstie_queues::{BindingStatus, Destination};
use serde_json::json;

use crate::arguments::to_json;
use crate::broker::Broker;
use crate::vhost::SharedVhost;

/// The definitions of all vhosts that are open here.
pub(crate) fn all(broker: &Broker) -> Json {
    let particulars = &broker.particulars;
    let vhosts = broker.vhosts();
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
    let metadata = broker.metadata.now();
    let (users, left_out) = users(&metadata);
    let mut exported = json!({
        "rabbit_version": particulars.version,
        "rabbitmq_version": particulars.version,
        "product_name": particulars.product,
        "product_version": particulars.version,
        "users": users,
        "vhosts": vhosts.iter().map(|found| vhost(&metadata, found)).collect::<Vec<_>>(),
        "permissions": of_users(&metadata, metadata.list_permissions(None, None)),
        "topic_permissions": of_users(&metadata, metadata.list_topic_permissions(None, None)),
        "parameters": metadata.list_parameters(None, None),
        "global_parameters": metadata.list_global_parameters(None),
        "policies": metadata.list_policies(PolicyKind::User, None),
        "queues": all(queues),
        "exchanges": all(exchanges),
        "bindings": all(bindings),
    });
    if !left_out.is_empty() {
        exported["left_out"] = left_out.into();
    }
    exported
}

/// The definitions of one vhost.
pub(crate) fn of_vhost(broker: &Broker, vhost: &Arc<SharedVhost>) -> Json {
    let metadata = broker.metadata.now();
    let name = Some(&**vhost.name());
    json!({
        "rabbit_version": broker.particulars.version,
        "parameters": metadata.list_parameters(None, name),
        "policies": metadata.list_policies(PolicyKind::User, name),
        "queues": queues(vhost),
        "exchanges": exchanges(vhost),
        "bindings": bindings(vhost),
    })
}

/// Without permissions of users that only another node has: no import takes them.
fn of_users(metadata: &Metadata, mut permissions: Vec<Json>) -> Vec<Json> {
    permissions.retain(|of| {
        let user = of["user"].as_str();
        user.is_some_and(|user| metadata.user(user).is_some())
    });
    permissions
}

/// The users, and those whose passwords are the configuration's.
fn users(metadata: &Metadata) -> (Vec<Json>, Vec<Json>) {
    let users = metadata.list_users(None);
    let names = users.iter().filter_map(|user| user["name"].as_str());
    let hidden = names.filter(|name| metadata.hides_password(name));
    let left_out = hidden.map(|name| {
        let reason = "the configuration has the password, under \"amqp.users\"";
        json!({"user": name, "reason": reason})
    });
    let left_out = left_out.collect();
    (users, left_out)
}

/// RabbitMQ 3.10 exports the name alone, and reads no more.
fn vhost(metadata: &Metadata, vhost: &SharedVhost) -> Json {
    let name = &**vhost.name();
    let about = metadata.about(name);
    let mut exported = json!({"name": name});
    if !about.description.is_empty() || !about.tags.is_empty() {
        exported["metadata"] = json!({"description": about.description, "tags": about.tags});
    }
    exported
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
    let exclusive: BTreeSet<String> = exclusive.map(|queue| queue.name).collect();
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

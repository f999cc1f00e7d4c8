//! From places to their answers.

use crate::answer::Answer;
use crate::call::Call;
use crate::input::Input;
use crate::route::Place;
use crate::{
    bindings, channels, connections, consumers, definitions, exchanges, health, maintenance,
    memory, messages, node, overview, queues, settings, topology, vhosts,
};

/// Answers a request with the body of its method.
pub(crate) async fn answer(call: &Call<'_>, place: &Place<'_>, body: &[u8]) -> Answer {
    let answered = match call.head.method.as_str() {
        "PUT" => put(call, place, body).await,
        "POST" => post(call, place, body).await,
        "DELETE" => delete(call, place).await,
        _ => get(call, place).await,
    };
    answered.unwrap_or_else(|answer| answer)
}

async fn put(call: &Call<'_>, place: &Place<'_>, body: &[u8]) -> Result<Answer, Answer> {
    let input = Input::parse(body)?;
    match *place {
        Place::Queue(vhost, queue) => topology::put_queue(call, vhost, queue, &input).await,
        Place::Exchange(vhost, name) => topology::put_exchange(call, vhost, name, &input).await,
        Place::FeatureFlag(flag) => maintenance::enable(flag),
        _ => settings::put(call, place, input).await,
    }
}

async fn post(call: &Call<'_>, place: &Place<'_>, body: &[u8]) -> Result<Answer, Answer> {
    if let Place::Definitions(vhost) = *place {
        return definitions::import(call, vhost, body).await;
    }
    let input = Input::parse(body)?;
    match *place {
        Place::Between(pair) => topology::bind(call, pair, &input).await,
        Place::Get(vhost, queue) => messages::get(call, vhost, queue, &input).await,
        Place::Publish(vhost, name) => messages::publish(call, vhost, name, &input).await,
        Place::Actions(vhost, queue) => topology::act(call, vhost, queue, &input),
        Place::Rebalance => Ok(maintenance::rebalance()),
        Place::VhostStart(vhost, node) => maintenance::start_vhost(call, vhost, node),
        Place::UsersBulkDelete => settings::delete_users(call, &input).await,
        _ => Err(Answer::not_found()),
    }
}

async fn delete(call: &Call<'_>, place: &Place<'_>) -> Result<Answer, Answer> {
    match *place {
        Place::Queue(vhost, queue) => topology::delete_queue(call, vhost, queue).await,
        Place::Contents(vhost, queue) => topology::purge(call, vhost, queue).await,
        Place::Exchange(vhost, name) => topology::delete_exchange(call, vhost, name).await,
        Place::Binding(pair, key) => topology::unbind(call, pair, key).await,
        Place::Connection(name) => connections::close(call, name),
        Place::ConnectionsOfUser(user) => connections::close_of_user(call, user),
        Place::Attempts(asked) => node::reset_attempts(call, asked),
        Place::AttemptsBySource(asked) => maintenance::reset_sources(call, asked),
        Place::Reset(node) => maintenance::reset(call, node),
        _ => settings::delete(call, place).await,
    }
}

async fn get(call: &Call<'_>, place: &Place<'_>) -> Result<Answer, Answer> {
    Ok(match *place {
        Place::Index | Place::CommandLineTool | Place::Auth => overview::open_to_all(place),
        Place::Overview => overview::overview(call),
        Place::ClusterName => settings::cluster_name(call),
        Place::Extensions => Answer::json(&serde_json::json!([{"javascript": "dispatcher.js"}])),
        Place::Whoami => overview::whoami(call),
        Place::Nodes => node::nodes(call),
        Place::Node(node) => node::node(call, node),
        Place::Memory(node, unit) => memory::memory(call, node, unit),
        Place::Tables(node, _) => memory::tables(call, node),
        Place::Attempts(node) => node::attempts(call, node),
        Place::AttemptsBySource(node) => node::attempts_by_source(call, node),
        Place::FeatureFlags => overview::feature_flags(),
        Place::Definitions(vhost) => definitions::export(call, vhost),
        Place::Connections => connections::connections(call),
        Place::ConnectionsOfUser(user) => connections::of_user(call, user),
        Place::Connection(name) => connections::connection(call, name),
        Place::ChannelsOf(name) => channels::of_connection(call, name),
        Place::VhostConnections(vhost) => connections::of_vhost(call, vhost),
        Place::Channels => channels::channels(call),
        Place::Channel(name) => channels::channel(call, name),
        Place::VhostChannels(vhost) => channels::of_vhost(call, vhost),
        Place::Consumers(vhost) => consumers::consumers(call, vhost),
        Place::Exchanges(vhost) => exchanges::exchanges(call, vhost),
        Place::Exchange(vhost, exchange) => exchanges::exchange(call, vhost, exchange),
        Place::ExchangeBindings(vhost, exchange, is_source) => {
            bindings::of_exchange(call, vhost, exchange, is_source)
        }
        Place::Queues(vhost) => queues::queues(call, vhost),
        Place::Queue(vhost, queue) => queues::queue(call, vhost, queue),
        Place::QueueBindings(vhost, queue) => bindings::of_queue(call, vhost, queue),
        Place::Bindings(vhost) => bindings::bindings(call, vhost),
        Place::Between(pair) => bindings::between(call, pair),
        Place::Binding(pair, key) => bindings::binding(call, pair, key),
        Place::Vhosts => vhosts::vhosts(call),
        Place::Vhost(vhost) => vhosts::vhost(call, vhost),
        Place::Health(ref check) => health::check(call, check),
        Place::Aliveness(vhost) => messages::aliveness(call, vhost).await?,
        _ => settings::show(call, place),
    })
}

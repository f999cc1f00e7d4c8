//! Requests that maintain RabbitMQ's statistics, clusters and feature flags. Most have nothing to do here, because no
//! statistics are collected, queues have one place, and every feature is on.

use crate::answer::Answer;
use crate::call::Call;
use crate::node;
use crate::overview;

/// Forgets the figures that rates are calculated from.
pub(crate) fn reset(call: &Call<'_>, asked: Option<&str>) -> Result<Answer, Answer> {
    check_node(call, asked)?;
    call.api.sampler.forget();
    Ok(Answer::no_content())
}

/// Logins are not counted by address.
pub(crate) fn reset_sources(call: &Call<'_>, asked: &str) -> Result<Answer, Answer> {
    check_node(call, Some(asked))?;
    Ok(Answer::no_content())
}

/// A queue is on the node of its vhost: no other distribution exists.
pub(crate) fn rebalance() -> Answer {
    Answer::no_content()
}

/// A vhost that is open is running.
pub(crate) fn start_vhost(call: &Call<'_>, vhost: &str, asked: &str) -> Result<Answer, Answer> {
    let failed = |why: &str| {
        let reason = format!("Request to node {asked} failed with {why}");
        Err(Answer::bad_request(&reason))
    };
    if asked != node::name(call.api) {
        return failed("nodedown");
    }
    match call.vhost(vhost) {
        Ok(_) => Ok(Answer::no_content()),
        Err(_) => failed(&format!("no_such_vhost: {vhost}")),
    }
}

/// Every feature is on.
pub(crate) fn enable(flag: &str) -> Result<Answer, Answer> {
    match overview::has_feature(flag) {
        true => Ok(Answer::no_content()),
        false => Err(Answer::bad_request("unsupported")),
    }
}

fn check_node(call: &Call<'_>, asked: Option<&str>) -> Result<(), Answer> {
    match asked.is_none_or(|asked| asked == node::name(call.api)) {
        true => Ok(()),
        false => Err(Answer::not_found()),
    }
}

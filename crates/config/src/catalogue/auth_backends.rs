//! Keys of the backends that decide on AMQP logins.

use std::time::Duration;

use super::form::{Rule, TYPE, integer, integer_or_zero, list_not_empty, one_of, text};
use super::table::tables;

/// A backend of logins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AmqpAuthBackend {
    /// The broker's own users.
    Internal,
    Http(AmqpHttpBackend),
}

tables! {
    pub(super) tagged AUTH_BACKEND("workers[router].amqp.auth_backends[].type", "a backend of logins") {
        "internal" => INTERNAL, "http" => HTTP
    }

    static INTERNAL("workers[router].amqp.auth_backends[internal]", "the broker's own users") {
        ..TYPE;
    }

    /// A server that decides on logins and rights, as RabbitMQ's HTTP backend asks it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AmqpHttpBackend = static HTTP("workers[router].amqp.auth_backends[http]", "an HTTP backend of logins") {
        ..TYPE;
        user_path: String = text(Rule::BareHttpUrl).required().environment(),
            "URL that is asked whether a user may log in. It answers `allow`, with the user's tags behind it, or `deny`.";
        vhost_path: String = text(Rule::BareHttpUrl).required().environment(),
            "URL that is asked whether a user may open a vhost.";
        resource_path: String = text(Rule::BareHttpUrl).required().environment(),
            "URL that is asked whether a user may configure, write or read a queue or exchange.";
        topic_path: String = text(Rule::BareHttpUrl).required().environment(),
            "URL that is asked whether a user may write or read a routing key of a topic exchange.";
        "http_method" = one_of(&HTTP_METHODS).or_text("get"),
            "Method of the requests: `get` with a query, or `post` with a form.";
        ca_certificates: Vec<String> = list_not_empty(&text(Rule::Path)).optional(),
            "PEM files of certificate authorities trusted for the server, beside those of the system. Relative paths \
             start at the node's directory.";
        timeout_ms => timeout: Duration = integer(1, 60_000).or(5_000),
            "Maximum time for the server's whole answer, in milliseconds. Without an answer the login or access is \
             refused.";
        requests_max: usize = integer(1, 10_000).or(64),
            "Maximum number of requests on their way. Others wait, within the same timeout.";
        cache_ttl_ms => cache_ttl: Duration = integer_or_zero(1, 86_400_000).or(15_000),
            "Time for which `allow` is remembered, in milliseconds. `deny` is never remembered. 0 asks for each method. \
             The default is that of RabbitMQ's cache.";
        cache_entries_max: usize = integer(1, 10_000_000).or(100_000),
            "Maximum number of remembered answers of each kind: logins, and accesses. At the limit the oldest is \
             forgotten.";
        let is_post: bool = false;
    }

    words HTTP_METHODS("workers[router].amqp.auth_backends[http].http_method") { "get", "post" }
}

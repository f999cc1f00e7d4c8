//! Keys of the backends that decide on AMQP logins.

use std::sync::Arc;
use std::time::Duration;

use crosstie_auth::oauth2::Rules;
use crosstie_auth::wamp::jwt::KeysUrl;

use super::form::{
    Kind, OFF, Rule, TYPE, integer, integer_or_zero, list_not_empty, map, one_of, text,
};
use super::jwt::{
    ALGORITHMS, JWKS_BYTES_MAX, JWKS_CA_CERTIFICATES, JWKS_FILE, JWKS_REFRESH_S_MAX,
    JWKS_REFRESH_S_MIN, JWKS_TIMEOUT_MS, JWKS_URL,
};
use super::table::tables;

/// A backend of logins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AmqpAuthBackend {
    /// The broker's own users.
    Internal,
    Http(AmqpHttpBackend),
    OAuth2(AmqpOAuth2Backend),
}

/// Tokens of an issuer as passwords, as RabbitMQ's OAuth 2 backend reads them.
#[derive(Clone, Debug, PartialEq)]
pub struct AmqpOAuth2Backend {
    pub rules: Arc<Rules>,
    /// The file with the issuer's keys.
    pub keys_file: Option<String>,
    /// The URL of the issuer's keys, if there is no file.
    pub keys_url: Option<Arc<KeysUrl>>,
}

impl AmqpOAuth2Backend {
    /// Files of certificate authorities that are trusted for the issuer's server.
    pub fn ca_certificates(&self) -> &[String] {
        let url = self.keys_url.as_ref();
        url.map_or(&[], |url| &url.ca_certificates)
    }
}

tables! {
    pub(super) tagged AUTH_BACKEND("workers[router].amqp.auth_backends[].type", "a backend of logins") {
        "internal" => INTERNAL, "http" => HTTP, "oauth2" => OAUTH2
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
            "Time for which answers are remembered, in milliseconds. 0 asks for each method. The default is that of \
             RabbitMQ's cache.";
        cache_refusals: bool = OFF,
            "Remembers `deny`, too. A user whom the server lets in later waits until then. Without a valid answer nothing is \
             remembered. The default is that of RabbitMQ's cache.";
        cache_entries_max: usize = integer(1, 10_000_000).or(100_000),
            "Maximum number of remembered answers of each kind: logins and accesses, allowed and refused ones. At the limit the oldest is \
             forgotten.";
        let is_post: bool = false;
    }

    static OAUTH2("workers[router].amqp.auth_backends[oauth2]", "an OAuth 2 backend of logins") {
        ..TYPE;
        "resource_server_id" = text(Rule::NotEmpty).otherwise("none: tokens for any audience, and scopes without a prefix"),
            "Name of this broker at the token issuer. A token must have it in `aud`, and a scope counts if it begins with \
             that name and a dot.";
        "additional_scopes_key" = text(Rule::NotEmpty).otherwise("`scope` alone"),
            "Claim with further scopes: a text, a list, or an object that has either under the value of \
             `resource_server_id`.";
        "scope_aliases" = map(Rule::NotEmpty, &ALIAS).otherwise("none"),
            "Scopes that another scope stands for, by that scope: lists of whole scopes, prefix included.";
        "default_key" = text(Rule::NotEmpty).otherwise("none: such tokens are refused"),
            "Id of the key that tokens without an id (`kid`) are signed with.";
        ..JWKS_FILE, JWKS_URL, JWKS_CA_CERTIFICATES, JWKS_REFRESH_S_MIN, JWKS_REFRESH_S_MAX, JWKS_TIMEOUT_MS, JWKS_BYTES_MAX;
        "algorithms" = list_not_empty(&one_of(&ALGORITHMS)).otherwise("all of them"),
            "Accepted signature algorithms, with a public key each. Symmetric ones (`HS256`) are not supported.";
    }

    words HTTP_METHODS("workers[router].amqp.auth_backends[http].http_method") { "get", "post" }
}

/// The scopes that one stands for.
const ALIAS: Kind = list_not_empty(&text(Rule::NotEmpty));

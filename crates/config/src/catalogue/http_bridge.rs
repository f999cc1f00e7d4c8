//! Keys of web services that turn HTTP requests into calls and publications.

use std::net::IpAddr;
use std::time::Duration;

use super::form::{
    Kind, OFF, Rule, SECRET, TYPE, integer, integer_or_zero, list_not_empty, object, text,
};
use super::table::tables;
use super::web_files::SERVICE_ID;
use crate::model::RequestKey;
use crate::plain;

tables! {
    const REALM = "realm": text(Rule::RealmName).required(), "Realm of the requests.";
    const ROLE = "role": text(Rule::NotEmpty).required(), "Role whose permissions apply to requests.";
    const OPTIONS = "options": object(&BRIDGE_OPTIONS).otherwise("the defaults"), "Conditions for requests.";

    /// HTTP requests as calls or publications.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HttpBridge = pub(super) static CALLER("web[caller]", "a service of calls") {
        ..TYPE, SERVICE_ID;
        ..REALM => realm: String;
        ..ROLE => role: String;
        ..OPTIONS;
        let options: HttpBridgeOptions = HttpBridgeOptions::default();
    }

    pub(super) static PUBLISHER("web[publisher]", "a service of publications") {
        ..TYPE, SERVICE_ID, REALM, ROLE, OPTIONS;
    }

    pub(super) static WEBHOOK("web[webhook]", "a webhook") {
        ..TYPE, SERVICE_ID, REALM, ROLE;
        "options" = object(&WEBHOOK_OPTIONS).required(), "Options of the webhook.";
    }

    const DEBUG = "debug": Kind::Boolean.inert("the log level says what is logged");
    const POST_BODY_LIMIT = "post_body_limit": integer(0, 1 << 20).or(0),
        "Maximum size of a request body, in bytes. A longer one gets status 413. 0 applies the maximum of a \
         message: 16,777,216, or `limits.queue_bytes_max` if that is less.";

    /// Conditions for the requests of a bridge.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HttpBridgeOptions = static BRIDGE_OPTIONS("web[caller].options", "options of an HTTP bridge") {
        "key" = text(Rule::NotEmpty).otherwise("none: requests need no signature").environment(),
            "Name of `secret`, which signed requests contain.";
        "secret" = SECRET.otherwise("none: requests need no signature").environment(), "Secret that signs requests.";
        require_tls: bool = OFF, "Requires requests over TLS.";
        "require_ip" = list_not_empty(&text(Rule::Network)).otherwise("any"),
            "Addresses and networks that requests may come from: `192.168.0.0/16`, or with the mask written out.";
        ..POST_BODY_LIMIT => body_bytes_max: usize;
        timestamp_delta_limit => timestamp_delta_max: Option<Duration> as plain::positive_seconds =
            integer_or_zero(1, 86_400).or(300),
            "Tolerated difference between a signed request's time and the router's, in seconds. 0 accepts any time.";
        refuse_replay: bool = OFF.own(), "Accepts a signed request only once. It needs `timestamp_delta_limit`.";
        replays_max: usize = integer(1, 1 << 30).or(1_000_000).own(),
            "Maximum number of signed requests that `refuse_replay` remembers, each for two to four times \
             `timestamp_delta_limit`, in about 24 bytes. At the limit a request gets status 503.";
        ..DEBUG;
        let signature: Option<RequestKey> = None;
        let require_ip: Vec<(IpAddr, u8)> = Vec::new();
    }

    /// HTTP requests as events of one topic.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Webhook = static WEBHOOK_OPTIONS("web[webhook].options", "options of a webhook") {
        topic: String = text(Rule::ExactUri).required(), "Topic that requests are published to.";
        success_response: String = text(Rule::Any).or_text("OK"), "Body of the answer to a published request (202).";
        error_response: String = text(Rule::Any).or_text("NOT OK"),
            "Body of the answer to a request that could not be published (500).";
        github_secret: Option<String> = SECRET.otherwise("none: requests need no signature").environment(),
            "Secret that signs GitHub's requests.";
        ..POST_BODY_LIMIT, DEBUG;
        let bridge: HttpBridge = HttpBridge::default();
    }
}

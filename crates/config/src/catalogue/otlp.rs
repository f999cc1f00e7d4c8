//! Keys of the exporter of spans.

use std::time::Duration;

use super::form::{Kind, Rule, integer, list_not_empty, text};
use super::table::tables;

tables! {
    /// The collector that receives spans by OTLP.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Otlp = pub(super) static OTLP("otlp", "the exporter of spans") {
        endpoint: String = text(Rule::BareHttpUrl).required().environment(),
            "URL that takes spans by OTLP over HTTP in its JSON form, as in `http://127.0.0.1:4318/v1/traces`.";
        service_name: String = text(Rule::NotEmpty).or_text("crosstie"), "Name of the service, `service.name`.";
        "headers" = headers().otherwise("none"),
            "Headers of each request, such as a key of the collector's. In their values `$NAME` and `${NAME}` are replaced by \
             environment variables, which containers and guests do not inherit. Values are secrets.";
        ca_certificates: Vec<String> = list_not_empty(&text(Rule::Path)).optional(),
            "PEM files of certificate authorities trusted for the collector, beside those of the system. Relative \
             paths start at the node's directory.";
        interval_ms => interval: Duration = integer(100, 60_000).or(2_000),
            "Maximum time for which a span waits to be sent, in milliseconds. 512 spans are sent at once.";
        timeout_ms => timeout: Duration = integer(100, 60_000).or(10_000),
            "Maximum time for the collector's answer, in milliseconds. Spans that it does not take in one or two attempts are \
             dropped and counted.";
        let headers: Vec<(String, String)> = Vec::new();
    }
}

const fn headers() -> Kind {
    Kind::Map {
        keys: Rule::HeaderName,
        of: &HEADER,
        environment: true,
    }
}

const HEADER: Kind = text(Rule::HeaderValue);

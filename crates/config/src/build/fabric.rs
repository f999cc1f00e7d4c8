//! Realms of several nodes.

use super::Builder;
use crate::files::Files;
use crate::model::{Fabric, NatsUrl};
use crate::problem::Problem;
use crate::tree::Value;
use crate::view::View;

impl Builder<'_> {
    pub(super) fn fabric(&mut self, fabric: View<'_>) -> Fabric {
        let (urls, credentials, ca_certificates) = self.nats(fabric.section("nats"));
        let is_strict = fabric.text("single") == Some("strict");
        if !is_strict && fabric.given("single_replicas").is_some() {
            let why = "\"single_replicas\" has no effect without \"single\": \"strict\"";
            self.warn(fabric, "single_replicas", why);
        }
        Fabric {
            urls,
            credentials,
            ca_certificates,
            is_refused_detached: fabric.text("detached") == Some("refuse"),
            is_own_preferred: fabric.text("locality") == Some("prefer"),
            strict_replicas: is_strict.then(|| {
                let replicas = fabric.integer("single_replicas");
                replicas
                    .and_then(|count| u8::try_from(count).ok())
                    .unwrap_or(3)
            }),
            local_prefixes: fabric.texts("local_prefixes").map(str::to_owned).collect(),
        }
    }

    /// The servers' addresses, the file of credentials, and those of certificates.
    pub(super) fn nats(&mut self, nats: View<'_>) -> (Vec<NatsUrl>, Option<String>, Vec<String>) {
        let mut urls = Vec::new();
        for item in nats.items("urls") {
            let Value::Text(text) = &item.value else {
                continue;
            };
            match NatsUrl::parse(text) {
                Ok(url) => urls.push(url),
                Err(why) => self.problems.push(Problem::error(item.span, why.into())),
            }
        }
        let credentials = nats.text("credentials").map(str::to_owned);
        if let Some(path) = credentials.clone() {
            let span = nats.span_of("credentials");
            self.names(span, Files::NatsCredentials(path));
        }
        (
            urls,
            credentials,
            nats.texts("ca_certificates").map(str::to_owned).collect(),
        )
    }
}

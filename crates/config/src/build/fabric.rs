//! Realms of several nodes.

use super::Builder;
use crate::model::{Fabric, NatsUrl};
use crate::problem::Problem;
use crate::tree::Value;
use crate::view::View;

impl Builder<'_> {
    pub(super) fn fabric(&mut self, fabric: View<'_>) -> Fabric {
        let nats = fabric.section("nats");
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
        Fabric {
            urls,
            credentials: nats.text("credentials").map(str::to_owned),
            ca_certificates: nats.texts("ca_certificates").map(str::to_owned).collect(),
            is_refused_detached: fabric.text("detached") == Some("refuse"),
            is_own_preferred: fabric.text("locality") == Some("prefer"),
            local_prefixes: fabric.texts("local_prefixes").map(str::to_owned).collect(),
        }
    }
}

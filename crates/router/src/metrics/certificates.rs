//! Metrics of listeners' certificates.

use std::sync::Arc;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::registry::Registry as Router;

type ByTransport = Family<[(&'static str, String); 2], Gauge>;

pub(super) fn register(registry: &mut Registry, routers: &[Arc<Router>]) {
    let expiry = ByTransport::default();
    let refused = ByTransport::default();
    for router in routers {
        for certificate in router.certificates() {
            let labels = [
                ("worker", router.id().to_owned()),
                ("transport", certificate.id.clone()),
            ];
            let status = certificate.status();
            if let Some(at_s) = status.expires_s {
                expiry.get_or_create(&labels).set(at_s);
            }
            let is_refused = i64::from(status.refused.is_some());
            refused.get_or_create(&labels).set(is_refused);
        }
    }
    registry.register(
        "certificate_expiry_timestamp_seconds",
        "When the certificate of a listener expires, in seconds since 1970",
        expiry,
    );
    registry.register(
        "certificate_files_refused",
        "1 while the changed files of a certificate are not used, and the former one is",
        refused,
    );
}

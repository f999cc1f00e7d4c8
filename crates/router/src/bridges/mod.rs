//! Components of the router itself that turn events and calls into HTTP requests to other servers.
//!
//! Each has a session of its own with its configured role, and joins again when its realm restarts. The number of
//! concurrent requests, their duration and the size of answers are limited; meanwhile events and calls wait in the
//! session's queue, with the limit and the policy of any session.

mod callee;
mod forwarder;

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use crosstie_config::{OutgoingBridge, OutgoingKind};
use crosstie_front::http_client::{Answered, Outgoing, Unanswered};
use crosstie_realms::resident::{Manner, Place, Rooms};
use crosstie_routing::Identity;
use crosstie_site::request_counts::{Counted, Outcome, RequestCounts};
use crosstie_wamp::Serializer;
use hyper::Request;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// The common state of a component.
struct Bridge {
    place: Place,
    server: Outgoing,
    /// One permit for each concurrent request.
    requests: Arc<Semaphore>,
    counts: Arc<RequestCounts>,
    model: OutgoingBridge,
}

/// Maximum message size of such a session.
const MESSAGE_BYTES_MAX: usize = 1 << 24;

/// Runs a component for as long as its router. Needs a runtime with timers.
pub(crate) fn run(
    model: &OutgoingBridge,
    rooms: Arc<dyn Rooms>,
    counts: Arc<RequestCounts>,
    directory: &Path,
) -> io::Result<impl Future<Output = ()> + Send + 'static + use<>> {
    let files = model.ca_certificates.iter();
    let files: Vec<_> = files.map(|path| directory.join(path)).collect();
    let server = Outgoing::keeping(model.requests_max, &files)?;
    let model = model.clone();
    Ok(async move {
        let manner = Manner {
            identity: Identity::new(
                format!("crosstie.{}", model.id),
                model.role.as_str(),
                "internal",
                "static",
            ),
            is_shown: true,
            serializer: Serializer::Json,
            message_bytes_max: MESSAGE_BYTES_MAX,
            is_judged: true,
            runtime: Handle::current(),
        };
        let bridge = Arc::new(Bridge {
            place: Place::new(rooms, &model.realm, manner),
            server,
            requests: Arc::new(Semaphore::new(model.requests_max)),
            counts,
            model,
        });
        match &bridge.model.kind {
            OutgoingKind::Callee {
                base_url,
                procedure,
                servers,
            } => callee::run(&bridge, base_url, procedure, servers).await,
            OutgoingKind::Forwarder {
                subscriptions,
                method,
                expected_code,
            } => forwarder::run(&bridge, subscriptions, method, *expected_code).await,
            // The configuration has no other kinds.
            _ => {}
        }
    })
}

impl Bridge {
    /// Sends a request; the caller counts its outcome.
    async fn ask(&self, request: Request<Bytes>) -> Result<(Answered, Counted), String> {
        let counted = self.counts.begin();
        let model = &self.model;
        let asked = self
            .server
            .ask(request, model.timeout, model.answer_bytes_max);
        match asked.await {
            Ok(answered) => Ok((answered, counted)),
            Err(unanswered) => {
                counted.end(match unanswered {
                    Unanswered::TimedOut(_) => Outcome::TimedOut,
                    Unanswered::Failed(_) => Outcome::Unavailable,
                });
                Err(unanswered.to_string())
            }
        }
    }

    /// Logs a warning for the operator.
    fn warn(&self, what: &dyn std::fmt::Display) {
        tracing::warn!(
            "Component '{}' of realm '{}': {what}",
            self.model.id,
            self.model.realm
        );
    }
}

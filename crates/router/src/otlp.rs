//! The exporter of spans: sends them to a collector by OTLP over HTTP.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use crosstie_config::Otlp;
use crosstie_front::http_client::{AGENT, Outgoing};
use crosstie_spans::otlp::{MEDIA_TYPE, Source, rejected, request};
use crosstie_spans::{Span, Taker, note_exported};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Request, StatusCode, Uri};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// An exporter that can start.
pub struct ReadyExporter {
    collector: Collector,
    interval: Duration,
}

/// A running exporter.
pub struct Exporter {
    task: JoinHandle<()>,
    /// Dropped, it ends the task after what waits has been sent.
    stop: oneshot::Sender<()>,
}

/// The time for the last spans of a node that ends.
const LAST_MAX: Duration = Duration::from_secs(2);
/// The time until the second attempt.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum size of the collector's answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;

impl ReadyExporter {
    /// Reads what the exporter needs; `node` is its id, and its version.
    pub fn new(options: &Otlp, directory: &Path, node: (&str, &str)) -> io::Result<Self> {
        let files = options.ca_certificates.iter();
        let files: Vec<_> = files.map(|path| directory.join(path)).collect();
        let collector = Collector {
            server: Outgoing::keeping(1, &files)?,
            endpoint: options.endpoint.parse().map_err(invalid)?,
            headers: headers(&options.headers)?,
            timeout: options.timeout,
            source: Source {
                service: options.service_name.clone(),
                instance: node.0.to_owned(),
                version: node.1.to_owned(),
            },
        };
        Ok(Self {
            collector,
            interval: options.interval,
        })
    }

    /// Starts it; from now on spans are recorded. Needs a tokio context.
    pub fn start(self) -> Exporter {
        let (stop, stopped) = oneshot::channel();
        let taker = Taker::new();
        let task = tokio::spawn(run(self.collector, taker, self.interval, stopped));
        Exporter { task, stop }
    }
}

impl Exporter {
    /// Sends what waits, and ends.
    pub async fn finish(self) {
        drop(self.stop);
        // A collector that does not answer delays no stop.
        let _ = timeout(LAST_MAX, self.task).await;
    }
}

/// The collector, and the node that it hears of.
struct Collector {
    server: Outgoing,
    endpoint: Uri,
    headers: HeaderMap,
    timeout: Duration,
    source: Source,
}

async fn run(
    collector: Collector,
    taker: Taker,
    interval: Duration,
    mut stopped: oneshot::Receiver<()>,
) {
    let (mut is_last, mut is_failing) = (false, false);
    while !is_last {
        tokio::select! {
            () = taker.wait_for_batch() => {}
            () = sleep(interval) => {}
            _ = &mut stopped => is_last = true,
        }
        loop {
            let batch = taker.take();
            if batch.is_empty() {
                break;
            }
            let was_failing = is_failing;
            is_failing = !collector.send(&batch, was_failing).await;
            if is_failing && is_last {
                break;
            }
        }
    }
}

impl Collector {
    /// Returns whether the collector has answered. It is tried twice, and reported once, unless it was failing already.
    async fn send(&self, spans: &[Span], was_failing: bool) -> bool {
        let body = Bytes::from(request(&self.source, spans));
        let sent = match self.try_send(body.clone()).await {
            Err(Failure {
                is_passing: true, ..
            }) if !was_failing => {
                sleep(PAUSE).await;
                self.try_send(body).await
            }
            sent => sent,
        };
        let endpoint = &self.endpoint;
        let rejected = match &sent {
            Ok(rejected) => (*rejected).min(spans.len()),
            Err(_) => spans.len(),
        };
        match &sent {
            Ok(_) if was_failing => info!("The collector at {endpoint} takes spans again"),
            Err(Failure { why, .. }) if !was_failing => {
                let spans = spans.len();
                warn!("The collector at {endpoint} has not taken {spans} spans: {why}");
            }
            _ => {}
        }
        note_exported(spans.len() - rejected, true);
        note_exported(rejected, false);
        sent.is_ok()
    }

    /// The number of spans that the collector rejects.
    async fn try_send(&self, body: Bytes) -> Result<usize, Failure> {
        let mut asked = Request::post(self.endpoint.clone());
        if let Some(headers) = asked.headers_mut() {
            headers.clone_from(&self.headers);
            headers
                .entry(USER_AGENT)
                .or_insert(HeaderValue::from_static(AGENT));
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        }
        let asked = asked
            .body(body)
            .map_err(|e| Failure::lasting(e.to_string()))?;
        let answered = self.server.ask(asked, self.timeout, ANSWER_BYTES_MAX).await;
        let answer = answered.map_err(|why| Failure {
            why: why.to_string(),
            is_passing: true,
        })?;
        match answer.status {
            status if status.is_success() => Ok(rejected(&answer.body)),
            status => Err(Failure {
                why: format!("it answers {status}"),
                is_passing: is_passing(status),
            }),
        }
    }
}

/// Why a collector has not taken spans.
struct Failure {
    why: String,
    /// Another attempt may succeed.
    is_passing: bool,
}

impl Failure {
    fn lasting(why: String) -> Self {
        Self {
            why,
            is_passing: false,
        }
    }
}

/// The statuses after which OTLP's clients try again.
fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn headers(given: &[(String, String)]) -> io::Result<HeaderMap> {
    let header = |(name, value): &(String, String)| {
        let name: HeaderName = name.parse().map_err(invalid)?;
        let value: HeaderValue = value.parse().map_err(invalid)?;
        Ok((name, value))
    };
    given.iter().map(header).collect()
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

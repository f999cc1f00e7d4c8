//! The exporter of spans: sends them to a collector by OTLP over HTTP.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use crosstie_config::Otlp;
use crosstie_front::bound::Bound;
use crosstie_front::http_client::Outgoing;
use crosstie_spans::otlp::{MEDIA_TYPE, Source, rejected, request};
use crosstie_spans::{FULL_BATCH, Span, note_exported, switch, take, wait_for_batch};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode, Uri};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::warn;

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
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Log lines about a collector that does not take spans.
static FAILURES: Bound = Bound::of(2);

impl Exporter {
    /// Starts it; from now on spans are recorded. Needs a tokio context.
    pub fn start(
        options: &Otlp,
        directory: &Path,
        (node, version): (&str, &str),
    ) -> io::Result<Self> {
        let files = options.ca_certificates.iter();
        let files: Vec<_> = files.map(|path| directory.join(path)).collect();
        let collector = Collector {
            server: Outgoing::keeping(1, &files)?,
            endpoint: options.endpoint.parse().map_err(invalid)?,
            headers: headers(&options.headers)?,
            timeout: options.timeout,
            source: Source {
                service: options.service_name.clone(),
                instance: node.to_owned(),
                version: version.to_owned(),
            },
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(run(collector, options.interval, stopped));
        switch(true);
        Ok(Self { task, stop })
    }

    /// Records no further spans, and sends those that wait.
    pub async fn finish(self) {
        switch(false);
        drop(self.stop);
        // A collector that does not answer delays no stop.
        let _ = timeout(LAST_MAX, self.task).await;
    }

    /// Ends it after it has sent what waits. Another one may follow.
    pub fn replace(self, is_followed: bool) {
        switch(is_followed);
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

async fn run(collector: Collector, interval: Duration, mut stopped: oneshot::Receiver<()>) {
    let mut is_last = false;
    while !is_last {
        tokio::select! {
            () = wait_for_batch() => {}
            () = sleep(interval) => {}
            _ = &mut stopped => is_last = true,
        }
        for batch in take().chunks(FULL_BATCH) {
            collector.send(batch).await;
        }
    }
}

impl Collector {
    async fn send(&self, spans: &[Span]) {
        let body = Bytes::from(request(&self.source, spans));
        let sent = match self.try_send(body.clone()).await {
            Err(Failure {
                is_passing: true, ..
            }) => {
                sleep(PAUSE).await;
                self.try_send(body).await
            }
            sent => sent,
        };
        let rejected = match sent {
            Ok(rejected) => rejected.min(spans.len()),
            Err(Failure { why, .. }) => {
                if FAILURES.may_log() {
                    let (endpoint, spans) = (&self.endpoint, spans.len());
                    warn!("The collector at {endpoint} has not taken {spans} spans: {why}");
                }
                spans.len()
            }
        };
        note_exported(spans.len() - rejected, true);
        note_exported(rejected, false);
    }

    /// The number of spans that the collector rejects.
    async fn try_send(&self, body: Bytes) -> Result<usize, Failure> {
        let mut asked = Request::post(self.endpoint.clone());
        if let Some(headers) = asked.headers_mut() {
            headers.clone_from(&self.headers);
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

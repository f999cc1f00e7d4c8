//! The exporter of spans: sends them to a collector by OTLP over HTTP.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use crosstie_config::Otlp;
use crosstie_front::http_client::{AGENT, Outgoing};
use crosstie_spans::otlp::{MEDIA_TYPE, Source, rejected, request};
use crosstie_spans::{Span, Taker, note_exported};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
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
/// The time until the second attempt, unless the collector names one.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum time that a collector may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(30);
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
    // A batch for its second attempt, and the time until then.
    let (mut again, mut pause) = (None, None);
    while !is_last || again.is_some() {
        tokio::select! {
            () = taker.wait_for_batch(), if pause.is_none() => {}
            () = sleep(pause.unwrap_or(interval)) => {}
            // The last attempt does not wait for what the collector has asked for.
            _ = &mut stopped, if !is_last => is_last = true,
        }
        pause = None;
        while pause.is_none() {
            let is_second = again.is_some();
            let batch = again.take().unwrap_or_else(|| taker.take());
            if batch.is_empty() {
                break;
            }
            let was_failing = is_failing;
            let sent = collector.try_send(&batch).await;
            if let Err(failure) = &sent
                && let Some(after) = failure.second_after(was_failing)
                && !is_second
                && !(is_last && failure.asked_pause.is_some())
            {
                (again, pause) = (Some(batch), Some(after));
                continue;
            }
            collector.report(&sent, batch.len(), was_failing);
            is_failing = sent.is_err();
            let asked = sent.err().and_then(|failure| failure.asked_pause);
            pause = asked.map(|asked| asked.max(PAUSE));
            if is_failing && is_last {
                break;
            }
        }
    }
}

impl Collector {
    /// Counts a batch that was sent or is given up. The log has the first failure and its end.
    fn report(&self, sent: &Result<usize, Failure>, spans: usize, was_failing: bool) {
        let endpoint = &self.endpoint;
        let rejected = match sent {
            Ok(rejected) => (*rejected).min(spans),
            Err(_) => spans,
        };
        match sent {
            Ok(_) if was_failing => info!("The collector at {endpoint} takes spans again"),
            Err(Failure { why, .. }) if !was_failing => {
                warn!("The collector at {endpoint} has not taken {spans} spans: {why}");
            }
            _ => {}
        }
        note_exported(spans - rejected, true);
        note_exported(rejected, false);
    }

    /// The number of spans that the collector rejects.
    async fn try_send(&self, spans: &[Span]) -> Result<usize, Failure> {
        let body = Bytes::from(request(&self.source, spans));
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
            asked_pause: None,
        })?;
        let status = answer.status;
        if status.is_success() {
            return Ok(rejected(&answer.body));
        }
        let asked = answer.headers.get(RETRY_AFTER);
        Err(Failure {
            why: format!("it answers {status}"),
            is_passing: is_passing(status),
            asked_pause: asked
                .filter(|_| is_passing(status))
                .and_then(|asked| pause_asked(asked.to_str().ok()?, SystemTime::now())),
        })
    }
}

/// Why a collector has not taken spans.
struct Failure {
    why: String,
    /// Another attempt may succeed.
    is_passing: bool,
    /// Nothing may be sent before.
    asked_pause: Option<Duration>,
}

impl Failure {
    fn lasting(why: String) -> Self {
        Self {
            why,
            is_passing: false,
            asked_pause: None,
        }
    }

    /// The time until a second attempt, if one is due. A collector that is failing already and names no time gets none.
    fn second_after(&self, was_failing: bool) -> Option<Duration> {
        let own = (self.is_passing && !was_failing).then_some(PAUSE);
        match self.asked_pause {
            Some(asked) if was_failing => Some(asked.max(PAUSE)),
            asked => asked.or(own),
        }
    }
}

/// The pause that `Retry-After` asks for, in seconds or until a date.
fn pause_asked(asked: &str, now: SystemTime) -> Option<Duration> {
    let asked = match asked.trim().parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = httpdate::parse_http_date(asked).ok()?;
            until.duration_since(now).unwrap_or_default()
        }
    };
    Some(asked.min(PAUSE_MAX))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_seconds_or_a_date_within_a_bound() {
        let now = httpdate::parse_http_date("Mon, 30 Nov 2026 12:00:00 GMT").expect("a date");
        for (asked, expected) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("86400", Some(30)),
            ("Mon, 30 Nov 2026 12:00:09 GMT", Some(9)),
            ("Mon, 30 Nov 2026 11:00:00 GMT", Some(0)),
            ("Tue, 01 Dec 2026 12:00:00 GMT", Some(30)),
            ("-1", None),
            ("99999999999999999999", None),
            ("soon", None),
        ] {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(pause_asked(asked, now), expected, "{asked}");
        }
    }
}

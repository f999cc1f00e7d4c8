//! The configuration of a client: address, identity, and every bound.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crosstie_wamp::Serializer;

use crate::authenticator::{Anonymous, Authenticator};
use crate::endpoint::{Endpoint, UrlError};
use crate::error::ConnectError;

/// The address of a router, and the client's behaviour towards it.
///
/// ```
/// # fn main() -> Result<(), crosstie_client::UrlError> {
/// let mut config = crosstie_client::Config::new("rs://localhost:8080")?;
/// config.realm = "realm2".to_owned();
/// config.reconnect = None;
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
#[derive(Clone)]
pub struct Config {
    /// The address and the transport of the router.
    pub endpoint: Endpoint,
    /// Default: `realm1`.
    pub realm: String,
    /// Offered in this order on a WebSocket; a RawSocket requests the first. Default: CBOR, MessagePack, JSON.
    pub serializers: Vec<Serializer>,
    /// Request the batched WebSocket subprotocols. Default: no.
    pub batched: bool,
    /// Default: [`Anonymous`].
    pub authenticator: Arc<dyn Authenticator>,
    /// The trust in the router's certificate, and the client's own.
    pub tls: TlsOptions,
    /// Use this version of IP only: 4 or 6. Default: either.
    pub ip_version: Option<u8>,
    /// The `Host` of a WebSocket's HTTP request. Default: the host and port of the URL.
    pub http_host: Option<String>,
    /// Time limit from the first packet to the WELCOME. Default: 10 s.
    pub connect_timeout: Duration,
    /// Time limit from the GOODBYE to the end of the connection. Default: 5 s.
    pub leave_timeout: Duration,
    /// Interval of pings to the router. If the router stays silent for a whole interval after one, the connection is
    /// dropped. Default: 20 s.
    pub ping_interval: Option<Duration>,
    /// Reconnection after a loss; `None` ends the client. Default: reconnect.
    pub reconnect: Option<Backoff>,
    /// Maximum size of a message from the router, in bytes; a RawSocket announces the power of two below. Default: 16
    /// MiB.
    pub message_bytes_max: usize,
    /// Maximum number of queued bytes: beyond it calls, publications and answers wait for room. Messages that cannot
    /// wait (pongs, refusals, cancelled calls) may double that; then the connection is dropped. Default: 16 MiB.
    pub outgoing_bytes_max: usize,
}

/// The certificates that a TLS connection trusts.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Trust the operating system's certificate authorities. Default: yes.
    pub system_roots: bool,
    /// PEM files with further certificate authorities.
    pub ca_files: Vec<PathBuf>,
    /// Trust any certificate: for tests only, since an active attacker can read and change everything.
    pub insecure: bool,
    /// The name that the router's certificate must have. Default: the host of the URL.
    pub server_name: Option<String>,
    /// PEM files with the client's own certificate and its private key. Default: none.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The delays between attempts to connect.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Backoff {
    /// The delay before the first attempt. Default: 200 ms.
    pub initial: Duration,
    /// The factor of each further delay. Default: 1.7.
    pub factor: f64,
    /// The longest delay. Default: 30 s.
    pub delay_max: Duration,
    /// The random share of each delay, so that the clients of a restarted router do not all reconnect at once. Default:
    /// 0.3.
    pub jitter: f64,
    /// Maximum number of attempts; `None`, the default, sets no bound.
    pub attempts_max: Option<u32>,
    /// Whether [`Client::connect`](crate::Client::connect) also retries, instead of failing with the first error.
    /// Default: no.
    pub from_start: bool,
}

impl Config {
    /// The defaults, for the router at `url`.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self::of(url.parse()?))
    }

    /// The same for an endpoint without a URL.
    pub fn of(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            realm: "realm1".to_owned(),
            serializers: Serializer::ALL.to_vec(),
            batched: false,
            authenticator: Arc::new(Anonymous::default()),
            tls: TlsOptions::default(),
            ip_version: None,
            http_host: None,
            connect_timeout: Duration::from_secs(10),
            leave_timeout: Duration::from_secs(5),
            ping_interval: Some(Duration::from_secs(20)),
            reconnect: Some(Backoff::default()),
            message_bytes_max: 16 << 20,
            outgoing_bytes_max: 16 << 20,
        }
    }
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            system_roots: true,
            ca_files: Vec::new(),
            insecure: false,
            server_name: None,
            certificate: None,
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(200),
            factor: 1.7,
            delay_max: Duration::from_secs(30),
            jitter: 0.3,
            attempts_max: None,
            from_start: false,
        }
    }
}

impl Backoff {
    /// The delay before an attempt, counted from 0; `chance` is a random number from 0 to 1.
    ///
    /// `None`: the maximum is exceeded.
    pub fn delay(&self, attempt: u32, chance: f64) -> Option<Duration> {
        if self.attempts_max.is_some_and(|most| attempt >= most) {
            return None;
        }
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        let delay = grown.min(self.delay_max.as_secs_f64());
        let left = 1.0 - self.jitter.clamp(0.0, 1.0) * chance;
        Some(Duration::try_from_secs_f64(delay * left).unwrap_or(self.delay_max))
    }
}

/// A random number from 0 to 1, for [`Backoff::delay`].
pub(crate) fn chance() -> f64 {
    let drawn = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(drawn) / f64::from(u32::MAX)
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("endpoint", &self.endpoint)
            .field("realm", &self.realm)
            .field("serializers", &self.serializers)
            .field("authmethod", &self.authenticator.method())
            .field("tls", &self.tls)
            .field("reconnect", &self.reconnect)
            .finish_non_exhaustive()
    }
}

impl TryFrom<&str> for Config {
    type Error = UrlError;

    fn try_from(url: &str) -> Result<Self, UrlError> {
        Self::new(url)
    }
}

impl From<Infallible> for ConnectError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_bound_and_end() {
        let backoff = Backoff {
            initial: Duration::from_millis(100),
            factor: 2.0,
            delay_max: Duration::from_millis(350),
            jitter: 0.5,
            attempts_max: Some(5),
            ..Backoff::default()
        };
        let check = |attempt, chance, expected: Option<u64>| {
            let delay = backoff
                .delay(attempt, chance)
                .map(|delay| delay.as_millis());
            assert_eq!(delay, expected.map(u128::from), "{attempt} {chance}");
        };
        check(0, 0.0, Some(100));
        check(1, 0.0, Some(200));
        check(2, 0.0, Some(350));
        check(4, 0.0, Some(350));
        check(0, 1.0, Some(50));
        check(1, 0.5, Some(150));
        check(5, 0.0, None);
    }

    #[test]
    fn no_backoff_overflows() {
        let backoff = Backoff {
            factor: f64::INFINITY,
            ..Backoff::default()
        };
        assert_eq!(backoff.delay(u32::MAX, 0.0), Some(backoff.delay_max));
    }
}

//! What a client is told before it connects: where, as whom, and every bound.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crosstie_wamp::Serializer;

use crate::authenticator::{Anonymous, Authenticator};
use crate::endpoint::{Endpoint, UrlError};
use crate::error::ConnectError;

/// How to reach a router and behave towards it.
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
    pub endpoint: Endpoint,
    /// Default: `realm1`.
    pub realm: String,
    /// Offered in this order on a WebSocket; a RawSocket asks for the first. Default: CBOR,
    /// MessagePack, JSON.
    pub serializers: Vec<Serializer>,
    /// Ask for the batched WebSocket subprotocols. Default: no.
    pub batched: bool,
    /// Default: [`Anonymous`].
    pub authenticator: Arc<dyn Authenticator>,
    pub tls: TlsOptions,
    /// Connect by this version of IP alone: 4 or 6. Default: by either.
    pub ip_version: Option<u8>,
    /// The `Host` that a WebSocket's request names. Default: the host and port that are connected to.
    pub http_host: Option<String>,
    /// From the first packet to the WELCOME. Default: 10 s.
    pub connect_timeout: Duration,
    /// From the GOODBYE to the end of the connection. Default: 5 s.
    pub leave_timeout: Duration,
    /// How often the router is pinged; one that stays silent for a whole interval after a ping
    /// is given up. Default: 20 s.
    pub ping_interval: Option<Duration>,
    /// What to do when the connection is lost; `None` ends the client. Default: try again.
    pub reconnect: Option<Backoff>,
    /// The longest message accepted from the router, in bytes; a RawSocket announces the power
    /// of two below. Default: 16 MiB.
    pub message_bytes_max: usize,
    /// Bytes waiting to be sent, above which calls, publications and answers wait for room. The
    /// queue may grow by as much again through what cannot wait (pongs, refusals, cancelled
    /// calls); then the connection is given up. Default: 16 MiB.
    pub outgoing_bytes_max: usize,
}

/// Whom a TLS connection trusts.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The operating system's certificate authorities. Default: yes.
    pub system_roots: bool,
    /// PEM files with further certificate authorities.
    pub ca_files: Vec<PathBuf>,
    /// Trust anybody: for tests only, since it protects from nothing but the merely curious.
    pub insecure: bool,
    /// The name that the router's certificate must have. Default: the host that is connected to.
    pub server_name: Option<String>,
    /// PEM files with a certificate of the client's own, and its private key. Default: none.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// When to try again.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Backoff {
    /// Before the first attempt. Default: 200 ms.
    pub initial: Duration,
    /// What each further delay is multiplied with. Default: 1.7.
    pub factor: f64,
    /// The longest delay. Default: 30 s.
    pub delay_max: Duration,
    /// The share of each delay that is left to chance, so that the clients of a router that
    /// went down do not all come back at once. Default: 0.3.
    pub jitter: f64,
    /// Attempts before giving up; `None` goes on for ever, which is the default.
    pub attempts_max: Option<u32>,
    /// Whether [`Client::connect`](crate::Client::connect) also tries again, instead of failing
    /// with the first error. Default: no.
    pub from_start: bool,
}

impl Config {
    /// The defaults, for that router.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self::of(url.parse()?))
    }

    /// The same for a router that no URL names.
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
    /// The delay before an attempt, counted from 0; `chance` is drawn from 0 to 1.
    ///
    /// `None`: that attempt is one too many.
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

/// From 0 to 1, for [`Backoff::delay`].
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

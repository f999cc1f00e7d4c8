//! Keys of token issuers that are fetched by URL: when the listener starts, again at intervals, and for a token with an
//! unknown key.
//!
//! One task queries the issuer's server, never more often than configured, however many tokens name unknown keys. A
//! handshake with such a token waits for a query in progress.

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crosstie_auth::wamp::jwt::{Jwks, KeysUrl};
use crosstie_front::http_client::Outgoing;
use hyper::header::{AGE, CACHE_CONTROL, HeaderMap};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::elsewhere::{Outcome, Slot};

/// An issuer's server.
pub(super) struct Issuer {
    pub(super) source: Arc<KeysUrl>,
    server: Outgoing,
    asking: Mutex<Asking>,
    wanted: Notify,
}

#[derive(Default)]
struct Asking {
    /// Whether a query is in progress.
    is_under_way: bool,
    /// The time of the last query.
    last: Option<Instant>,
    /// Handshakes that wait, which the router's bound on pending handshakes includes.
    waiting: Vec<Weak<Slot>>,
}

/// Fetched keys, and the time for which the server declares them valid.
pub(super) struct Fetched {
    pub(super) keys: Jwks,
    pub(super) holds: Option<Duration>,
}

impl Issuer {
    pub(crate) fn new(source: &Arc<KeysUrl>, directory: &Path) -> io::Result<Self> {
        let files = source.ca_certificates.iter();
        let files: Vec<_> = files.map(|path| directory.join(path)).collect();
        let asking = Asking {
            // The first answer is pending, also for handshakes that arrive before the query.
            is_under_way: true,
            ..Asking::default()
        };
        Ok(Self {
            source: Arc::clone(source),
            server: Outgoing::new(&files)?,
            asking: Mutex::new(asking),
            wanted: Notify::new(),
        })
    }

    /// Fills `slot` with the keys of the next answer. Returns whether an answer is to come.
    pub(super) fn want(&self, slot: &Arc<Slot>) -> bool {
        let mut asking = self.asking.lock();
        if !asking.is_under_way {
            let least = *self.source.refresh.start();
            if asking.last.is_some_and(|last| last.elapsed() < least) {
                return false;
            }
            asking.is_under_way = true;
            self.wanted.notify_one();
        }
        asking.waiting.push(Arc::downgrade(slot));
        true
    }

    /// Queries the issuer's server.
    pub(super) async fn fetch(&self) -> Result<Fetched, String> {
        {
            let mut asking = self.asking.lock();
            asking.is_under_way = true;
            asking.last = Some(Instant::now());
        }
        let KeysUrl {
            url,
            timeout,
            bytes_max,
            ..
        } = &*self.source;
        let answer = self
            .server
            .get(url, "application/json", *timeout, *bytes_max)
            .await?;
        let text = std::str::from_utf8(&answer.body).map_err(|_| "expected UTF-8".to_owned())?;
        Ok(Fetched {
            keys: Jwks::parse(text).map_err(|e| e.to_string())?,
            holds: holds(&answer.headers),
        })
    }

    /// Gives the current keys to all waiting handshakes.
    pub(crate) fn answer(&self, keys: &Arc<Jwks>) {
        let waiting = {
            let mut asking = self.asking.lock();
            asking.is_under_way = false;
            std::mem::take(&mut asking.waiting)
        };
        for slot in waiting.into_iter().filter_map(|slot| slot.upgrade()) {
            slot.fill(Outcome::Keys(Arc::clone(keys)));
        }
    }

    /// Waits until the next query is due: after `rest`, or earlier if a handshake needs one.
    pub(super) async fn rest(&self, rest: Duration) {
        let rest = tokio::time::sleep(rest);
        tokio::pin!(rest);
        loop {
            tokio::select! {
                () = &mut rest => return,
                // The handshake that needed it may have been answered already.
                () = self.wanted.notified() => if self.asking.lock().is_under_way {
                    return;
                },
            }
        }
    }
}

/// The freshness lifetime of a response (RFC 9111, section 5.2.2); `None` if it declares none.
fn holds(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| {
        let value = headers.get(name)?;
        value.to_str().ok()
    };
    let mut directives = text(CACHE_CONTROL)?.split(',').map(str::trim);
    let seconds = directives.find_map(|directive| {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => Some(0),
            "max-age" => value.trim_matches('"').parse().ok(),
            _ => None,
        }
    });
    // The response's age in caches on the way.
    let age = text(AGE).and_then(|age| age.trim().parse().ok());
    let seconds: u64 = seconds?;
    Some(Duration::from_secs(
        seconds.saturating_sub(age.unwrap_or(0)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_follows_the_headers() {
        for (headers, expected) in [
            (&[][..], None),
            (&[("cache-control", "public")], None),
            (&[("cache-control", "public, max-age=60")], Some(60)),
            (&[("cache-control", "Max-Age=\"60\"")], Some(60)),
            (&[("cache-control", "max-age=soon")], None),
            (&[("cache-control", "max-age=99999999999999999999")], None),
            (&[("cache-control", "no-cache, max-age=60")], Some(0)),
            (&[("cache-control", "max-age=60"), ("age", "20")], Some(40)),
            (&[("cache-control", "max-age=60"), ("age", "90")], Some(0)),
            (&[("age", "20")], None),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, value.parse().expect("is a value"));
            }
            let expected = expected.map(Duration::from_secs);
            assert_eq!(holds(&map), expected, "{headers:?}");
        }
    }
}

//! Keys of token issuers that are fetched by URL: at the start, again at intervals, and for a token with an unknown key.
//!
//! One task queries the issuer's server, never more often than configured, however many tokens name unknown keys. A
//! login with such a token waits for a query in progress.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_auth::wamp::jwt::{Jwks, KeysUrl};
use hyper::header::{AGE, CACHE_CONTROL, HeaderMap};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::http_client::Outgoing;

/// An issuer's server.
pub struct Issuer {
    source: Arc<KeysUrl>,
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
    /// Logins that wait, which a bound on pending logins includes.
    waiting: Vec<Waiting>,
}

/// Gets the keys that are in force after a query.
type Waiting = Box<dyn FnOnce(&Arc<Jwks>) + Send>;

/// Fetched keys, and the time for which the server declares them valid.
struct Fetched {
    keys: Jwks,
    holds: Option<Duration>,
}

/// The interval of a failing server doubles with each failure, up to this number of times.
const RETRY_DOUBLINGS_MAX: u32 = 10;

impl Issuer {
    pub fn new(source: &Arc<KeysUrl>, directory: &Path) -> io::Result<Self> {
        let files = source.ca_certificates.iter();
        let files: Vec<_> = files.map(|path| directory.join(path)).collect();
        let asking = Asking {
            // The first answer is pending, also for logins that arrive before the query.
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

    /// Fetches the keys at intervals. `take` gets each outcome, and returns the keys that are in force; it ends this by
    /// returning none.
    pub async fn follow(
        &self,
        mut take: impl FnMut(&Self, Result<Jwks, String>) -> Option<Arc<Jwks>>,
    ) {
        let (min, max) = self.source.refresh.clone().into_inner();
        let mut failed = 0;
        loop {
            let (outcome, rest) = match self.fetch().await {
                Ok(Fetched { keys, holds }) => {
                    failed = 0;
                    (Ok(keys), holds.unwrap_or(max))
                }
                Err(why) => {
                    failed += 1;
                    let doublings = failed.min(RETRY_DOUBLINGS_MAX);
                    (Err(why), min.saturating_mul(1 << doublings))
                }
            };
            let Some(keys) = take(self, outcome) else {
                return;
            };
            self.answer(&keys);
            drop(keys);
            self.rest(rest.clamp(min, max)).await;
        }
    }

    /// Passes the keys of the next answer to `waiting`. Returns whether an answer is to come.
    pub fn want(&self, waiting: impl FnOnce(&Arc<Jwks>) + Send + 'static) -> bool {
        let mut asking = self.asking.lock();
        if !asking.is_under_way {
            let least = *self.source.refresh.start();
            if asking.last.is_some_and(|last| last.elapsed() < least) {
                return false;
            }
            asking.is_under_way = true;
            self.wanted.notify_one();
        }
        asking.waiting.push(Box::new(waiting));
        true
    }

    pub fn url(&self) -> &str {
        &self.source.url
    }

    /// The URL without its login and its query, which may be secret.
    pub fn shown_url(&self) -> &str {
        shown(&self.source.url)
    }

    /// Queries the issuer's server.
    async fn fetch(&self) -> Result<Fetched, String> {
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

    /// Gives the current keys to all waiting logins.
    fn answer(&self, keys: &Arc<Jwks>) {
        let waiting = {
            let mut asking = self.asking.lock();
            asking.is_under_way = false;
            std::mem::take(&mut asking.waiting)
        };
        for each in waiting {
            each(keys);
        }
    }

    /// Waits until the next query is due: after `rest`, or earlier if a login needs one.
    async fn rest(&self, rest: Duration) {
        let rest = tokio::time::sleep(rest);
        tokio::pin!(rest);
        loop {
            tokio::select! {
                () = &mut rest => return,
                // The login that needed it may have been answered already.
                () = self.wanted.notified() => if self.asking.lock().is_under_way {
                    return;
                },
            }
        }
    }
}

/// A URL without its login and its query.
fn shown(url: &str) -> &str {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    url.rsplit_once('@').map_or(url, |(_, rest)| rest)
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
    fn a_shown_url_has_no_secret() {
        for (url, expected) in [
            ("https://keys.example/a", "https://keys.example/a"),
            ("https://keys.example/a?token=x#y", "https://keys.example/a"),
            ("https://joe:secret@keys.example/a", "keys.example/a"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

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

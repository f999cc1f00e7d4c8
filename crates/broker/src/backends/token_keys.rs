//! The keys of a token issuer: from a file that may change, or from the issuer's server.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crosstie_auth::wamp::jwt::Jwks;
use crosstie_config::AmqpOAuth2Backend;
use crosstie_front::issuer::Issuer;
use crosstie_front::stamp::{PERIOD, Stamp, stamp};
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::http::Counts;
use super::read_all;

/// Present keys.
pub(super) struct TokenKeys {
    now: RwLock<Arc<Jwks>>,
    issuer: Option<Arc<Issuer>>,
    /// The contents of the files of certificate authorities that are trusted for the issuer's server.
    authorities: Vec<Vec<u8>>,
    /// Keeps the keys as the file or the server has them, until this is dropped.
    task: RwLock<Option<AbortHandle>>,
}

/// Maximum size of a file of keys.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl TokenKeys {
    /// Reads the file, or begins to fetch. Until the server answers, those keys count that were fetched from the same URL
    /// before. An error names the file and its fault.
    pub(super) fn start(
        options: &AmqpOAuth2Backend,
        directory: &Path,
        counts: &Arc<Counts>,
        keeper: &Handle,
        former: Option<&Self>,
    ) -> io::Result<Arc<Self>> {
        let file = options.keys_file.as_ref().map(|file| directory.join(file));
        let read = file.as_ref().map(|file| (stamp(file), file));
        let issuer = options.keys_url.as_ref();
        let issuer = issuer.map(|source| Issuer::new(source, directory).map(Arc::new));
        let issuer = issuer.transpose()?;
        let authorities = read_all(options.ca_certificates().iter(), directory);
        let now = match (&read, &issuer, former) {
            (Some((_, file)), ..) => Arc::new(read_keys(file).map_err(io::Error::other)?),
            (None, Some(issuer), Some(former)) if former.are_of(issuer, &authorities) => {
                former.now()
            }
            _ => Arc::default(),
        };
        let keys = Arc::new(Self {
            now: RwLock::new(now),
            issuer: issuer.clone(),
            authorities,
            task: RwLock::default(),
        });
        let weak = Arc::downgrade(&keys);
        let task = match (issuer, read) {
            (Some(issuer), _) => keeper.spawn(follow(weak, issuer, Arc::clone(counts))),
            (None, Some((stamp, file))) => keeper.spawn(watch(weak, file.clone(), stamp)),
            (None, None) => return Ok(keys),
        };
        *keys.task.write() = Some(task.abort_handle());
        Ok(keys)
    }

    pub(super) fn now(&self) -> Arc<Jwks> {
        Arc::clone(&self.now.read())
    }

    /// Whether there is a server to ask.
    pub(super) fn may_be_newer(&self) -> bool {
        self.issuer.is_some()
    }

    /// Whether none has been fetched.
    pub(super) fn are_missing(&self) -> bool {
        self.now().descriptions().next().is_none()
    }

    /// Waits for the server's answer, unless the server has just been asked.
    pub(super) async fn renew(&self) {
        let (sender, answered) = oneshot::channel();
        let tell = move |_: &Arc<Jwks>| {
            // The login may have ended.
            let _ = sender.send(());
        };
        if self.issuer.as_ref().is_some_and(|issuer| issuer.want(tell)) {
            // An error means that the task has ended with its backend.
            let _ = answered.await;
        }
    }

    /// Whether these are fetched from the same URL, with trust in the same authorities.
    fn are_of(&self, issuer: &Issuer, authorities: &[Vec<u8>]) -> bool {
        let own = self.issuer.as_ref();
        own.is_some_and(|own| own.url() == issuer.url()) && self.authorities == authorities
    }

    fn put(&self, keys: Jwks) -> bool {
        let mut now = self.now.write();
        let is_new = **now != keys;
        if is_new {
            *now = Arc::new(keys);
        }
        is_new
    }
}

impl Drop for TokenKeys {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

/// Keeps the keys of the issuer's server.
async fn follow(keys: Weak<TokenKeys>, issuer: Arc<Issuer>, counts: Arc<Counts>) {
    let mut failed = false;
    let take = |issuer: &Issuer, fetched: Result<Jwks, String>| {
        let keys = keys.upgrade()?;
        let url = issuer.shown_url();
        match fetched {
            Ok(new) => {
                if keys.put(new) || failed {
                    tracing::info!("keys of tokens were fetched: {url}");
                }
                failed = false;
            }
            Err(why) => {
                counts.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    "cannot fetch keys of tokens, the previous ones stay in force: {url}: {why}"
                );
                failed = true;
            }
        }
        Some(keys.now())
    };
    issuer.follow(take).await;
}

/// Keeps the keys of the file. While the file has an error, the previous keys stay in force.
async fn watch(keys: Weak<TokenKeys>, file: PathBuf, mut read: Stamp) {
    let mut seen = read;
    loop {
        tokio::time::sleep(PERIOD).await;
        if keys.strong_count() == 0 {
            return;
        }
        let (path, known, before) = (file.clone(), read, seen);
        let look = move || {
            let found = stamp(&path);
            let is_new = found != known && found == before;
            (is_new.then(|| read_keys(&path)), found)
        };
        // Slow file systems block.
        let Ok((outcome, found)) = tokio::task::spawn_blocking(look).await else {
            return;
        };
        let Some(keys) = keys.upgrade() else {
            return;
        };
        seen = found;
        match outcome {
            None => continue,
            Some(Ok(new)) => {
                keys.put(new);
                tracing::info!("keys of tokens were reloaded: {}", file.display());
            }
            Some(Err(why)) => {
                tracing::warn!(
                    "cannot reload keys of tokens, the previous ones stay in force: {why}"
                );
            }
        }
        read = found;
    }
}

fn read_keys(file: &Path) -> Result<Jwks, String> {
    let named = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let bytes = std::fs::metadata(file).map_err(|e| named(&e))?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(named(&format!("expected at most {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|e| named(&e))?;
    Jwks::parse(&text).map_err(|e| named(&e))
}

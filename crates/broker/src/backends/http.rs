//! The HTTP backend of RabbitMQ: another server decides on logins, vhosts, names and routing keys.
//!
//! A question runs on the keeper's thread, and its client is not read meanwhile. At most `requests_max` are on their
//! way; others wait for their turn, within the same timeout. Refusals are kept if `cache_refusals` says so, as in
//! RabbitMQ's cache.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use crosstie_auth::Refused;
use crosstie_config::AmqpHttpBackend;
use crosstie_front::bound::Bound;
use crosstie_front::http_client::{Outgoing, Unanswered};
use crosstie_transport::Account;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Uri};
use parking_lot::Mutex;
use ring::hmac;
use tokio::sync::Semaphore;

use super::cache::Cache;
use super::question::{self, Question};

/// A server that answers questions.
#[derive(Debug)]
pub(crate) struct HttpBackend {
    options: AmqpHttpBackend,
    server: Outgoing,
    /// Strangers' logins take no place from the rights of connected clients.
    login_places: Semaphore,
    places: Semaphore,
    /// The tags of users by name and password, of which a keyed hash is kept.
    logins: Mutex<Cache<[u8; 32], Vec<String>>>,
    /// Refused ones. Guesses push out no right login.
    refused_logins: Mutex<Cache<[u8; 32], ()>>,
    allowed: Mutex<Cache<Question, ()>>,
    /// Refused accesses. A client that names objects at random pushes out nobody's rights.
    refused: Mutex<Cache<Question, ()>>,
    key: hmac::Key,
    counts: Arc<Counts>,
}

/// Questions by their outcome.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) allowed: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Answered from memory.
    pub(crate) kept: AtomicU64,
}

/// The part of `requests_max` that logins may have beside the questions about rights.
const LOGINS_PART: usize = 4;

/// The size of a text beside its characters, with the allocation.
const TEXT_BYTES: usize = 40;

/// Why a login is refused, for the log.
#[derive(Debug)]
pub(super) enum NotAllowed {
    Denied(String),
    /// The login is right, from this machine alone.
    Elsewhere(String),
    /// There is no valid answer: nothing is known about the password.
    Unanswered(String),
}

impl From<Refused> for NotAllowed {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::LoopbackOnly { .. } => Self::Elsewhere(refused.to_string()),
            refused => Self::Denied(refused.to_string()),
        }
    }
}

/// Maximum size of an answer: `allow` and tags.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Log lines about a server that does not answer.
static FAILURES: Bound = Bound::of(2);

impl HttpBackend {
    pub(super) fn new(
        options: &AmqpHttpBackend,
        directory: &Path,
        counts: &Arc<Counts>,
        account: &Arc<Account>,
    ) -> io::Result<Self> {
        let files = options.ca_certificates.iter();
        let files: Vec<_> = files.map(|path| directory.join(path)).collect();
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|e| io::Error::other(e.to_string()))?;
        let (ttl, entries_max) = (options.cache_ttl, options.cache_entries_max);
        Ok(Self {
            server: Outgoing::keeping(options.requests_max, &files)?,
            login_places: Semaphore::new(options.requests_max.div_ceil(LOGINS_PART)),
            places: Semaphore::new(options.requests_max),
            logins: Mutex::new(Cache::new(ttl, entries_max, account)),
            refused_logins: Mutex::new(Cache::new(ttl, entries_max, account)),
            allowed: Mutex::new(Cache::new(ttl, entries_max, account)),
            refused: Mutex::new(Cache::new(ttl, entries_max, account)),
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            options: options.clone(),
            counts: Arc::clone(counts),
        })
    }

    /// The tags of a user, or why it is refused, if the server has just been asked.
    pub(super) fn known_login(
        &self,
        name: &str,
        password: Option<&[u8]>,
    ) -> Option<Result<Vec<String>, String>> {
        let (hash, now) = (self.hash(name, password), Instant::now());
        let allowed = self.logins.lock().find(&hash, now);
        let known = match allowed {
            Some((tags, _)) => Ok(tags),
            None => {
                self.refused_logins.lock().find(&hash, now)?;
                Err(denied(name))
            }
        };
        self.counts.kept.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    /// The tags of a user with that password, or the reason for the log. A certificate has proven a name without one.
    pub(super) async fn log_in(
        &self,
        name: &str,
        password: Option<&[u8]>,
    ) -> Result<Vec<String>, NotAllowed> {
        let hash = self.hash(name, password);
        let parameters = question::login(name, password);
        let path = &self.options.user_path;
        let answer = self.ask(&self.login_places, path, parameters, tags).await;
        let Some(tags) = answer.map_err(NotAllowed::Unanswered)? else {
            if self.options.cache_refusals {
                let mut refused = self.refused_logins.lock();
                refused.keep(hash, (), hash.len(), Instant::now());
            }
            return Err(NotAllowed::Denied(denied(name)));
        };
        let bytes = hash.len() + tags.iter().map(|tag| TEXT_BYTES + tag.len()).sum::<usize>();
        let mut logins = self.logins.lock();
        logins.keep(hash, tags.clone(), bytes, Instant::now());
        drop(logins);
        Ok(tags)
    }

    /// Whether an access is allowed, and the end of the time for which that is known.
    pub(super) fn known(&self, question: &Question) -> Option<(bool, Instant)> {
        let now = Instant::now();
        let allowed = self.allowed.lock().find(question, now);
        let known = match allowed {
            Some(((), until)) => (true, until),
            None => {
                let ((), until) = self.refused.lock().find(question, now)?;
                (false, until)
            }
        };
        self.counts.kept.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    /// Asks the server. Returns the end of the time for which the access is allowed. Without an answer the access is
    /// refused, as in RabbitMQ.
    pub(super) async fn allows(&self, question: &Question) -> Option<Instant> {
        if let Some((is_allowed, until)) = self.known(question) {
            return is_allowed.then_some(until);
        }
        let path = match question {
            Question::Vhost { .. } => &self.options.vhost_path,
            Question::Resource { .. } => &self.options.resource_path,
            Question::Topic { .. } => &self.options.topic_path,
        };
        let parameters = question.parameters();
        let answer = self.ask(&self.places, path, parameters, is_allowed).await;
        // Without a valid answer nothing is known.
        let is_allowed = answer.ok()?.is_some();
        let now = Instant::now();
        let answers = match is_allowed {
            true => Some(&self.allowed),
            false => self.options.cache_refusals.then_some(&self.refused),
        };
        if let Some(answers) = answers {
            let mut answers = answers.lock();
            answers.keep(question.clone(), (), question.bytes(), now);
        }
        is_allowed.then(|| now + self.options.cache_ttl)
    }

    /// What the server allows, `None` if it denies, or why there is no valid answer; counted and logged.
    async fn ask<T>(
        &self,
        places: &Semaphore,
        path: &str,
        parameters: String,
        read: fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let text = self.request(places, path, parameters).await;
        let answered = text.and_then(|text| match read(&text) {
            Some(allowed) => Ok(Some(allowed)),
            None if is_denied(&text) => Ok(None),
            None => Err("expected \"allow\" or \"deny\", found another answer".to_owned()),
        });
        let count = match &answered {
            Ok(Some(_)) => &self.counts.allowed,
            Ok(None) => &self.counts.denied,
            Err(why) => {
                if FAILURES.may_log() {
                    tracing::error!("auth backend {path}: {why}");
                }
                &self.counts.failed
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        answered.map_err(|why| format!("the auth backend failed: {why}"))
    }

    /// The text of the server's answer, in lower case.
    async fn request(
        &self,
        places: &Semaphore,
        path: &str,
        parameters: String,
    ) -> Result<String, String> {
        let timeout = self.options.timeout;
        let began = Instant::now();
        let place = tokio::time::timeout(timeout, places.acquire()).await;
        let Ok(Ok(_place)) = place else {
            return Err(Unanswered::TimedOut(timeout).to_string());
        };
        let request = self.written(path, parameters)?;
        let left = timeout.saturating_sub(began.elapsed());
        let asked = self.server.ask(request, left, ANSWER_BYTES_MAX).await;
        let answered = asked.map_err(|why| why.to_string())?;
        if !matches!(answered.status.as_u16(), 200 | 201) {
            return Err(format!("answered with {}", answered.status));
        }
        let text = std::str::from_utf8(&answered.body).map_err(|_| "answered without UTF-8")?;
        Ok(text.trim().to_lowercase())
    }

    fn written(&self, path: &str, parameters: String) -> Result<Request<Bytes>, String> {
        let (uri, body) = match self.options.is_post {
            true => (path.to_owned(), Bytes::from(parameters)),
            false => (format!("{path}?{parameters}"), Bytes::new()),
        };
        let uri: Uri = uri.parse().map_err(|e| format!("no URL: {e}"))?;
        let mut request = match self.options.is_post {
            true => Request::post(uri),
            false => Request::get(uri),
        };
        if let Some(headers) = request.headers_mut().filter(|_| self.options.is_post) {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(CONTENT_TYPE, form);
        }
        request.body(body).map_err(|e| e.to_string())
    }

    fn hash(&self, name: &str, password: Option<&[u8]>) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&(name.len() as u64).to_le_bytes());
        context.update(name.as_bytes());
        context.update(&[u8::from(password.is_some())]);
        context.update(password.unwrap_or_default());
        let mut hash = [0; 32];
        hash.copy_from_slice(context.sign().as_ref());
        hash
    }
}

/// Why a login is refused, for the log.
fn denied(name: &str) -> String {
    format!("user '{name}' - denied by the backend")
}

/// The tags behind `allow`; `None` for another answer.
fn tags(answer: &str) -> Option<Vec<String>> {
    let rest = answer.strip_prefix("allow")?;
    let is_whole = rest.is_empty() || rest.starts_with(char::is_whitespace);
    is_whole.then(|| rest.split_whitespace().map(str::to_owned).collect())
}

fn is_allowed(answer: &str) -> Option<()> {
    (answer == "allow").then_some(())
}

fn is_denied(answer: &str) -> bool {
    answer == "deny" || answer.starts_with("deny ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_allow_with_tags_or_deny() {
        for (answer, expected) in [
            ("allow", Some(vec![])),
            ("allow administrator", Some(vec!["administrator"])),
            ("allow  a  b", Some(vec!["a", "b"])),
            ("deny", None),
            ("yes", None),
            ("allowed", None),
            ("allow_list: none", None),
            ("allow=false", None),
        ] {
            let expected = expected.map(|tags| tags.iter().map(|tag| (*tag).to_owned()).collect());
            assert_eq!(tags(answer), expected, "{answer}");
        }
        assert_eq!(is_allowed("allow"), Some(()));
        for answer in ["allow administrator", "allows nobody", "deny", ""] {
            assert_eq!(is_allowed(answer), None, "{answer}");
        }
        assert!(is_denied("deny") && is_denied("deny for a reason") && !is_denied("denying"));
    }
}

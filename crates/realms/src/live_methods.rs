//! The current authentication methods of a listener: principals may come from files that change, and keys from URLs.
//!
//! The files are checked at intervals, and read again after a change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crosstie_auth::wamp::jwt::Jwks;
use crosstie_auth::wamp::{Jwt, Method, Methods};
use crosstie_config::read_principals;
use crosstie_front::issuer::Issuer;
use crosstie_front::stamp::{PERIOD, Stamp, stamp};
use crosstie_routing::Revocation;
use parking_lot::{Mutex, RwLock};
use tokio::task::AbortHandle;

use crate::door::Door;
use crate::elsewhere::{Outcome, Slot};

/// The current methods. A handshake continues with those of its beginning.
pub struct LiveMethods {
    now: RwLock<Arc<Methods>>,
    /// Those of the transport that has replaced this one.
    successor: RwLock<Option<Arc<Self>>>,
    /// The issuer that provides keys of tokens.
    issuer: Option<Arc<Issuer>>,
    /// Periodic tasks, which end with this value.
    tasks: Mutex<Vec<AbortHandle>>,
}

impl LiveMethods {
    /// Reads the principals' files, if any, and starts to follow the files and the URLs of keys. Principals that are
    /// removed or changed in the files are passed to `revoke`.
    pub fn start(
        configured: &Arc<Methods>,
        directory: &Path,
        door: &Arc<Door>,
        revoke: impl Fn(&Revocation) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let url = configured.jwt.as_ref().and_then(|jwt| jwt.url.as_ref());
        let issuer = url.map(|url| Issuer::new(url, directory).map(Arc::new));
        let issuer = issuer.transpose()?;
        let files = Files {
            configured: Arc::clone(configured),
            directory: directory.to_owned(),
        };
        let stamps = files.stamps();
        let now = match configured.files.is_empty() {
            true => Arc::clone(configured),
            false => Arc::new(files.read().map_err(io::Error::other)?),
        };
        let live = Arc::new(Self {
            now: RwLock::new(now),
            successor: RwLock::default(),
            issuer,
            tasks: Mutex::default(),
        });
        let weak = || Arc::downgrade(&live);
        let mut tasks = Vec::new();
        if !configured.files.is_empty() {
            let watch = watch(weak(), (Arc::new(files), stamps), Arc::clone(door), revoke);
            tasks.push(door.keeper().spawn(watch));
        }
        if let Some(issuer) = &live.issuer {
            let (issuer, door) = (Arc::clone(issuer), Arc::clone(door));
            tasks.push(door.keeper().clone().spawn(follow(weak(), issuer, door)));
        }
        *live.tasks.lock() = tasks.iter().map(|task| task.abort_handle()).collect();
        Ok(live)
    }

    /// Fills `slot` with the issuer's keys once its server has answered, or returns the present keys if a query has
    /// just taken place.
    pub(super) fn want_keys(&self, slot: &Arc<Slot>) -> Option<Arc<Jwks>> {
        if let Some(successor) = &*self.successor.read() {
            return successor.want_keys(slot);
        }
        let issuer = self.issuer.as_ref();
        let waiting = Arc::downgrade(slot);
        let fill = move |keys: &Arc<Jwks>| {
            if let Some(slot) = waiting.upgrade() {
                slot.fill(Outcome::Keys(Arc::clone(keys)));
            }
        };
        let is_asked = issuer.is_some_and(|issuer| issuer.want(fill));
        (!is_asked).then(|| self.keys())
    }

    fn keys(&self) -> Arc<Jwks> {
        let now = self.now.read();
        now.jwt
            .as_ref()
            .map(|jwt| Arc::clone(&jwt.keys))
            .unwrap_or_default()
    }

    /// Replaces the fetched keys. Returns whether they changed.
    fn put_keys(&self, keys: Jwks) -> bool {
        let mut now = self.now.write();
        let mut methods = Methods::clone(&now);
        let is_new = match &mut methods.jwt {
            Some(jwt) if *jwt.keys != keys => {
                jwt.keys = Arc::new(keys);
                true
            }
            _ => false,
        };
        if is_new {
            *now = Arc::new(methods);
        }
        is_new
    }

    /// Replaces the methods by those read from files, except for fetched keys. Returns the principals that were removed
    /// or changed.
    fn put(&self, mut methods: Methods) -> Vec<(Method, String)> {
        let mut now = self.now.write();
        if let (Some(Jwt { keys, .. }), Some(jwt), Some(_)) =
            (&now.jwt, &mut methods.jwt, &self.issuer)
        {
            jwt.keys = Arc::clone(keys);
        }
        let revoked = now.revoked_by(&methods);
        *now = Arc::new(methods);
        revoked
    }

    pub fn now(&self) -> Arc<Methods> {
        match &*self.successor.read() {
            Some(successor) => successor.now(),
            None => Arc::clone(&self.now.read()),
        }
    }

    /// From now on, the methods are those of `newer`: connections of a replaced transport log in as its successor's.
    pub(crate) fn follow(&self, newer: &Arc<Self>) {
        *self.successor.write() = Some(Arc::clone(newer));
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }

    /// From now on there is no method.
    pub(crate) fn close(&self) {
        self.follow(&Arc::new(Self {
            now: RwLock::default(),
            successor: RwLock::default(),
            issuer: None,
            tasks: Mutex::default(),
        }));
    }

    /// Whether another transport, or none, has taken the place of this one.
    pub(crate) fn is_replaced(&self) -> bool {
        self.successor.read().is_some()
    }
}

impl Drop for LiveMethods {
    fn drop(&mut self) {
        for task in self.tasks.get_mut() {
            task.abort();
        }
    }
}

/// Keeps the issuer's keys.
async fn follow(live: Weak<LiveMethods>, issuer: Arc<Issuer>, door: Arc<Door>) {
    let take = |issuer: &Issuer, fetched: Result<Jwks, String>| {
        let live = live.upgrade()?;
        let outcome = fetched.as_ref().map(|_| ()).map_err(|why| &**why);
        door.note_read(&live, issuer.shown_url(), outcome);
        match fetched {
            Ok(keys) => {
                let is_new = live.put_keys(keys);
                door.note_keys(issuer.url(), Ok(is_new));
            }
            Err(why) => door.note_keys(issuer.url(), Err(&why)),
        }
        Some(live.keys())
    };
    issuer.follow(take).await;
}

async fn watch(
    live: Weak<LiveMethods>,
    (files, mut read): (Arc<Files>, Vec<Stamp>),
    door: Arc<Door>,
    revoke: impl Fn(&Revocation) + Send + 'static,
) {
    let mut seen = read.clone();
    loop {
        tokio::time::sleep(PERIOD).await;
        if live.strong_count() == 0 {
            return;
        }
        let before = std::mem::take(&mut seen);
        let looked_at = Arc::clone(&files);
        let known = read.clone();
        let look = move || {
            let found = looked_at.stamps();
            let is_new = found != known && found == before;
            (is_new.then(|| looked_at.read()), found)
        };
        // Slow file systems and key derivations may block.
        let Ok((outcome, found)) = tokio::task::spawn_blocking(look).await else {
            return;
        };
        let Some(live) = live.upgrade() else {
            return;
        };
        if outcome.is_some() {
            read.clone_from(&found);
        }
        seen = found;
        match outcome {
            None => {}
            Some(Ok(methods)) => {
                let revoked = live.put(methods);
                door.note_read(&live, &files.to_string(), Ok(()));
                tracing::info!(
                    revoked = revoked.len(),
                    "principals or keys were reloaded: {files}"
                );
                if !revoked.is_empty() {
                    revoke(&revocation(&revoked, files.configured.ends_revoked));
                }
            }
            Some(Err(why)) => {
                door.note_read(&live, &files.to_string(), Err(&why));
                tracing::warn!(
                    "cannot reload principals and keys, the previous ones stay in force: {why}"
                );
            }
        }
    }
}

/// The principals that realms shall forget. Cookies are checked when a client presents one.
fn revocation(revoked: &[(Method, String)], ends_sessions: bool) -> Revocation {
    let mut revocation = Revocation::new(ends_sessions);
    for (method, authid) in revoked {
        revocation.insert(method.name(), authid);
    }
    revocation
}

struct Files {
    configured: Arc<Methods>,
    directory: PathBuf,
}

impl Files {
    fn stamps(&self) -> Vec<Stamp> {
        let files = self.configured.files.iter();
        let paths = files.map(|file| self.directory.join(&file.path));
        paths.map(|path| stamp(&path)).collect()
    }

    fn read(&self) -> Result<Methods, String> {
        let environment = |name: &str| std::env::var(name).ok();
        let read = read_principals(&self.configured, &self.directory, &environment);
        read.map_err(|e| e.to_string())
    }
}

impl std::fmt::Display for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths = self.configured.files.iter().map(|file| &*file.path);
        f.write_str(&paths.collect::<Vec<_>>().join(", "))
    }
}

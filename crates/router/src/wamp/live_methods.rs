//! The methods of a listener as they are now: principals may stand in files, which change.
//!
//! The files are looked at each second rather than watched by the system: a file that is mounted into a
//! container, or over a network, is exchanged without a word about it. A file is read again when it has been the
//! same for a second, so that one that is being written is not read halfway.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use crosstie_auth::wamp::Methods;
use crosstie_config::read_principals;
use parking_lot::RwLock;
use tokio::runtime::Handle;

/// A handshake goes on with what there was when it began.
pub(crate) struct LiveMethods {
    now: RwLock<Arc<Methods>>,
}

/// What tells one state of a file from another; none where there is no file.
type Stamp = Option<(SystemTime, u64, u64)>;

const PERIOD: Duration = Duration::from_secs(1);

impl LiveMethods {
    /// Reads the principals' files, if there are any, and goes on looking at them on `keeper`.
    pub(crate) fn start(
        configured: &Arc<Methods>,
        directory: &Path,
        keeper: &Handle,
    ) -> io::Result<Arc<Self>> {
        let files = Files {
            configured: Arc::clone(configured),
            directory: directory.to_owned(),
        };
        if configured.files.is_empty() {
            let now = RwLock::new(files.configured);
            return Ok(Arc::new(Self { now }));
        }
        let stamps = files.stamps();
        let methods = files.read().map_err(io::Error::other)?;
        let live = Arc::new(Self {
            now: RwLock::new(Arc::new(methods)),
        });
        keeper.spawn(watch(Arc::downgrade(&live), Arc::new(files), stamps));
        Ok(live)
    }

    pub(crate) fn now(&self) -> Arc<Methods> {
        Arc::clone(&self.now.read())
    }
}

async fn watch(live: Weak<LiveMethods>, files: Arc<Files>, mut read: Vec<Stamp>) {
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
        // A file system may take its time, and so may keys that are derived.
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
                *live.now.write() = Arc::new(methods);
                tracing::info!("principals or keys were read again: {files}");
            }
            Some(Err(why)) => {
                tracing::warn!(
                    "principals and keys stay as they were, the new ones have an error: {why}"
                );
            }
        }
    }
}

struct Files {
    configured: Arc<Methods>,
    directory: PathBuf,
}

impl Files {
    fn stamps(&self) -> Vec<Stamp> {
        let files = self.configured.files.iter();
        let stamp = |path: &String| {
            let found = fs::metadata(self.directory.join(path)).ok()?;
            Some((found.modified().ok()?, found.len(), found.ino()))
        };
        files.map(|file| stamp(&file.path)).collect()
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

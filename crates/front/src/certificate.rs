//! The certificate of a listener. Its files are checked at intervals, and read again after a change.
//!
//! Files that cannot be used are refused: the former certificate stays, and the log, the metrics and the page `/health`
//! say so until the files are right. Connections keep the certificate that they began with.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use crosstie_config as model;
use crosstie_transport::tls::ServerConfig;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::ends::{DAY_S, Ends, File};
use crate::stamp::{PERIOD, Stamp, stamp};
use crate::tls_files;

/// The TLS that new connections of a listener begin with.
pub struct Presented(RwLock<Arc<ServerConfig>>);

/// A listener's certificates, keys, authorities and revocation lists, for as long as the listener has them.
pub struct Certificate {
    /// The transport's id.
    pub id: String,
    source: Source,
    presented: Arc<Presented>,
    state: Mutex<State>,
    /// Checks the files, and ends with this value.
    task: Mutex<Option<AbortHandle>>,
}

/// The files, and how they are used.
#[derive(Clone)]
struct Source {
    files: model::Tls,
    directory: PathBuf,
    protocols: &'static [&'static [u8]],
}

struct State {
    /// The files' states when the present certificate was read.
    in_force: Vec<Stamp>,
    ends: Vec<Ends>,
    /// Why the present files are not used.
    refused: Option<String>,
    /// The day of the last warning of the expiry, since 1970.
    warned_day: Option<i64>,
}

/// Usable files that are not presented yet.
pub struct Read {
    config: Arc<ServerConfig>,
    stamps: Vec<Stamp>,
    ends: Vec<Ends>,
}

/// What an operator wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// When the first of the certificates expires, in seconds since 1970; `None` if none is readable here.
    pub expires_s: Option<i64>,
    /// Why the files are not used, and the former certificate is.
    pub refused: Option<String>,
    /// What ends soon or has ended, one text each.
    warnings: Vec<String>,
}

impl Presented {
    pub(crate) fn now(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read())
    }
}

impl Certificate {
    /// Reads the files, and follows them from then on. An error names the faulty file.
    pub fn open(
        id: &str,
        files: &model::Tls,
        directory: &Path,
        protocols: &'static [&'static [u8]],
        keeper: &Handle,
    ) -> io::Result<Arc<Self>> {
        let source = Source {
            files: files.clone(),
            directory: directory.to_owned(),
            protocols,
        };
        let read = source.read()?;
        let certificate = Arc::new(Self {
            id: id.to_owned(),
            source,
            presented: Arc::new(Presented(RwLock::new(read.config))),
            state: Mutex::new(State {
                in_force: read.stamps,
                ends: read.ends,
                refused: None,
                warned_day: None,
            }),
            task: Mutex::default(),
        });
        let task = keeper.spawn(follow(Arc::downgrade(&certificate)));
        *certificate.task.lock() = Some(task.abort_handle());
        Ok(certificate)
    }

    pub fn presented(&self) -> Arc<Presented> {
        Arc::clone(&self.presented)
    }

    /// Whether the files have changed since the present certificate was read.
    pub fn has_new_files(&self) -> bool {
        self.source.stamps() != self.state.lock().in_force
    }

    /// Reads the files again, without presenting them. An expired file is refused while the present one is valid.
    pub fn read(&self) -> io::Result<Read> {
        let read = self.source.read()?;
        let now_s = now_s();
        let state = self.state.lock();
        let mut pairs = read.ends.iter().zip(&state.ends);
        let is_worse = |(new, old): &(&Ends, &Ends)| new.is_past(now_s) && !old.is_past(now_s);
        match pairs.find(is_worse) {
            Some((new, _)) => {
                let text = format!("{}: the {} has expired", new.path.display(), new.file);
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            None => Ok(read),
        }
    }

    /// Presents what was read to connections that begin from now on.
    pub fn put(&self, read: Read) {
        let mut state = self.state.lock();
        *self.presented.0.write() = read.config;
        state.in_force = read.stamps;
        state.ends = read.ends;
        state.refused = None;
        state.warned_day = None;
        drop(state);
        tracing::info!("transport '{}': its certificate was read again", self.id);
    }

    pub fn status(&self) -> CertificateStatus {
        let state = self.state.lock();
        let certificates = state.ends.iter();
        let certificates = certificates.filter(|ends| ends.file == File::Certificate);
        CertificateStatus {
            expires_s: certificates.filter_map(|ends| ends.at_s).min(),
            refused: state.refused.clone(),
            warnings: state.warnings(now_s()),
        }
    }

    /// When its certificates and revocation lists end.
    pub fn ends(&self) -> Vec<Ends> {
        self.state.lock().ends.clone()
    }

    /// Reads changed files. Those that are refused are tried again at the next check, and logged once.
    fn follow_files(&self) {
        if !self.has_new_files() {
            // Former files may have been put back.
            self.state.lock().refused = None;
            return;
        }
        let why = match self.read() {
            Ok(read) => return self.put(read),
            Err(why) => why.to_string(),
        };
        let former = self.state.lock().refused.replace(why.clone());
        if former.as_ref() != Some(&why) {
            tracing::warn!(
                "transport '{}': the changed files of its certificate are not used, the former one is: {why}",
                self.id
            );
        }
    }

    /// Logs what ends soon or has ended, once a day.
    fn warn_of_expiry(&self, now_s: i64) {
        let mut state = self.state.lock();
        let day = now_s.div_euclid(DAY_S);
        if state.warned_day == Some(day) {
            return;
        }
        for warning in state.warnings(now_s) {
            state.warned_day = Some(day);
            tracing::warn!("transport '{}': {warning}", self.id);
        }
    }
}

impl State {
    fn warnings(&self, now_s: i64) -> Vec<String> {
        let warnings = self.ends.iter().map(|ends| ends.warning(now_s));
        warnings.flatten().collect()
    }
}

impl CertificateStatus {
    /// What is wrong, one text each.
    pub fn troubles(&self) -> Vec<String> {
        let refused = self.refused.iter();
        let refused = refused.map(|why| {
            format!("the changed files of its certificate are not used, the former one is: {why}")
        });
        refused.chain(self.warnings.iter().cloned()).collect()
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

impl Source {
    fn stamps(&self) -> Vec<Stamp> {
        let paths = tls_files::paths(&self.files);
        paths
            .map(|path| stamp(&self.directory.join(path)))
            .collect()
    }

    fn read(&self) -> io::Result<Read> {
        // Before the files: a change meanwhile is one more.
        let stamps = self.stamps();
        let config = tls_files::read(&self.files, &self.directory, self.protocols)?;
        Ok(Read {
            config,
            stamps,
            ends: tls_files::ends(&self.files, &self.directory),
        })
    }
}

/// Reads changed files, and warns of the expiry.
async fn follow(certificate: Weak<Certificate>) {
    let mut seen = Vec::new();
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(certificate) = certificate.upgrade() else {
            return;
        };
        let look = move || {
            certificate.warn_of_expiry(now_s());
            let found = certificate.source.stamps();
            if found == seen {
                certificate.follow_files();
            }
            found
        };
        // Slow file systems may block.
        let Ok(found) = tokio::task::spawn_blocking(look).await else {
            return;
        };
        seen = found;
    }
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

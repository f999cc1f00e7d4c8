//! The node's identity: an Ed25519 key pair in its directory.

use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_router::SigningKey;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::key_file::{
    BYTES_MAX, CREATED_AT, CREATOR, MACHINE_ID, NODE_AUTHID, PRIVATE_KEY, PUBLIC_KEY, Tags,
    hexadecimal, key_bytes, parse, write,
};
use super::{regular, replace};

pub(super) const PRIVATE_FILE: &str = "key.priv";
const PUBLIC_FILE: &str = "key.pub";
const PRIVATE_HEAD: &str = "Crosstie node private key - KEEP THIS SAFE!";
const PUBLIC_HEAD: &str = "Crosstie node public key";

/// An Ed25519 key pair.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeKey {
    seed: [u8; 32],
    public: [u8; 32],
}

/// A key with its origin, and warnings about its files.
#[derive(Debug)]
pub struct LoadedKey {
    pub key: NodeKey,
    pub origin: KeyOrigin,
    /// Faults that were repaired, or could not be.
    pub warnings: Vec<String>,
}

#[derive(Debug)]
#[non_exhaustive]
pub enum KeyOrigin {
    /// Read from its files.
    Kept,
    /// Created and written.
    Made,
    /// Created and not written: the next start creates another one.
    NotWritten,
}

/// Why a directory's key is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    #[error("no key in '{}': a node's start makes one", .directory.display())]
    None { directory: PathBuf },
    #[error("'{}' has a key already", .directory.display())]
    There { directory: PathBuf },
    #[error("cannot write a key into '{}': {error}", .path.display())]
    Unwritable { path: PathBuf, error: io::Error },
    #[error("cannot read key file '{}': {error}", .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("key file '{}' is corrupt: {what}", .path.display())]
    Corrupt { path: PathBuf, what: String },
    #[error("key file '{}' does not belong with '{}': its {PUBLIC_KEY} is another key's; expected {expected}", .path.display(), .private.display())]
    NotAPair {
        path: PathBuf,
        private: PathBuf,
        expected: String,
    },
    #[error("half a key pair: '{}' is there, '{}' is not; put it back, or remove the other to have a new pair made", .there.display(), .missing.display())]
    Half { there: PathBuf, missing: PathBuf },
    #[error("key file '{}' can be read by others (mode {mode:04o}, owner {owner}): expected mode 0600, and it cannot be set: {error}", .path.display())]
    Exposed {
        path: PathBuf,
        mode: u32,
        owner: u32,
        error: io::Error,
    },
    #[error("the system gives no random bytes, which a new key needs")]
    NoRandomness,
}

impl NodeKey {
    /// The key of a directory; a new one if there is none. Only the node that occupies the directory may call this.
    ///
    /// A directory that cannot be written does not stop a node.
    pub fn load_or_make(directory: &Path) -> Result<LoadedKey, KeyError> {
        match Self::load(directory) {
            Err(KeyError::None { .. }) => {}
            loaded => return loaded,
        }
        let key = Self::generate()?;
        let mut loaded = LoadedKey {
            key,
            origin: KeyOrigin::Made,
            warnings: Vec::new(),
        };
        if let Err(e) = loaded.key.write(directory) {
            loaded.origin = KeyOrigin::NotWritten;
            loaded.warnings.push(format!(
                "The node's key cannot be kept in '{}', so the next start makes another one: {e}",
                directory.display()
            ));
        }
        Ok(loaded)
    }

    /// The present key of a directory.
    pub fn load(directory: &Path) -> Result<LoadedKey, KeyError> {
        let private = directory.join(PRIVATE_FILE);
        let public = directory.join(PUBLIC_FILE);
        let mut warnings = Vec::new();
        let Some(tags) = read(&private)? else {
            return Err(if public.exists() {
                KeyError::Half {
                    there: public,
                    missing: private,
                }
            } else {
                KeyError::None {
                    directory: directory.to_owned(),
                }
            });
        };
        warnings.extend(hide(&private)?);
        let corrupt = |path: &Path| {
            let path = path.to_owned();
            move |what| KeyError::Corrupt { path, what }
        };
        let seed = key_bytes(&tags, PRIVATE_KEY).map_err(corrupt(&private))?;
        let key = Self::from_seed(seed).map_err(corrupt(&private))?;
        let check = |tags: &Tags, path: &Path| {
            if key_bytes(tags, PUBLIC_KEY).map_err(corrupt(path))? == key.public {
                return Ok(());
            }
            Err(KeyError::NotAPair {
                path: path.to_owned(),
                private: private.clone(),
                expected: key.public_hexadecimal(),
            })
        };
        check(&tags, &private)?;
        match read(&public)? {
            Some(tags) => check(&tags, &public)?,
            // The private file contains the whole pair.
            None => warnings.push(match key.write_public(&public, &tags) {
                Ok(()) => format!("'{}' was missing and is made anew", public.display()),
                Err(e) => format!(
                    "'{}' is missing, and cannot be written: {e}",
                    public.display()
                ),
            }),
        }
        Ok(LoadedKey {
            key,
            origin: KeyOrigin::Kept,
            warnings,
        })
    }

    /// A new key, not stored.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| KeyError::NoRandomness)?;
        Self::from_seed(seed).map_err(|_| KeyError::NoRandomness)
    }

    pub(super) fn from_seed(seed: [u8; 32]) -> Result<Self, String> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|e| format!("no Ed25519 key: {e}"))?;
        let public = pair.public_key().as_ref().try_into();
        let public =
            public.map_err(|_| "no Ed25519 key: its public half is not 32 bytes".to_owned())?;
        Ok(Self { seed, public })
    }

    pub(super) fn is_public(&self, public: &[u8; 32]) -> bool {
        self.public == *public
    }

    /// Ed25519's bytes: the public half, and the private one.
    pub fn octets(&self) -> (&[u8; 32], &[u8; 32]) {
        (&self.public, &self.seed)
    }

    /// 64 hexadecimal digits.
    pub fn public_hexadecimal(&self) -> String {
        hexadecimal(&self.public)
    }

    /// 64 hexadecimal digits, which are a credential: a program that has them can pose as this node.
    pub fn private_hexadecimal(&self) -> String {
        hexadecimal(&self.seed)
    }

    /// The key with which the node's routers sign.
    pub(crate) fn signing_key(&self) -> Arc<SigningKey> {
        Arc::new(SigningKey::from_seed(&self.seed))
    }

    /// The private file comes first, as the public one can be derived from it.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let tags: Tags = [
            (CREATOR, creator()),
            (CREATED_AT, created_at()),
            (MACHINE_ID, machine_id()),
            (NODE_AUTHID, host()),
            (PUBLIC_KEY, self.public_hexadecimal()),
            (PRIVATE_KEY, self.private_hexadecimal()),
        ]
        .map(|(tag, value)| (tag.to_owned(), value))
        .into();
        let private = self.file(PRIVATE_HEAD, &tags, &[PRIVATE_KEY]);
        replace::write(&directory.join(PRIVATE_FILE), &private, 0o600)?;
        self.write_public(&directory.join(PUBLIC_FILE), &tags)
    }

    fn write_public(&self, path: &Path, tags: &Tags) -> io::Result<()> {
        replace::write(path, &self.file(PUBLIC_HEAD, tags, &[]), 0o644)
    }

    fn file(&self, head: &str, tags: &Tags, more: &[&str]) -> String {
        let order = [CREATOR, CREATED_AT, MACHINE_ID, NODE_AUTHID, PUBLIC_KEY];
        let lines: Vec<_> = order
            .iter()
            .chain(more)
            .filter_map(|&tag| Some((tag, tags.get(tag)?.as_str())))
            .collect();
        write(head, &lines)
    }
}

/// Never prints the private half.
impl std::fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeKey({})", self.public_hexadecimal())
    }
}

/// A file's tags, if it exists.
fn read(path: &Path) -> Result<Option<Tags>, KeyError> {
    let unreadable = |error| KeyError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let corrupt = |what| KeyError::Corrupt {
        path: path.to_owned(),
        what,
    };
    let file = match regular::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(e)),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(corrupt(format!("expected at most {BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| corrupt("expected UTF-8".to_owned()))?;
    parse(&text).map(Some).map_err(corrupt)
}

/// Restricts a private key's mode. Returns a warning if that was necessary.
fn hide(path: &Path) -> Result<Option<String>, KeyError> {
    let unreadable = |error| KeyError::Unreadable {
        path: path.to_owned(),
        error,
    };
    let found = fs::metadata(path).map_err(unreadable)?;
    let mode = found.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(None);
    }
    let place = path.display();
    match fs::set_permissions(path, Permissions::from_mode(0o600)) {
        Ok(()) => Ok(Some(format!(
            "'{place}' could be read by others (mode {mode:04o}); it has mode 0600 now"
        ))),
        // Secrets are mounted into containers this way, by the operator's decision.
        Err(e) if e.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(Some(format!(
            "'{place}' can be read by others (mode {mode:04o}), and its file system is read-only"
        ))),
        Err(error) => Err(KeyError::Exposed {
            path: path.to_owned(),
            mode,
            owner: found.uid(),
            error,
        }),
    }
}

fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

fn creator() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.unwrap_or_else(|_| rustix::process::geteuid().to_string());
    format!("{}@{}", user.replace(['\n', '\r'], " "), host())
}

fn created_at() -> String {
    chrono::Utc::now()
        .format("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

fn machine_id() -> String {
    let file = fs::read_to_string("/etc/machine-id")
        .or_else(|_| fs::read_to_string("/var/lib/dbus/machine-id"));
    let id = file
        .ok()
        .and_then(|text| text.lines().next().map(|id| id.trim().to_owned()));
    id.filter(|id| !id.is_empty()).unwrap_or_else(host)
}

//! The file of the contexts. It may have secrets in it, so that only its owner may read it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use crosstie_client::{Address, Config};
use crosstie_terminal::credentials::Credentials;
use serde::{Deserialize, Serialize};

/// Maximum size of the file, in bytes: a larger one is not one of ours.
const BYTES_MAX: u64 = 1 << 20;

/// An address and a login. Every key is optional.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Context {
    /// Of a router, for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) realm: Option<String>,
    #[serde(skip_serializing_if = "Credentials::is_default")]
    pub(crate) login: Credentials,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ca: Vec<PathBuf>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) insecure: bool,
    /// URL of a management realm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) management: Option<String>,
    /// Directory of a node on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cbdir: Option<PathBuf>,
    /// URL of a broker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) amqp: Option<String>,
}

/// A context that applies to a command.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) name: String,
    pub(crate) context: Context,
}

impl Chosen {
    /// A client's configuration for a URL of this context, with its login and its trust.
    pub(crate) fn config(&self, url: &str) -> anyhow::Result<Config> {
        let context = &self.context;
        let in_context = || format!("context '{}'", self.name);
        let mut config = Config::new(url).with_context(in_context)?;
        // The owner of a node's own socket needs no login, and is refused with one.
        let is_own_socket = matches!(config.endpoint.address, Address::Unix(_));
        if !is_own_socket || context.management.as_deref() != Some(url) {
            let authenticator = context.login.authenticator();
            config.authenticator = authenticator.with_context(in_context)?;
        }
        config.tls.ca_files.clone_from(&context.ca);
        config.tls.insecure = context.insecure;
        Ok(config)
    }
}

/// All of them, and the selected one.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Contexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) selected: Option<String>,
    pub(super) contexts: BTreeMap<String, Context>,
}

/// The place of the file: below $`XDG_CONFIG_HOME`, or `.config` in the home directory.
pub(super) fn path() -> Option<PathBuf> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        // As in the specification of these directories, a relative path is ignored.
        value.filter(|path| path.is_absolute())
    };
    let folder = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(folder.join("crosstie").join("contexts.json"))
}

impl Contexts {
    /// Empty if there is no file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| format!("cannot open '{shown}'")),
        };
        let metadata = file.metadata()?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            bail!(
                "'{shown}' may hold secrets, and others may open it: expected mode 600, got {mode:o}; `chmod 600 \
                 '{shown}'` repairs that"
            );
        }
        if metadata.len() > BYTES_MAX {
            bail!(
                "'{shown}' has {} bytes, expected at most {BYTES_MAX}",
                metadata.len()
            );
        }
        let mut text = String::new();
        let read = file.take(BYTES_MAX).read_to_string(&mut text);
        read.with_context(|| format!("cannot read '{shown}'"))?;
        serde_json::from_str(&text).with_context(|| format!("'{shown}'"))
    }

    /// Changes the file while no other command does.
    pub(super) fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let lock = path.with_extension("lock");
        let _lock = locked(&lock).with_context(|| format!("cannot lock '{}'", lock.display()))?;
        let mut contexts = Self::read(path)?;
        let changed = change(&mut contexts)?;
        contexts.write(path)?;
        Ok(changed)
    }

    /// Replaces the file at once; only its owner may open the new one.
    fn write(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let write = || {
            // A new file of this library has mode 600.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            Ok::<_, anyhow::Error>(())
        };
        write().with_context(|| format!("cannot write '{}'", path.display()))
    }

    /// The one of that name, or the selected one.
    pub(super) fn chosen(self, name: Option<String>) -> anyhow::Result<Option<Chosen>> {
        let Self {
            selected,
            mut contexts,
        } = self;
        let Some(name) = name.or(selected) else {
            return Ok(None);
        };
        match contexts.remove(&name) {
            Some(context) => Ok(Some(Chosen { name, context })),
            None => bail!(no_such(&name, contexts.keys())),
        }
    }
}

/// Locks a file, which is made with its directory. The lock lasts as long as the file is open.
fn locked(path: &Path) -> std::io::Result<File> {
    let mut builder = fs::DirBuilder::new();
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    builder.recursive(true).mode(0o700).create(folder)?;
    let mut options = File::options();
    let file = options.create(true).append(true).mode(0o600).open(path)?;
    match file.lock() {
        // Few file systems have no locks.
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

/// The complaint about a name, with the names that exist.
pub(super) fn no_such<'a>(name: &str, names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.map(String::as_str).collect();
    match names.is_empty() {
        true => format!("there is no context '{name}'; `crosstie context add {name}` makes one"),
        false => format!(
            "there is no context '{name}', expected one of {}",
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn the_file_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/contexts.json");
        assert!(Contexts::read(&path).unwrap().contexts.is_empty());
        let context = Context {
            url: Some("wss://h/ws".to_owned()),
            ..Context::default()
        };
        let add = |contexts: &mut Contexts| Ok(contexts.contexts.insert("one".into(), context));
        Contexts::change(&path, add).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.split_whitespace().collect::<String>(),
            r#"{"contexts":{"one":{"url":"wss://h/ws"}}}"#
        );
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = Contexts::read(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("expected mode 600, got 640"), "{error}");
    }

    #[test]
    fn no_change_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crosstie/contexts.json");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let path = &path;
                scope.spawn(move || {
                    Contexts::change(path, |contexts| {
                        let name = number.to_string();
                        Ok(contexts.contexts.insert(name, Context::default()))
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(Contexts::read(&path).unwrap().contexts.len(), 16);
    }

    #[test]
    fn a_file_that_is_not_ours_is_refused() {
        let check = |text: &str, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("contexts.json");
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            let error = Contexts::read(&path).map(drop).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("", "EOF");
        check(r#"{"contexts":{"a":{"uri":"x"}}}"#, "unknown field `uri`");
        check(r#"{"contexts":[]}"#, "expected a map");
        check(&" ".repeat(1 << 21), "expected at most 1048576");
    }

    #[test]
    fn names_lead_to_contexts() {
        let contexts = |selected: Option<&str>| Contexts {
            selected: selected.map(str::to_owned),
            contexts: BTreeMap::from([("a".to_owned(), Context::default())]),
        };
        let check = |selected: Option<&str>, name: Option<&str>, expected: &str| {
            let found = contexts(selected).chosen(name.map(str::to_owned));
            let found = match found {
                Ok(chosen) => chosen.map_or_else(String::new, |chosen| chosen.name),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected);
        };
        check(None, None, "");
        check(Some("a"), None, "a");
        check(None, Some("a"), "a");
        check(
            Some("a"),
            Some("b"),
            "there is no context 'b', expected one of a",
        );
    }
}

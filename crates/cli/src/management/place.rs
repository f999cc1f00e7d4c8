//! The place of a node, and its management realm: in a directory, or on its embedded default.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use crosstie_node::directory::{FindError, NodeDirectory, Occupant, is_held_by, occupant};

use super::target::Target;
use crate::context::{self, Chosen};
use crate::embedded::{SOCKET, management_socket};

/// Which node is meant.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// Node directory; by default $CROSSTIE_DIR or $CROSSBAR_DIR, `.crossbar`, or the current one.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    cbdir: Option<PathBuf>,
    /// Unix socket of a node on its embedded default; by default `crosstie.sock` in the current directory.
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "cbdir")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    context: context::Choice,
}

impl Place {
    /// Of this machine; contexts are ignored.
    pub(crate) fn new(cbdir: Option<PathBuf>, socket: Option<PathBuf>) -> Self {
        let context = context::Choice::none();
        Self {
            cbdir,
            socket,
            context,
        }
    }

    /// As the options of these names do.
    pub(crate) fn named(
        cbdir: Option<PathBuf>,
        socket: Option<PathBuf>,
        context: Option<String>,
    ) -> Self {
        let context = context::Choice::named(context);
        Self {
            cbdir,
            socket,
            context,
        }
    }

    /// Whether a place is named, or there is one in the current directory.
    pub(crate) fn is_known(&self) -> bool {
        let is_here =
            || std::env::current_dir().is_ok_and(|here| embedded(&here.join(SOCKET)).is_some());
        self.socket.is_some() || !matches!(locate_if_any(self.cbdir.clone()), Ok(None)) || is_here()
    }

    /// The node's management realm.
    pub(crate) fn target(&self) -> anyhow::Result<Target> {
        match self.chosen()? {
            None => Target::local(self.management_url()?),
            Some(chosen) => of_context(&chosen),
        }
    }

    /// The context that leads to the node, if no option names its place.
    pub(crate) fn chosen(&self) -> anyhow::Result<Option<Chosen>> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match is_set("CROSSTIE_DIR") || is_set("CROSSBAR_DIR") {
            true if self.is_unnamed() => self.context.resolve_named(),
            _ => self.chosen_for_broker(),
        }
    }

    /// The context that leads to a broker. The variables name the directory of a node, and no broker.
    pub(crate) fn chosen_for_broker(&self) -> anyhow::Result<Option<Chosen>> {
        match self.is_unnamed() {
            true => self.context.resolve(),
            false => Ok(None),
        }
    }

    /// Whether no option names a place.
    fn is_unnamed(&self) -> bool {
        self.cbdir.is_none() && self.socket.is_none()
    }

    pub(crate) fn cbdir(&self) -> Option<&Path> {
        self.cbdir.as_deref()
    }

    pub(crate) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The URL of the management realm of a node on this machine.
    fn management_url(&self) -> anyhow::Result<String> {
        let current = std::env::current_dir().context("no current directory")?;
        if let Some(socket) = &self.socket {
            let Some(url) = embedded(&current.join(socket)) else {
                bail!("no node runs at '{}'", socket.display());
            };
            return Ok(url);
        }
        let beside = match self.cbdir {
            Some(_) => None,
            None => embedded(&current.join(SOCKET)),
        };
        let directory = match (locate_if_any(self.cbdir.clone()), beside.clone()) {
            (Ok(Some(directory)), _) => directory,
            // The current directory is not a node's; a node on its embedded default needs none.
            (_, Some(url)) => return Ok(url),
            (Ok(None), None) => bail!(
                "no node runs here: '{}' is no node's directory, and there is no node on its \
                 embedded default, which has the socket '{SOCKET}' there",
                current.display()
            ),
            (Err(error), None) => return Err(error),
        };
        let place = directory.display();
        match occupant(&directory)? {
            Some(found) => {
                let url = found.management.as_deref().with_context(|| {
                    format!("the node in '{place}' has no management realm, or is still starting")
                })?;
                reached(url, &found, &directory)
            }
            None => beside.with_context(|| format!("no node runs in '{place}'")),
        }
    }
}

/// The node of a context.
fn of_context(chosen: &Chosen) -> anyhow::Result<Target> {
    let Chosen { name, context } = chosen;
    match (&context.management, &context.cbdir) {
        (Some(url), _) => {
            let config = chosen.config(url)?;
            Ok(Target::of(config, url.clone(), Some(name.clone())))
        }
        (None, Some(directory)) => {
            let place = Place::new(Some(directory.clone()), None);
            let url = place.management_url();
            Target::local(url.with_context(|| format!("context '{name}'"))?)
        }
        (None, None) => bail!(
            "context '{name}' leads to no node: `crosstie context add {name} --replace` with --management or --cbdir \
             names one, and the option --cbdir or --socket ignores the context"
        ),
    }
}

/// The URL of a node's management realm as reachable from here: the node may have a temporary directory of its own, or
/// its directory another name, as in a container.
pub(crate) fn reached(url: &str, found: &Occupant, directory: &Path) -> anyhow::Result<String> {
    let Some(said) = url.strip_prefix("rs+unix://").map(Path::new) else {
        return Ok(url.to_owned());
    };
    let mut candidates = vec![said.to_owned()];
    let mut names = said.iter().rev();
    if let (Some(socket), Some(folder)) = (names.next(), names.next()) {
        candidates.push(directory.join(folder).join(socket));
    }
    // The node's own root, if this user may read it; the process id is the node's only within the same container.
    if let Some(pid) = found.pid.filter(|pid| is_held_by(directory, *pid)) {
        let inside = said.strip_prefix("/").unwrap_or(said);
        candidates.push(
            Path::new("/proc")
                .join(pid.to_string())
                .join("root")
                .join(inside),
        );
    }
    if let Some(there) = candidates.iter().find(|candidate| candidate.exists()) {
        return Ok(format!("rs+unix://{}", there.display()));
    }
    let looked: Vec<_> = candidates
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    bail!(
        "the node in '{}' runs, and the socket of its management realm is not found: looked for {}; start the node with a \
         shorter path of its directory, or with XDG_RUNTIME_DIR at a directory that this user sees, too",
        directory.display(),
        looked.join(", ")
    )
}

/// The URL of the management realm beside a Unix socket, if there is one.
pub(crate) fn embedded(socket: &Path) -> Option<String> {
    let management = management_socket(socket);
    management
        .exists()
        .then(|| format!("rs+unix://{}", management.display()))
}

/// The given directory, or the current one if it is a node's.
pub(crate) fn locate_if_any(cbdir: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
    match locate(cbdir) {
        Ok(directory) => Ok(Some(directory)),
        Err(error) if matches!(error.downcast_ref(), Some(FindError::Nowhere { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The given directory, or the current one.
pub(crate) fn locate(cbdir: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let current = std::env::current_dir().context("no current directory")?;
    let variable = |name: &str| std::env::var_os(name);
    Ok(NodeDirectory::locate(
        cbdir.as_deref(),
        &current,
        &variable,
    )?)
}

//! Where a node is: its directory, its private files, its own program.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What workers need to know of the node they belong to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Relative paths of the configuration are relative to this directory.
    pub(crate) directory: PathBuf,
    /// For sockets that nobody else may find; none without a node directory.
    pub(crate) private: Option<PathBuf>,
    /// The socket of the management realm where it is not among them.
    pub(crate) management: Option<PathBuf>,
    /// The node's own program, which children are started through.
    pub(crate) executable: PathBuf,
    /// How much children of the project's own kind log.
    pub(crate) loglevel: String,
    /// The environment variables that secrets of the configuration come from.
    pub(crate) secrets: Arc<BTreeSet<String>>,
}

impl Place {
    /// The socket of the management realm.
    pub(crate) fn management_socket(&self) -> Option<PathBuf> {
        let private = self.private.as_ref();
        private
            .map(|private| private.join("management.sock"))
            .or_else(|| self.management.clone())
    }
}

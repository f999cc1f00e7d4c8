//! The location of a node: its directory, its private files, its own program.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The node's paths and settings for its workers.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The base of the configuration's relative paths.
    pub(crate) directory: PathBuf,
    /// For private sockets; `None` without a node directory.
    pub(crate) private: Option<PathBuf>,
    /// The socket of the management realm if it is not among them.
    pub(crate) management: Option<PathBuf>,
    /// The node's own program, through which children start; empty inside another program.
    pub(crate) executable: PathBuf,
    /// The log level of Crosstie's own children.
    pub(crate) loglevel: String,
    /// The environment variables with secrets of the configuration.
    pub(crate) secrets: Arc<BTreeSet<String>>,
}

impl Place {
    /// Whether the node has a directory for sockets of its own.
    pub(crate) fn is_private(&self) -> bool {
        self.private.is_some()
    }

    /// The socket of the management realm.
    pub(crate) fn management_socket(&self) -> Option<PathBuf> {
        let private = self.private.as_ref();
        private
            .map(|private| private.join("management.sock"))
            .or_else(|| self.management.clone())
    }
}

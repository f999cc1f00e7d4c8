//! The place of a bench's process: its cores, and its network.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::machine::bind_this_thread;

/// Cores, and a network namespace if it is not the bench's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub cores: Vec<usize>,
    /// The file that represents the namespace.
    pub namespace: Option<PathBuf>,
}

impl Place {
    /// On these cores, in the bench's own network.
    pub(crate) fn on(cores: &[usize]) -> Self {
        Self {
            cores: cores.to_vec(),
            namespace: None,
        }
    }

    /// Moves the calling thread there; threads and processes that it starts inherit this.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if let Some(path) = &self.namespace {
            let at = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            let file = File::open(path).map_err(at)?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| at(error.into()))?;
        }
        bind_this_thread(&self.cores)
    }
}

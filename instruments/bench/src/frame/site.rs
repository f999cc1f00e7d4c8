//! The place of a run: the machine, its cores, a network, a directory for sockets and nodes.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};

use super::options::Common;
use crate::error::BenchError;
use crate::machine::{Cores, Machine, Placement, allowed_cores, bind_this_thread, process_trees};
use crate::network::Network;
use crate::process::{Place, Stop, directory};

/// The parts common to all rounds of a run.
pub(crate) struct Site {
    pub(crate) machine: Machine,
    /// This program, which is started as worker, as testee and around servers.
    pub(crate) executable: PathBuf,
    /// Holds sockets, node directories and stores.
    pub(crate) directory: tempfile::TempDir,
    /// Between every subject and its clients.
    pub(crate) network: Network,
    pub(crate) allowed: Vec<usize>,
    pub(crate) stop: Stop,
    /// The given processes of a foreign server, and all their descendants.
    pub(crate) pids: Vec<u32>,
    pub(super) progress: ProgressBar,
}

/// One case in one placement, while it is measured.
pub(crate) struct Stage<'a> {
    pub(crate) site: &'a Site,
    pub(crate) cores: Cores,
    /// The round, from 0.
    pub(crate) at: usize,
}

/// The number of server threads and of clients that need cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) server: usize,
    /// With one of them, servers leave it one core.
    pub(crate) clients: usize,
}

impl Site {
    pub(super) fn new(common: &Common, is_watched: bool) -> Result<Self, BenchError> {
        let executable = std::env::current_exe()?;
        let directory = directory::create()?;
        let network = Network::set_up(&common.network, &executable, directory.path())?;
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
        let progress = match is_watched {
            true => ProgressBar::new(0),
            false => ProgressBar::hidden(),
        };
        progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Ok(Self {
            machine: Machine::now(),
            executable,
            directory,
            network,
            allowed: allowed_cores()?,
            stop: common.stop.clone(),
            pids: process_trees(&common.pids),
            progress,
        })
    }

    /// Assigns the cores. The bench itself avoids the core that all others share.
    pub(super) fn stage(
        &self,
        placement: Option<Placement>,
        threads: Threads,
    ) -> Result<Stage<'_>, BenchError> {
        let of = placement.unwrap_or(Placement::Free);
        let cores = of
            .cores(&self.allowed, threads.server, threads.clients)
            .ok_or_else(|| BenchError::Options(format!("{of} needs two cores")))?;
        match self.allowed.last() {
            Some(last) if cores.router == cores.clients && !cores.router.contains(last) => {
                bind_this_thread(&[*last])?;
            }
            _ => bind_this_thread(&self.allowed)?,
        }
        Ok(Stage {
            site: self,
            cores,
            at: 0,
        })
    }

    /// Prints a line above the progress. A closed output is noticed by the tables.
    pub(crate) fn say(&self, text: &str) {
        self.progress.suspend(|| {
            let _ = writeln!(io::stdout(), "{text}");
        });
    }

    /// A progress line, for terminals.
    pub(crate) fn announce(&self, what: String) {
        if io::stderr().is_terminal() {
            self.progress.set_message(what);
        }
    }
}

impl Stage<'_> {
    pub(crate) fn clients(&self) -> Place {
        self.site.network.client_place(&self.cores.clients)
    }

    pub(crate) fn servers(&self) -> Place {
        self.site.network.server_place(&self.cores.router)
    }
}

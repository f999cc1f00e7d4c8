//! The network between a bench's clients and the servers that it measures.

use std::net::Ipv4Addr;
use std::path::Path;

use crate::error::BenchError;
use crate::place::Place;
use crate::target::Endpoint;

/// What can be asked of it.
#[derive(Clone, Debug, Default)]
pub struct NetworkOptions {}

/// The network, set up.
#[derive(Debug)]
pub struct Network {}

impl Network {
    pub fn set_up(
        _options: &NetworkOptions,
        _executable: &Path,
        _directory: &Path,
    ) -> Result<Self, BenchError> {
        Ok(Self {})
    }

    /// What servers bind.
    pub fn server_ip(&self) -> Ipv4Addr {
        Ipv4Addr::LOCALHOST
    }

    /// Where servers run.
    pub fn server_place(&self, cores: &[usize]) -> Place {
        Place::on(cores)
    }

    /// Where clients run.
    pub fn client_place(&self, cores: &[usize]) -> Place {
        Place::on(cores)
    }

    /// What clients connect to in order to reach `server`. Once for each server.
    pub fn reach(&self, server: &Endpoint) -> Result<Endpoint, BenchError> {
        Ok(server.clone())
    }

    /// For tables and the settings in the JSON frame; nothing where it is the plain loopback.
    pub fn description(&self) -> Option<String> {
        None
    }
}

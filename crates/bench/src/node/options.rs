//! What can be asked of `bench node`.

use std::path::PathBuf;

use crate::error::BenchError;
use crate::frame::Common;
use crate::frame::options::require;
use crate::peer::Peer;

/// Everything that can be asked of the bench.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The warm-up is from the first line of the last caller.
    pub common: Common,
    /// Node directories; without any, the two examples.
    pub directories: Vec<PathBuf>,
    /// The example with native components, alone or beside `directories`.
    pub native: bool,
    /// For containers, in place of the interpreter that the node would take.
    pub python: Option<PathBuf>,
    /// Calls between two of a caller's lines, where its configuration does not say.
    pub batch: u64,
    pub peers: Vec<Peer>,
}

impl NodeOptions {
    pub(super) fn check(&self) -> Result<(), BenchError> {
        require(self.batch > 0, "--calls-per-line is at least 1")
    }
}

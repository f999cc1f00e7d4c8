//! This process's limit of descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to the hard limit and returns it. Processes that are started afterwards inherit it. A remaining
/// shortage shows when a connection fails, with its own reason.
pub fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let reached = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    reached.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

//! How many descriptors this process may have open, and that its children may have what it was given.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised; none if there was no limit.
static GIVEN: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the limit as far as it goes without asking anybody: a descriptor each for as many
/// connections. To be called before anything is opened. The soft limit stands where it stands for the
/// sake of programs that use `select`, which a node's children may do: they get it back.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // What is there already will do then.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = GIVEN.set(limit.current);
    }
}

/// The limit that a child is to have, where it is not this process's.
pub(super) fn limit_of_children() -> Option<u64> {
    GIVEN.get().copied().flatten()
}

/// Sets this process's soft limit.
pub(super) fn set_limit(current: u64) {
    let limit = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: Some(current),
        ..limit
    };
    // It was this process's parent's, so it can be its own.
    let _ = setrlimit(Resource::Nofile, limit);
}

//! The descriptor limits of this process and of its children.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised; `None` if there was no limit.
static GIVEN: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard limit: each connection needs a descriptor. To be called before anything is opened.
/// Soft limits are low for programs that use `select`, as a node's children may: they get the original limit.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // On failure the present limit must do.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = GIVEN.set(limit.current);
    }
}

/// Takes over the limit for children from a former process of the node, which has raised its own. To be called before
/// [`raise_descriptor_limit`].
pub(crate) fn inherit_limit_of_children(limit: u64) {
    let _ = GIVEN.set(Some(limit));
}

/// The limit for children, if it differs from this process's.
pub(crate) fn limit_of_children() -> Option<u64> {
    GIVEN.get().copied().flatten()
}

/// Sets this process's soft limit.
pub(super) fn set_limit(current: u64) {
    let limit = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: Some(current),
        ..limit
    };
    // It was the parent's limit, and is therefore valid.
    let _ = setrlimit(Resource::Nofile, limit);
}

//! `crosstie exec-child` and `crosstie child-guard`: the programs through which a node starts its children.

use std::process::ExitCode;

use crosstie_node::process::{CHILD_GUARD, EXEC_CHILD, child_guard, exec_child};

/// Runs the command if it is one of the two.
///
/// They are not among users' commands: without the grammar of all those a child starts in a third of the time, and the
/// guard, which lives as long as its node, is smaller.
pub(crate) fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        EXEC_CHILD => Some(exec_child(&arguments.collect::<Vec<_>>())),
        CHILD_GUARD => Some(child_guard()),
        _ => None,
    }
}

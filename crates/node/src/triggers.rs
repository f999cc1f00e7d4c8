//! Shutdown triggers other than signals: checked after the end of each worker.

use crosstie_config::ShutdownTrigger;

/// The end of a worker that will not be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Error,
    /// Requested by an operator: ends a node only if no workers are left.
    Requested,
    /// A guest's end of any kind: as in Crossbar.io, the node continues.
    Guest,
}

/// The first of the node's triggers that this end fires.
pub(crate) fn fired(
    triggers: &[ShutdownTrigger],
    exit: Exit,
    workers_left: usize,
) -> Option<ShutdownTrigger> {
    if exit == Exit::Guest {
        return None;
    }
    let fires = |trigger: &ShutdownTrigger| match trigger {
        ShutdownTrigger::WorkerExit => exit != Exit::Requested,
        ShutdownTrigger::WorkerExitWithError => exit == Exit::Error,
        ShutdownTrigger::LastWorkerExit => workers_left == 0,
        // This trigger waits for the procedure.
        _ => false,
    };
    triggers.iter().copied().find(fires)
}

/// The configuration's word for it.
pub(crate) fn name(trigger: ShutdownTrigger) -> &'static str {
    match trigger {
        ShutdownTrigger::ShutdownRequested => "shutdown_on_shutdown_requested",
        ShutdownTrigger::WorkerExit => "shutdown_on_worker_exit",
        ShutdownTrigger::WorkerExitWithError => "shutdown_on_worker_exit_with_error",
        ShutdownTrigger::LastWorkerExit => "shutdown_on_last_worker_exit",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_fire_on_their_ends() {
        use Exit::{Error, Guest, Requested, Success};
        use ShutdownTrigger::{LastWorkerExit, ShutdownRequested, WorkerExit, WorkerExitWithError};
        let check = |triggers: &[ShutdownTrigger], exit, left, expected| {
            assert_eq!(
                fired(triggers, exit, left),
                expected,
                "{triggers:?} {exit:?}"
            );
        };
        check(&[WorkerExit], Success, 3, Some(WorkerExit));
        check(&[WorkerExit], Error, 0, Some(WorkerExit));
        check(&[WorkerExit], Requested, 0, None);
        check(&[WorkerExitWithError], Success, 0, None);
        check(&[WorkerExitWithError], Error, 3, Some(WorkerExitWithError));
        check(&[LastWorkerExit], Error, 1, None);
        check(&[LastWorkerExit], Success, 0, Some(LastWorkerExit));
        check(&[LastWorkerExit], Requested, 0, Some(LastWorkerExit));
        check(&[ShutdownRequested], Error, 0, None);
        check(&[WorkerExit], Guest, 1, None);
        check(&[LastWorkerExit], Guest, 0, None);
        check(
            &[LastWorkerExit, WorkerExitWithError],
            Error,
            2,
            Some(WorkerExitWithError),
        );
        check(&[], Error, 0, None);
    }
}

//! Queues: purged and deleted.

use crosstie_client::args;

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::output::Output;

pub(super) static COMMANDS: [Command; 2] = [
    ctl("purge_queue", (1, 1), "<queue>", &[], purge),
    ctl(
        "delete_queue",
        (1, 1),
        "<queue_name>",
        &["if-empty", "if-unused"],
        delete,
    ),
];

fn purge(run: &Run) -> Result<Output, Failure> {
    let (queue, vhost) = (run.argument(0), run.vhost());
    run.announce(&format!("Purging queue '{queue}' in vhost '{vhost}' ..."))?;
    if !run.session.has_vhost(vhost)? {
        return Err(Failure::refused("not_found"));
    }
    let purged = run
        .session
        .call("purge_amqp_queue", Some(vhost), || args![queue, vhost]);
    match purged {
        Ok(_) => Ok(Output::Nothing),
        Err(failure) if failure.is_absent => Err(Failure::refused("not_found")),
        Err(failure) => Err(failure),
    }
}

fn delete(run: &Run) -> Result<Output, Failure> {
    let (queue, vhost) = (run.argument(0), run.vhost());
    let (if_empty, if_unused) = (run.words.has("if-empty"), run.words.has("if-unused"));
    let mut conditions = Vec::new();
    if if_empty {
        conditions.push("if queue is empty ");
    }
    if if_unused {
        conditions.push("if queue is unused ");
    }
    run.announce(&format!(
        "Deleting queue '{queue}' on vhost '{vhost}' {}...",
        conditions.join("and ")
    ))?;
    if !run.session.has_vhost(vhost)? {
        return Err(Failure::usage("Error:\nQueue not found"));
    }
    let deleted = run.session.call("delete_amqp_queue", Some(vhost), || {
        args![queue, vhost, if_empty, if_unused]
    });
    let deleted = deleted.map_err(|failure| match (failure.is_absent, failure.is_invalid) {
        (true, _) => Failure::usage(
            "Error:
Queue not found",
        ),
        // A queue that is in use, or not empty.
        (_, true) => Failure {
            exit_code: Failure::USAGE,
            ..failure
        },
        _ => failure,
    })?;
    Ok(Output::Text(format!(
        "Queue was successfully deleted with {} ready messages",
        deleted["messages"]
    )))
}

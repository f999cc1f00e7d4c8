//! Connections: closed one by one, by vhost, by user, or all.

use std::time::Duration;

use crosstie_client::args;
use serde_json::Value as Json;

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::output::Output;

const ALL: &[&str] = &["global", "limit", "per-connection-delay"];

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 3] = [
    ctl("close_connection", (2, 2), "<connection pid> <explanation>", &[], close),
    ctl("close_all_connections", (1, 1), "<explanation>", ALL, close_all),
    ctl("close_all_user_connections", (2, 2), "<username> <explanation>", &[], close_of_user),
];

fn close(run: &Run) -> Result<Output, Failure> {
    let (process, reason) = (run.argument(0), run.argument(1));
    run.announce(&format!(
        "Closing connection {process}, reason: {reason}..."
    ))?;
    let Some(number) = number(process) else {
        return Err(Failure::refused(&format!(
            "Error:\n{{:invalid_pid_syntax, {process:?}}}"
        )));
    };
    close_number(run, number, reason)?;
    Ok(Output::Nothing)
}

fn close_all(run: &Run) -> Result<Output, Failure> {
    let reason = run.argument(0);
    let vhost = (!run.words.has("global")).then(|| run.vhost());
    match vhost {
        Some(vhost) => run.announce(&format!(
            "Closing all connections in vhost {vhost}, reason: {reason}..."
        ))?,
        None => run.announce(&format!(
            "Closing all connections to node {} (across all vhosts), reason: {reason}...",
            run.session.name()?
        ))?,
    }
    if let Some(vhost) = vhost {
        run.session.check_vhost(vhost)?;
    }
    let limit = run.words.number("limit").filter(|limit| *limit > 0);
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let is_meant = |row: &Json| vhost.is_none_or(|vhost| row["vhost"] == vhost);
    let closed = close_those(run, is_meant, limit, reason)?;
    Ok(Output::Text(format!("Closed {closed} connections")))
}

fn close_of_user(run: &Run) -> Result<Output, Failure> {
    let (user, reason) = (run.argument(0), run.argument(1));
    run.announce(&format!(
        "Closing connections of user {user}, reason: {reason}..."
    ))?;
    close_those(run, |row| row["user"] == user, None, reason)?;
    Ok(Output::Nothing)
}

fn close_those(
    run: &Run,
    is_meant: impl Fn(&Json) -> bool,
    limit: Option<usize>,
    reason: &str,
) -> Result<usize, Failure> {
    let path = "connections?columns=number,user,vhost";
    let mut rows = run.session.list(path)?.unwrap_or_default();
    rows.retain(is_meant);
    rows.truncate(limit.unwrap_or(rows.len()));
    let delay_ms = run.words.number("per-connection-delay");
    let delay_ms = delay_ms.and_then(|ms| u64::try_from(ms).ok());
    for row in &rows {
        if let Some(number) = row["number"].as_u64() {
            close_number(run, number, reason)?;
        }
        std::thread::sleep(Duration::from_millis(delay_ms.unwrap_or(0)));
    }
    Ok(rows.len())
}

/// One that has gone meanwhile is closed.
fn close_number(run: &Run, number: u64, reason: &str) -> Result<(), Failure> {
    let closed = run
        .session
        .call("close_amqp_connection", None, || args![number, reason]);
    match closed {
        Err(failure) if !failure.is_absent => Err(failure),
        _ => Ok(()),
    }
}

/// The number in a connection's pid: `<crosstie@node-1.1.7.0>`.
fn number(process: &str) -> Option<u64> {
    let inner = process.strip_prefix('<')?.strip_suffix('>')?;
    let mut parts = inner.rsplit('.');
    let (channel, number, _) = (parts.next()?, parts.next()?, parts.next()?);
    (channel == "0").then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_numbers() {
        for (process, expected) in [
            ("<crosstie@node-1.1.7.0>", Some(7)),
            ("<crosstie@a.b.1.70.0>", Some(70)),
            ("<crosstie@node-1.1.7.3>", None),
            ("7", None),
            ("<7>", None),
        ] {
            assert_eq!(number(process), expected, "{process}");
        }
    }
}

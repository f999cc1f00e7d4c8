//! `crosstie reload`: has a running node read its configuration anew, and prints what changes.

use std::process::ExitCode;

use crosstie_client::args;
use serde_json::Value as Json;

use crate::management::Place;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::wait_for;

/// Have a running node read its configuration anew, and apply what has changed.
///
/// Prints the changed keys, each with its effect: at once, on new sessions, or only after a restart. If the file has an
/// error, or a changed key needs a restart, nothing is applied, and the exit code is 1.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print the changes and apply nothing. The exit code is 1 if the reload would fail.
    #[arg(long)]
    dry_run: bool,
    /// Apply the changes that need no restart, and leave out the others.
    #[arg(long)]
    partial: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let target = arguments.place.target()?;
    let (is_dry, is_partial) = (arguments.dry_run, arguments.partial);
    wait_for(async {
        let realm = ManagementRealm::join(&target, None).await?;
        let answer = realm
            .call_for_long("crossbar.reload", args![is_dry, is_partial])
            .await;
        realm.leave().await;
        match answer {
            Ok(told) if arguments.json => {
                say!("{told}")?;
                Ok(exit_code(&told, is_partial))
            }
            Ok(told) => {
                say!("{}", text(&told, is_dry, is_partial))?;
                Ok(exit_code(&told, is_partial))
            }
            Err(refused) => Refused::told(refused),
        }
    })
}

fn exit_code(told: &Json, is_partial: bool) -> ExitCode {
    let is_empty = |key: &str| told[key].as_array().is_none_or(Vec::is_empty);
    match is_empty("troubles") && (is_partial || is_empty("needs_restart")) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// A line for each change, and one for the outcome.
fn text(told: &Json, is_dry: bool, is_partial: bool) -> String {
    let rows = |key: &str| told[key].as_array().cloned().unwrap_or_default();
    let (changes, restarts) = (rows("changes"), rows("needs_restart").len());
    let mut lines: Vec<String> = changes.iter().map(line).collect();
    lines.extend(
        rows("troubles")
            .iter()
            .map(|trouble| match trouble.as_str() {
                Some(trouble) => format!("not applied: {trouble}"),
                None => String::new(),
            }),
    );
    let applied = changes.len() - restarts;
    lines.push(match (is_dry, restarts) {
        _ if changes.is_empty() => match told["certificates"].as_u64() {
            None | Some(0) => "No key has changed".to_owned(),
            Some(count) => {
                format!("No key has changed; listeners whose certificates were read again: {count}")
            }
        },
        (true, 0) => format!("A reload would apply them; changes: {applied}"),
        (true, _) if is_partial => {
            format!("A partial reload would apply {applied}, and leave out {restarts}")
        }
        (true, _) => format!(
            "A reload would fail: {restarts} of {} need a restart; --partial applies the others",
            changes.len()
        ),
        (false, 0) => format!("Reloaded; changes: {applied}"),
        (false, _) => format!("Reloaded in part; changes: {applied}, left out: {restarts}"),
    });
    lines.join("\n")
}

/// `changed workers[worker1].options.threads from 2 to 4: needs a restart`.
fn line(change: &Json) -> String {
    let word = |key: &str| change[key].as_str();
    let effect = match word("effect") {
        Some("at_once") => "at once",
        Some("new_sessions") => "new sessions",
        _ => "needs a restart",
    };
    let value = |key: &str| word(key).map_or_else(String::new, |value| format!(" {key} {value}"));
    let (kind, key) = (word("change"), word("key"));
    format!(
        "{} {}{}{}: {effect}",
        kind.unwrap_or_default(),
        key.unwrap_or_default(),
        value("from"),
        value("to")
    )
}

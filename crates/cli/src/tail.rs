//! `crosstie tail`: the log of a running node.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use crosstie_client::args;
use crosstie_terminal::output::print_line;

use crate::list::printable;
use crate::management::Place;
use crate::queues::realm::{ManagementRealm, Refused};
use crate::wait_for;

/// Print the last lines of a running node's log, and then each new one.
///
/// The node keeps 1,000 lines and 256 KiB, each line up to 4 KiB. `crosstie log-level debug --for 10m` makes it log more.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Lines to begin with.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(..=1_000))]
    lines: u16,
    /// Only lines that contain this text.
    #[arg(long, value_name = "TEXT")]
    containing: Option<String>,
    /// End after the lines that are there.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    place: Place,
}

/// Lines of an answer.
const PART: u64 = 500;

/// A new line is seen within this time.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    wait_for(async {
        let realm = ManagementRealm::join(&arguments.place.target()?, None).await?;
        let told = follow(&realm, arguments).await;
        realm.leave().await;
        match told? {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(refused) => refused.told(),
        }
    })
}

async fn follow(
    realm: &ManagementRealm,
    arguments: &Arguments,
) -> anyhow::Result<Result<(), Refused>> {
    let escapes = std::io::stdout().is_terminal();
    // Without lines to begin with, the last one that is there is the place to begin behind.
    let (mut after, mut limit) = (None, u64::from(arguments.lines.max(1)));
    let mut is_shown = arguments.lines > 0;
    loop {
        let lines = match realm.call("crossbar.get_log", args![after, limit]).await {
            Ok(lines) => lines,
            Err(refused) => return Ok(Err(refused)),
        };
        let lines = lines.as_array().map_or(&[][..], Vec::as_slice);
        for line in lines {
            let number = line["number"].as_u64().unwrap_or_default();
            if let Some(missing) = missing(after, number) {
                complain!("crosstie: {missing} lines are missing here: the node keeps no more");
            }
            after = Some(number);
            if !is_shown {
                continue;
            }
            let text = line["text"].as_str().unwrap_or_default();
            let is_meant = |part: &String| text.contains(part.as_str());
            if !arguments.containing.as_ref().is_none_or(is_meant) {
                continue;
            }
            let is_open = match escapes {
                true => print_line(&printable(text))?,
                false => print_line(text)?,
            };
            if !is_open {
                return Ok(Ok(()));
            }
        }
        if arguments.once {
            return Ok(Ok(()));
        }
        // A node that has logged nothing yet begins with line 1.
        after.get_or_insert(0);
        (limit, is_shown) = (PART, true);
        if lines.len() < PART as usize {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    }
}

/// The number of lines between two.
fn missing(last: Option<u64>, next: u64) -> Option<u64> {
    let missing = next.checked_sub(last? + 1)?;
    (missing > 0).then_some(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_lines_are_counted() {
        assert_eq!(missing(None, 7), None);
        assert_eq!(missing(Some(6), 7), None);
        assert_eq!(missing(Some(0), 7), Some(6));
        // Another node, or one that has restarted.
        assert_eq!(missing(Some(9), 7), None);
    }
}

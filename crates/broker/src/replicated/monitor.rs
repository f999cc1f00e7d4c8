//! Checks whether NATS servers sync acknowledged writes to disk at once, which limits the loss in a power failure.
//!
//! The majority of the servers that answer decides. A server that does not answer is no reason to wait: it may be the
//! one that ended with the owner's machine. An error, or a page that does not show the setting, is no answer either.

use std::time::Duration;

use crosstie_front::http_client::Outgoing;
use serde_json::Value as Json;
use tokio::task::JoinSet;

/// Maximum wait for the servers' answers.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum size of an answer, which lists no streams.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// The servers' answers so far.
#[derive(Debug, Default)]
struct Answers {
    asked: usize,
    syncing: usize,
    /// Servers that do not sync, each with its fault.
    faulty: Vec<String>,
    /// Servers without an answer, each with the reason.
    silent: Vec<String>,
}

impl Answers {
    /// Whether further answers cannot change the verdict.
    fn is_decided(&self) -> bool {
        self.syncing > self.asked / 2
    }

    /// Whether the vhost may be claimed: a warning to log, if any, or the obstacle.
    fn verdict(self) -> Result<Option<String>, String> {
        if self.faulty.len() > self.syncing {
            return Err(self.faulty.join("; "));
        }
        if !self.faulty.is_empty() {
            return Ok(Some(self.faulty.join("; ")));
        }
        if self.syncing == 0 {
            let why = self.silent.join("; ");
            return Ok(Some(format!(
                "no `monitor` answers, so that sync_interval was not checked: {why}"
            )));
        }
        Ok(None)
    }
}

/// Asks all servers at once. Returns a warning to log, if any; an error if the vhost shall not be claimed.
pub(super) async fn check(
    asking: &Outgoing,
    monitors: &[String],
) -> Result<Option<String>, String> {
    if monitors.is_empty() {
        return Ok(None);
    }
    let mut answers = Answers {
        asked: monitors.len(),
        ..Answers::default()
    };
    let mut pending = JoinSet::new();
    for monitor in monitors {
        let url = format!("{}/jsz", monitor.trim_end_matches('/'));
        let asking = asking.clone();
        pending.spawn(async move {
            let answer = asking.get(&url, "application/json", TIMEOUT, ANSWER_BYTES_MAX);
            (answer.await, url)
        });
    }
    while let Some(answered) = pending.join_next().await {
        match answered {
            Ok((Ok(answer), url)) => match judge(&answer.body) {
                Judged::Syncs => answers.syncing += 1,
                Judged::Faulty(why) => answers.faulty.push(format!("{url}: {why}")),
                Judged::Unknown(why) => answers.silent.push(format!("{url}: {why}")),
            },
            Ok((Err(why), url)) => answers.silent.push(format!("{url}: {why}")),
            Err(why) => answers.silent.push(why.to_string()),
        }
        if answers.is_decided() {
            break;
        }
    }
    answers.verdict()
}

/// The content of one answer.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Syncs,
    Faulty(&'static str),
    /// It does not show the setting, with the reason.
    Unknown(&'static str),
}

fn judge(body: &[u8]) -> Judged {
    let Ok(json) = serde_json::from_slice::<Json>(body) else {
        return Judged::Unknown("the answer is not JSON");
    };
    let config = &json["config"];
    match config["sync_always"].as_bool() {
        Some(true) => Judged::Syncs,
        // Such a server stores nothing, and so acknowledges nothing.
        _ if !config.is_object() => Judged::Unknown("the server has no JetStream"),
        _ => Judged::Faulty(
            "the server acknowledges what is not on its disk yet: \
             sync_interval must be \"always\"",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_for_the_sync_setting() {
        for (text, expected) in [
            (
                r#"{"config": {"sync_always": true, "sync_interval": 1}}"#,
                "syncs",
            ),
            (
                r#"{"config": {"sync_always": true}, "streams": 0}"#,
                "syncs",
            ),
            (r#"{"config": {"sync_interval": 120000000000}}"#, "faulty"),
            (r#"{"config": {"sync_always": false}}"#, "faulty"),
            (r#"{"disabled": true}"#, "unknown"),
            ("[]", "unknown"),
            ("nothing", "unknown"),
            ("", "unknown"),
        ] {
            let judged = match judge(text.as_bytes()) {
                Judged::Syncs => "syncs",
                Judged::Faulty(_) => "faulty",
                Judged::Unknown(_) => "unknown",
            };
            assert_eq!(judged, expected, "{text}");
        }
    }

    /// A letter for each of three servers: `s` syncs, `f` has a fault, `-` does not answer.
    #[test]
    fn the_majority_of_the_answers_decides() {
        for (servers, is_decided, expected) in [
            ("sss", true, "claim"),
            ("ss-", true, "claim"),
            ("s--", false, "claim"),
            ("ssf", true, "warn"),
            ("sf-", false, "warn"),
            ("sff", false, "refuse"),
            ("f--", false, "refuse"),
            ("fff", false, "refuse"),
            ("---", false, "warn"),
        ] {
            let mut answers = Answers {
                asked: servers.len(),
                ..Answers::default()
            };
            for server in servers.chars() {
                match server {
                    's' => answers.syncing += 1,
                    'f' => answers.faulty.push("fault".to_owned()),
                    _ => answers.silent.push("silent".to_owned()),
                }
            }
            assert_eq!(answers.is_decided(), is_decided, "{servers}");
            let found = match answers.verdict() {
                Ok(None) => "claim",
                Ok(Some(_)) => "warn",
                Err(_) => "refuse",
            };
            assert_eq!(found, expected, "{servers}");
        }
    }
}

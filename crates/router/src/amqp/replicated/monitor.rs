//! Checks whether NATS servers sync acknowledged writes to disk at once, which limits the loss in a power failure.

use std::time::Duration;

use serde_json::Value as Json;

use crate::outgoing::Outgoing;

const TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum size of an answer, which lists no streams.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Asks each server. The error names a server that does not sync, or did not answer.
pub(super) async fn check(asking: &Outgoing, monitors: &[String]) -> Result<(), String> {
    for monitor in monitors {
        let url = format!("{}/jsz", monitor.trim_end_matches('/'));
        let answer = asking
            .get(&url, "application/json", TIMEOUT, ANSWER_BYTES_MAX)
            .await;
        let answer = answer.map_err(|why| format!("{url}: {why}"))?;
        judge(&answer.body).map_err(|why| format!("{url}: {why}"))?;
    }
    Ok(())
}

fn judge(body: &[u8]) -> Result<(), &'static str> {
    let json: Json = serde_json::from_slice(body).map_err(|_| "the answer is not JSON")?;
    let config = &json["config"];
    match config["sync_always"].as_bool() {
        Some(true) => Ok(()),
        _ if !config.is_object() => Err("the server has no JetStream"),
        _ => Err("the server acknowledges what is not on its disk yet: \
             sync_interval must be \"always\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_for_the_sync_setting() {
        let judged = |text: &str| judge(text.as_bytes()).is_ok();
        assert!(judged(
            r#"{"config": {"sync_always": true, "sync_interval": 1}}"#
        ));
        assert!(!judged(r#"{"config": {"sync_interval": 120000000000}}"#));
        assert!(!judged(r#"{"config": {"sync_always": false}}"#));
        assert!(!judged(r#"{"disabled": true}"#) && !judged("nothing"));
    }
}

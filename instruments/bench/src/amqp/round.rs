//! The figures of one round of `bench amqp`.

use super::worker::Finding;
use crate::figures::Figures;
use crate::machine::Used;

pub(super) fn figures(finding: &Finding, seconds: f64, used: &Used) -> Result<Figures, String> {
    if let Some(why) = finding.faults.describe() {
        return Err(why);
    }
    let messages = finding.traffic.messages;
    if messages == 0 {
        return Err("no message in time".to_owned());
    }
    let per_s = messages as f64 / seconds;
    let (p50, p99) = finding.confirm_us.unzip();
    Ok(Figures::new()
        .with_known("confirm_p50_us", p50.map(|us| us as f64))
        .with_known("confirm_p99_us", p99.map(|us| us as f64))
        .with("messages", messages as f64)
        .with("published", finding.published as f64)
        .with("messages_per_s", per_s)
        .with("messages_per_read", finding.traffic.messages_per_read())
        .with_usage("broker", "message", used, per_s))
}

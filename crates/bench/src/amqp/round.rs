//! What one round of `bench amqp` found, as figures.

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
    let per_message = |ns| used.us_per_operation(ns, per_s);
    let (p50, p99) = finding.confirm_us.unzip();
    Ok(Figures::new()
        .with_known("confirm_p50_us", p50.map(|us| us as f64))
        .with_known("confirm_p99_us", p99.map(|us| us as f64))
        .with("messages", messages as f64)
        .with("published", finding.published as f64)
        .with("messages_per_s", per_s)
        .with("messages_per_read", finding.traffic.messages_per_read())
        .with_known(
            "broker_cpu_us_per_message",
            used.subject_ns.map(per_message),
        )
        .with_known(
            "broker_busy_cores",
            used.subject_ns.map(|ns| used.cores(ns)),
        )
        .with("driver_cpu_us_per_message", per_message(used.drivers_ns))
        .with("driver_busy_cores", used.cores(used.drivers_ns))
        .with("foreign_busy_cores", used.cores(used.others_ns)))
}

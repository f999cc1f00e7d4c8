//! Procedures of router workers with AMQP: bounds and alarms by an operator's order, which no configuration keeps.

use crosstie_router::amqp::{Operators, Resource};
use serde_json::json;
use tracing::info;

use super::amqp::amqp;
use super::{Deferred, Procedure, later, now};
use crate::management::errors::{self, Refusal};
use crate::management::request::{Answer, Call, Reply};
use crate::node::Node;
use crate::workers::host_monitor::total_memory_bytes;

pub(super) static PROCEDURES: [Procedure; 4] = [
    later("crossbar.worker..set_amqp_bound", set_bound),
    now("crossbar.worker..set_amqp_alarm", set_alarm),
    now("crossbar.worker..set_amqp_channels_max", set_channels_max),
    now("crossbar.worker..get_amqp_channels_max", channels_max),
];

/// Answers when publishers are blocked or free by the bound.
fn set_bound(node: &mut Node, call: &Call, reply: Reply) -> Deferred {
    let asked = || Ok((amqp(node, call)?, resource(call)?, bytes(call)?));
    let (operators, resource, bytes) = match asked() {
        Ok(asked) => asked,
        Err(error) => return Err((reply, error)),
    };
    info!(
        "Router '{}': an operator set the bound of {} to {bytes} bytes",
        call.worker,
        resource.name()
    );
    let answer = move || {
        // The caller may have gone.
        let _ = reply.send(Ok(json!({"resource": resource.name(), "bytes": bytes})));
    };
    match resource {
        Resource::Memory => {
            operators.order_memory_bytes_max(usize::try_from(bytes).unwrap_or(usize::MAX));
            answer();
        }
        Resource::Disk => operators.order_disk_free_bytes_min(bytes, answer),
    }
    Ok(())
}

fn set_alarm(node: &mut Node, call: &Call) -> Answer {
    let operators = amqp(node, call)?;
    let resource = resource(call)?;
    let is_raised: bool = call.required(1, "is_raised")?;
    operators.order_alarm(resource, is_raised);
    let (worker, name) = (&call.worker, resource.name());
    match is_raised {
        true => info!("Router '{worker}': an operator raised the alarm of {name}"),
        false => info!("Router '{worker}': an operator withdrew the alarm of {name}"),
    }
    Ok(json!({"resource": name, "is_raised": is_raised}))
}

fn set_channels_max(node: &mut Node, call: &Call) -> Answer {
    let operators = amqp(node, call)?;
    let channels_max: u16 = call.required(0, "channels_max")?;
    operators.order_channels_max(channels_max);
    let worker = &call.worker;
    info!("Router '{worker}': an operator set the bound of channels to {channels_max}");
    channels_max_of(&operators)
}

fn channels_max(node: &mut Node, call: &Call) -> Answer {
    channels_max_of(&amqp(node, call)?)
}

fn channels_max_of(operators: &Operators) -> Answer {
    Ok(json!({"channels_max": operators.channels_max()}))
}

fn resource(call: &Call) -> Result<Resource, Refusal> {
    let name: String = call.required(0, "resource")?;
    Resource::named(&name).ok_or_else(|| {
        let text = format!("argument 0, 'resource': expected memory or disk, got '{name}'");
        errors::invalid_argument(&text)
    })
}

/// Bytes, or a part of the machine's memory.
fn bytes(call: &Call) -> Result<u64, Refusal> {
    let amount: f64 = call.required(1, "amount")?;
    let unit: Option<String> = call.optional(2, "unit")?;
    let bytes = match unit.as_deref() {
        None | Some("bytes") => Some(amount),
        Some("ram") => {
            let total = total_memory_bytes();
            let total = total.ok_or_else(|| errors::not_supported("/proc/meminfo has no total"))?;
            Some(total as f64 * amount)
        }
        Some(_) => None,
    };
    // Larger ones are rounded, which nobody can tell from their exact size.
    let bytes = bytes.filter(|bytes| (0.0..9e18).contains(bytes));
    bytes.map(|bytes| bytes as u64).ok_or_else(|| {
        let text =
            "arguments 1 and 2, 'amount' and 'unit': expected a number from 0 on, of bytes or ram";
        errors::invalid_argument(text)
    })
}

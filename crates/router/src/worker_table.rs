//! The workers of the node, on the status page and in `/health`.

use std::fmt::Write as _;

use crosstie_front::markup::escaped;
use crosstie_site::overview::WorkerOverview;

/// A table of the workers and their components; empty without any.
pub(crate) fn table(workers: &[WorkerOverview]) -> String {
    if workers.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for worker in workers {
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td>{}",
            escaped(&worker.id),
            worker.kind,
            escaped(&worker.status)
        );
        for component in &worker.components {
            let reason = component.reason.as_deref();
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            let _ = write!(
                rows,
                "<tr><td>{}<td>component {}<td>{}{}",
                escaped(&worker.id),
                escaped(&component.id),
                component.state,
                escaped(&reason)
            );
        }
    }
    format!("<h2>Workers</h2><div><table><tr><th>worker<th>type<th>status{rows}</table></div>")
}

/// One line for each fault of workers and components.
pub(crate) fn troubles(workers: &[WorkerOverview]) -> String {
    let mut lines = String::new();
    for trouble in workers.iter().flat_map(WorkerOverview::troubles) {
        // An exception's text may have several lines.
        let words: Vec<&str> = trouble.split_whitespace().collect();
        let _ = writeln!(lines, "{}", words.join(" "));
    }
    lines
}

//! The report of a check, as text and as JSON.

use std::path::Path;

use crosstie_store::{Checked, CheckedQueue, CheckedVhost};
use serde_json::{Value as Json, json};

use crate::list::table;
use crate::list::{Column, Show, column};

const COLUMNS: [Column; 6] = [
    column("vhost", Show::Text("vhost")),
    column("queue", Show::Text("queue")),
    column("whole", Show::Number("whole")),
    column("damaged", Show::Number("damaged")),
    column("missing", Show::Number("missing")),
    column("acknowledgements", Show::Number("unread_acknowledgements")),
];

pub(super) fn text(path: &Path, checked: &Checked) -> String {
    let mut lines = Vec::new();
    let rows: Vec<_> = rows(checked).collect();
    if !rows.is_empty() {
        // The last column only if it says something.
        let has_acknowledgements = checked.queues().any(|queue| queue.acknowledgements > 0);
        let columns = COLUMNS.len() - usize::from(!has_acknowledgements);
        lines.push(table(&COLUMNS[..columns], &rows));
        lines.push(String::new());
    }
    for fault in &checked.faults {
        let is_loss = if fault.is_loss {
            ""
        } else {
            " (nothing is lost by it)"
        };
        lines.push(format!("{}: {}{is_loss}", fault.file, fault.what));
    }
    if checked.idle_records > 0 {
        let records = match checked.idle_records {
            1 => "1 damaged record belongs".to_owned(),
            count => format!("{count} damaged records belong"),
        };
        lines.push(format!(
            "{records} to messages that are gone: nothing needs it any more"
        ));
    }
    let what = match checked.is_backup {
        true => format!("a backup of {}", counted(checked.records, "record")),
        false => format!(
            "a store of {} with {}",
            counted(checked.segments, "segment"),
            counted(checked.records, "record")
        ),
    };
    let verdict = verdict(checked);
    lines.push(format!("{}: {what}: {verdict}", path.display()));
    lines.join("\n")
}

fn verdict(checked: &Checked) -> String {
    let whole = counted(checked.whole(), "message");
    let mut lost = Vec::new();
    if checked.lost() > 0 {
        let messages = counted(checked.lost(), "confirmed message");
        lost.push(format!("{messages} damaged or missing"));
    }
    if checked.unknown_records > 0 {
        lost.push(format!("up to {} more missing", checked.unknown_records));
    }
    if checked.lost_declarations > 0 {
        let declarations = counted(checked.lost_declarations, "declaration");
        lost.push(format!("{declarations} missing"));
    }
    match (checked.is_whole(), lost.is_empty()) {
        (true, _) => format!("all is whole, {whole}"),
        (false, true) => format!("{whole} whole, and no confirmed message is lost"),
        (false, false) => format!("{}, {whole} whole", lost.join(", ")),
    }
}

pub(super) fn json(checked: &Checked) -> Json {
    let vhosts = checked.vhosts.iter().map(|vhost| {
        json!({
            "name": vhost.name.as_deref(),
            "exchanges": vhost.exchanges,
            "bindings": vhost.bindings,
            "queues": vhost.queues.iter().map(queue).collect::<Vec<_>>(),
        })
    });
    let faults = checked
        .faults
        .iter()
        .map(|fault| json!({"file": fault.file, "what": fault.what, "is_loss": fault.is_loss}));
    json!({
        "is_whole": checked.is_whole(),
        "is_backup": checked.is_backup,
        "segments": checked.segments,
        "records": checked.records,
        "messages": checked.whole(),
        "lost_messages": checked.lost(),
        "unknown_records": checked.unknown_records,
        "lost_declarations": checked.lost_declarations,
        "idle_records": checked.idle_records,
        "vhosts": vhosts.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
    })
}

fn queue(queue: &CheckedQueue) -> Json {
    json!({
        "name": queue.name.as_deref(),
        "number": queue.number,
        "whole": queue.whole,
        "damaged": queue.damaged,
        "missing": queue.missing,
        "unread_acknowledgements": queue.acknowledgements,
    })
}

fn rows(checked: &Checked) -> impl Iterator<Item = Json> {
    checked.vhosts.iter().flat_map(|vhost| {
        let of = vhost_text(vhost);
        vhost.queues.iter().map(move |found| {
            let mut row = queue(found);
            row["vhost"] = of.clone().into();
            row["queue"] = match &found.name {
                Some(name) => name.to_string().into(),
                None => format!("(number {})", found.number).into(),
            };
            row
        })
    })
}

fn vhost_text(vhost: &CheckedVhost) -> String {
    match &vhost.name {
        Some(name) => name.to_string(),
        None => "(not known)".to_owned(),
    }
}

pub(super) fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use crosstie_store::FileFault;

    use super::*;

    #[test]
    fn a_report_names_queues_and_counts_what_is_lost() {
        let queue = |number, name: Option<&str>, whole, damaged| CheckedQueue {
            number,
            name: name.map(Into::into),
            whole,
            damaged,
            missing: 0,
            acknowledgements: 0,
        };
        let mut checked = Checked {
            segments: 1,
            records: 9,
            vhosts: vec![CheckedVhost {
                name: Some("/".into()),
                exchanges: 0,
                bindings: 0,
                queues: vec![queue(1, Some("orders"), 4, 0)],
            }],
            ..Checked::default()
        };
        let path = Path::new("a.store");
        let said = text(path, &checked);
        assert!(
            said.ends_with(
                "\n\na.store: a store of 1 segment with 9 records: all is whole, 4 messages"
            ),
            "{said}"
        );
        checked.vhosts[0].queues.push(queue(7, None, 1, 1));
        checked.unknown_records = 3;
        for is_loss in [true, false] {
            checked.faults.push(FileFault {
                file: "head".to_owned(),
                what: "it is not right".to_owned(),
                is_loss,
            });
        }
        let said = text(path, &checked);
        assert!(said.contains("(number 7)"), "{said}");
        assert!(
            said.contains("head: it is not right\nhead: it is not right (nothing is lost by it)\n"),
            "{said}"
        );
        assert!(
            said.ends_with(
                ": 1 confirmed message damaged or missing, up to 3 more missing, 5 messages whole"
            ),
            "{said}"
        );
        assert_eq!(json(&checked)["vhosts"][0]["queues"][1]["damaged"], 1);
        assert_eq!(json(&checked)["is_whole"], false);
    }
}

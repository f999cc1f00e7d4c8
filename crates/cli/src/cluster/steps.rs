//! The steps that an operator takes after a change of the files: what to copy to which machine, and what to reload.

use super::change::Change;
use super::directory::Directory;
use super::files::node_config;
use super::names::{AUTHORITIES, CERTIFICATE, KEY, SERVER_CONFIG, in_folder};
use super::plan::{Node, Plan};
use super::server::Server;

/// The last step, which this program takes: its words, and the reason.
pub(super) type Last = (String, &'static str);

/// Prints the changed files, and the steps in their order.
pub(super) fn say(
    directory: &Directory,
    change: &Change,
    last: Option<Last>,
) -> anyhow::Result<()> {
    say!("Written in {}:", directory.path.display())?;
    for (new, word) in [(true, "new"), (false, "changed")] {
        for path in change.paths(new) {
            say!("    {path} ({word})")?;
        }
    }
    say!("Next, in this order:")?;
    let steps = steps(&directory.record.plan, change, last);
    for (place, step) in steps.iter().enumerate() {
        say!("{:2}. {step}", place + 1)?;
    }
    say!("A reload is done when the server's log says \"Reloaded server configuration\".")?;
    for note in notes(directory, change) {
        complain!("note: {note}");
    }
    Ok(())
}

fn steps(before: &Plan, change: &Change, last: Option<Last>) -> Vec<String> {
    let mut steps = of_leaving_nodes(before, &change.record.plan);
    steps.extend(of_servers(before, change));
    steps.extend(of_new_nodes(before, &change.record.plan));
    steps.extend(of_nodes(before, change));
    steps.extend(last.map(|(command, why)| format!("{command}: {why}")));
    steps
}

/// The servers close the connections of a node whose keys they no longer know.
fn of_leaving_nodes(before: &Plan, plan: &Plan) -> Vec<String> {
    let leaving = before
        .nodes
        .iter()
        .filter(|node| !node.is_among(&plan.nodes));
    let moved = match plan.vhosts.is_empty() {
        true => "",
        false => "crosstie amqp move its vhosts, and ",
    };
    let steps = leaving.map(|node| format!("{}: if it runs, {moved}stop it", node.name));
    steps.collect()
}

/// First those that run, then the new ones.
fn of_servers(before: &Plan, change: &Change) -> Vec<String> {
    let was_there = |server: &&Server| before.servers.iter().any(|was| was.name == server.name);
    let servers = &change.record.plan.servers;
    let changed = servers.iter().filter(was_there).filter_map(|server| {
        let Server { name, host, .. } = server;
        let files = [SERVER_CONFIG, AUTHORITIES, CERTIFICATE, KEY];
        let changed = files.iter().filter(|file| is_changed(change, name, file));
        let changed = changed.copied().collect::<Vec<_>>().join(", ");
        (!changed.is_empty()).then(|| {
            format!("{name} at {host}: replace {changed}; reload: nats-server --signal reload")
        })
    });
    let new = servers.iter().filter(|server| !was_there(server));
    let new = new.map(|Server { name, host, .. }| {
        format!("{name} at {host}: copy {name}; start there: nats-server -c nats.conf")
    });
    changed.chain(new).collect()
}

fn of_new_nodes(before: &Plan, plan: &Plan) -> Vec<String> {
    let new = plan
        .nodes
        .iter()
        .filter(|node| !node.is_among(&before.nodes));
    let steps = new.map(|Node { name, .. }| match plan.config {
        Some(_) => {
            format!("{name}: copy {name} to its machine; start: crosstie start --cbdir {name}")
        }
        None => format!(
            "{name}: put fabric.json into the node's configuration, and the keys beside it; start the node"
        ),
    });
    steps.collect()
}

/// Those that have new keys, and those that are restarted.
fn of_nodes(before: &Plan, change: &Change) -> Vec<String> {
    let plan = &change.record.plan;
    let config = node_config(plan);
    let stay = plan
        .nodes
        .iter()
        .filter(|node| node.is_among(&before.nodes));
    let names: Vec<_> = stay.map(|node| &*node.name).collect();
    let mut steps = Vec::new();
    let of_node = |path: &&str| {
        let folder_and_file = path.split_once('/');
        folder_and_file.is_some_and(|(folder, file)| names.contains(&folder) && file != config)
    };
    let replaced: Vec<_> = change.paths(false).filter(of_node).collect();
    if !replaced.is_empty() {
        steps.push(format!(
            "Each node: replace {}. A node reads them at its next connection to NATS, without a restart",
            replaced.join(", ")
        ));
    }
    let restarted = names.iter().copied();
    let restarted: Vec<_> = restarted
        .filter(|name| is_changed(change, name, config))
        .collect();
    if !restarted.is_empty() {
        let moved = match plan.vhosts.is_empty() {
            true => "",
            false => "if the node owns a vhost, crosstie amqp move it; ",
        };
        let put = match plan.config {
            Some(_) => "replace its config.json",
            None => "put the changes of its fabric.json into its configuration",
        };
        steps.push(format!(
            "One node after the other ({}): {moved}{put}; restart the node; wait until `crosstie cluster status` sees it",
            restarted.join(", ")
        ));
    }
    steps
}

fn is_changed(change: &Change, folder: &str, file: &str) -> bool {
    let path = in_folder(folder, file);
    change.paths(false).any(|changed| changed == path)
}

/// What the operator may not expect.
fn notes(directory: &Directory, change: &Change) -> Vec<String> {
    let (before, plan) = (&directory.record.plan, &change.record.plan);
    let mut notes = Vec::new();
    let count = plan.servers.len();
    if plan.has_streams() && count != before.servers.len() && count.is_multiple_of(2) {
        notes.push(format!(
            "{count} servers tolerate the loss of {}, as {} do: their majority is {}",
            (count - 1) / 2,
            count - 1,
            count / 2 + 1
        ));
    }
    let config = node_config(plan);
    let path = |name: &str| in_folder(name, config);
    let new = plan.nodes.iter().map(|node| path(&node.name));
    let new: Vec<_> = new
        .filter(|path| !directory.record.written.contains_key(path))
        .collect();
    let edited = before.nodes.iter().map(|node| path(&node.name));
    let edited: Vec<_> = edited.filter(|path| change.edited.contains(path)).collect();
    if let ([first, ..], [_, ..]) = (&edited[..], &new[..]) {
        notes.push(format!(
            "{first} was edited since it was written; {} has none of these edits",
            new.join(", ")
        ));
    }
    notes
}

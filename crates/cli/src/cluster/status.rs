//! `crosstie cluster status`: the state of the realms of several nodes, from each node's view.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value as Json, json};

use super::pages::{Pages, Sample};
use crate::list::table;
use crate::list::{Column, Show, column};

/// Show how nodes see the others of their realms. Exits with 1 on a fault.
///
/// Reads the pages /metrics and /health, which a transport serves with "pages".
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// URLs of the nodes' pages.
    #[arg(value_name = "HTTP://HOST:PORT", required = true)]
    nodes: Vec<Pages>,
}

/// A realm on a node, by the names of metrics without `crosstie_fabric_`.
type Realm = BTreeMap<&'static str, u64>;

/// The name of a metric, the required label of its samples, and its name here.
const METRICS: &[(&str, &str, &str, &str)] = &[
    ("attached", "", "", "attached"),
    ("neighbours", "state", "active", "neighbours"),
    ("neighbours", "state", "suspected", "suspected"),
    ("pairs", "", "", "pairs"),
    ("registrations", "", "", "registrations"),
    ("calls", "", "", "calls"),
    ("pair_resets_total", "", "", "resets"),
    ("frames_refused_total", "", "", "refused"),
    ("denials_total", "", "", "denied"),
];

const COLUMNS: &[Column] = &[
    column("node", Show::Text("node")),
    column("worker", Show::Text("worker")),
    column("realm", Show::Text("realm")),
    column("NATS", Show::Text("nats")),
    column("neighbours", Show::Number("neighbours")),
    column("suspected", Show::Number("suspected")),
    column("pairs", Show::Number("pairs")),
    column("their registrations", Show::Number("registrations")),
    column("open calls", Show::Number("calls")),
    column("pair resets", Show::Number("resets")),
    column("frames refused", Show::Number("refused")),
    column("denied by NATS", Show::Number("denied")),
];

/// The results of all nodes.
#[derive(Default)]
pub(super) struct Found {
    /// By node, worker and realm.
    realms: BTreeMap<(String, String, String), Realm>,
    /// The problems, a line each.
    problems: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let found = Found::of(&arguments.nodes);
    say!("{}", found.table())?;
    for problem in &found.problems {
        say!("{problem}")?;
    }
    Ok(match found.problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl Found {
    /// Queries all nodes, one after the other.
    pub(super) fn of(nodes: &[Pages]) -> Self {
        let mut found = Self::default();
        for node in nodes {
            if let Err(why) = found.ask(node) {
                found.problems.push(format!("{node}: {why:#}"));
            }
        }
        found.judge();
        found
    }

    pub(super) fn table(&self) -> String {
        table(COLUMNS, &self.rows())
    }

    /// Whether each of the nodes sees exactly the others, and calls work between all of them.
    pub(super) fn is_well(&self) -> bool {
        let others = self.realms.len().saturating_sub(1) as u64;
        let sees = |realm: &Realm| ["neighbours", "pairs"].map(|key| realm.get(key).copied());
        let mut realms = self.realms.values();
        self.problems.is_empty() && realms.all(|realm| sees(realm) == [Some(others); 2])
    }

    fn ask(&mut self, node: &Pages) -> anyhow::Result<()> {
        for ailment in node.ailments()? {
            self.problems.push(format!("{node}: {ailment}"));
        }
        self.add(&node.to_string(), &node.metrics()?);
        Ok(())
    }

    fn add(&mut self, node: &str, samples: &[Sample]) {
        let mut has_any = false;
        for sample in samples {
            let Some(name) = sample.name.strip_prefix("crosstie_fabric_") else {
                continue;
            };
            has_any = true;
            let [worker, realm] = ["worker", "realm"].map(|label| sample.label(label).to_owned());
            let realm = self.realms.entry((node.to_owned(), worker, realm));
            let realm = realm.or_default();
            for (metric, label, value, key) in METRICS {
                if name == *metric && (label.is_empty() || sample.label(label) == *value) {
                    *realm.entry(key).or_default() += sample.value as u64;
                }
            }
        }
        if !has_any {
            self.problems
                .push(format!("{node}: it has no realm with a fabric"));
        }
    }

    fn judge(&mut self) {
        let mut nodes: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, _, realm) in self.realms.keys() {
            *nodes.entry(realm).or_default() += 1;
        }
        for ((node, _, name), realm) in &self.realms {
            let at = |key: &str| realm.get(key).copied().unwrap_or_default();
            let others = nodes.get(&**name).map_or(0, |count| count - 1);
            let problems = [
                (at("attached") == 0).then(|| "reaches no server of NATS".to_owned()),
                (at("attached") == 1 && at("neighbours") < others)
                    .then(|| format!("sees {} of {others} other nodes", at("neighbours"))),
                (at("pairs") < at("neighbours"))
                    .then(|| format!("exchanges calls with {} of them", at("pairs"))),
            ];
            let problems = problems.into_iter().flatten();
            let told = problems.map(|problem| format!("{node}: realm '{name}' {problem}"));
            self.problems.extend(told);
        }
    }

    fn rows(&self) -> Vec<Json> {
        let rows = self.realms.iter().map(|((node, worker, name), realm)| {
            let attached = realm.get("attached").copied().unwrap_or_default();
            let nats = if attached == 1 { "attached" } else { "none" };
            let mut row = json!({ "node": node, "worker": worker, "realm": name, "nats": nats });
            for (key, value) in realm {
                row[*key] = json!(value);
            }
            row
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_listed() {
        let mut found = Found::default();
        let sample = |text: &str| Sample::parse(text).expect("it is one");
        let of = |attached: u32, active: u32, pairs: u32| {
            let label = "worker=\"w\",realm=\"r\"";
            [
                format!("crosstie_fabric_attached{{{label}}} {attached}"),
                format!("crosstie_fabric_neighbours{{{label},state=\"active\"}} {active}"),
                format!("crosstie_fabric_pairs{{{label}}} {pairs}"),
                format!("crosstie_fabric_pair_resets_total{{{label},cause=\"gap\"}} 1"),
                format!("crosstie_fabric_pair_resets_total{{{label},cause=\"tail\"}} 2"),
            ]
            .map(|line| sample(&line))
        };
        found.add("a:1", &of(1, 2, 2));
        found.add("b:1", &of(1, 1, 0));
        found.add("c:1", &of(0, 0, 0));
        found.add("d:1", &[sample("up 1")]);
        found.judge();
        assert_eq!(
            found.problems,
            [
                "d:1: it has no realm with a fabric",
                "b:1: realm 'r' sees 1 of 2 other nodes",
                "b:1: realm 'r' exchanges calls with 0 of them",
                "c:1: realm 'r' reaches no server of NATS",
            ]
        );
        assert_eq!(found.rows()[0]["resets"], 3);
    }
}

//! `crosstie conformance`: any WAMP router, judged by scenarios of the specification.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use crosstie_client::{Endpoint, TlsOptions};
use crosstie_conformance::{
    Feature, METHOD, Options, Verdict, embedded, from_directory, run as judge,
};
use crosstie_terminal::credentials::Credentials;
use crosstie_terminal::duration::duration;
use crosstie_wamp::Serializer;

/// Judge any WAMP router by its URL: play scenarios for each feature of the specification.
///
/// The exit code is 0 if no announced feature fails, 1 if one fails or the router ends during the run, and 2 if nothing
/// could be judged.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Router: ws://, wss://, rs://, rss://, ws+unix:PATH or rs+unix:PATH.
    #[arg(required_unless_present = "list")]
    url: Option<String>,
    /// Another node of the same realm; may be repeated. The sessions A, B, C … of a scenario connect to the nodes in
    /// turn.
    #[arg(long, value_name = "URL")]
    also: Vec<String>,
    /// Realm to join.
    #[arg(long, default_value = "realm1")]
    realm: String,
    /// Serializer of sessions unless a scenario names one: json, msgpack or cbor.
    #[arg(long, default_value = "json", value_parser = serializer)]
    serializer: Serializer,
    /// Use the batched subprotocols (`.batched`): several messages in each WebSocket message.
    #[arg(long)]
    batched: bool,
    #[command(flatten)]
    credentials: Credentials,
    /// File with additional trusted authorities, or with the router's own certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
    /// Trust any certificate. Use it only for tests: the router's identity is not verified.
    #[arg(long)]
    insecure: bool,
    /// Play the scenarios of a directory instead of the built-in ones.
    #[arg(long, value_name = "DIRECTORY")]
    scenarios: Option<PathBuf>,
    /// Play only files with this text in their names; may be repeated.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Value that scenarios need, as NAME=VALUE; NAME=@FILE is the first line of a file.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Prefix of every URI in the scenarios, for a router that permits only some.
    #[arg(long, value_name = "URI", default_value = "com.crosstie.conformance")]
    prefix: String,
    /// Play also features that the router does not announce.
    #[arg(long)]
    unannounced: bool,
    /// Plays of each scenario. If two plays differ, the scenario is unstable.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    plays: u8,
    /// Maximum wait for one message.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    patience: Duration,
    /// Maximum time of one scenario.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    scenario_max: Duration,
    /// Print JSON: every scenario with its verdict, and all messages of a failed one.
    #[arg(long)]
    json: bool,
    /// Count deviations from the specification as failures even if Crossbar.io has them.
    #[arg(long)]
    strict: bool,
    /// List the features and their scenarios, and play nothing.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut features = match &arguments.scenarios {
        Some(directory) => from_directory(directory)?,
        None => embedded()?,
    };
    let given = given(&arguments.set)?;
    warn_of_unused_labels(&given, &features);
    if !arguments.only.is_empty() {
        features.retain(|feature| {
            arguments
                .only
                .iter()
                .any(|text| feature.file.contains(text))
        });
        if features.is_empty() {
            bail!(
                "--only {}: no file has that in its name",
                arguments.only.join(" ")
            );
        }
    }
    if arguments.list {
        for feature in &features {
            say!("{}: {} ({})", feature.file, feature.title, feature.section)?;
            for scenario in &feature.scenarios {
                say!("  {}: {}", scenario.line, scenario.name)?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let is_strict = arguments.strict;
    let is_json = arguments.json;
    let judgement = judge(options(arguments, given)?, &features, |_| {})?;
    match is_json {
        true => say!("{}", serde_json::to_string_pretty(&judgement)?)?,
        false => say!("{judgement}")?,
    };
    // A feature of ours that the router does not announce may be played on request, and fails nothing.
    let mut judged = judgement.features.iter();
    let fails = judged.any(|feature| match feature.verdict {
        Verdict::Fails | Verdict::Unstable => !feature.is_own || feature.is_announced,
        Verdict::AsCrossbar => is_strict,
        _ => false,
    });
    Ok(ExitCode::from(u8::from(
        fails || judgement.gone_since.is_some(),
    )))
}

fn options(arguments: Arguments, given: BTreeMap<String, String>) -> anyhow::Result<Options> {
    let endpoint: Endpoint = arguments.url.as_deref().context("no URL")?.parse()?;
    let also = arguments.also.iter().map(|url| url.parse());
    let also = also.collect::<Result<Vec<Endpoint>, _>>()?;
    let mut tls = TlsOptions::default();
    tls.ca_files = arguments.ca;
    tls.insecure = arguments.insecure;
    Ok(Options {
        endpoint,
        also,
        tls,
        realm: arguments.realm,
        serializer: arguments.serializer,
        batched: arguments.batched,
        authenticator: arguments.credentials.authenticator()?,
        patience: arguments.patience,
        scenario_max: arguments.scenario_max,
        prefix: arguments.prefix,
        given,
        unannounced: arguments.unannounced,
        plays: arguments.plays.into(),
    })
}

/// A misspelt label would leave the scenarios that need it unplayed.
fn warn_of_unused_labels(given: &BTreeMap<String, String>, features: &[Feature]) {
    let scenarios = features.iter().flat_map(|feature| &feature.scenarios);
    let of_scenarios = scenarios.flat_map(|scenario| &scenario.needs);
    let needs = features.iter().flat_map(|feature| &feature.needs);
    let needs: BTreeSet<&String> = needs
        .chain(of_scenarios)
        .filter(|name| !name.starts_with(METHOD))
        .collect();
    for name in given.keys().filter(|name| !needs.contains(name)) {
        let known: Vec<_> = needs.iter().map(|name| name.as_str()).collect();
        complain!(
            "warning: --set {name}: no scenario needs that; what is needed: {}",
            known.join(", ")
        );
    }
}

fn given(settings: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut given = BTreeMap::new();
    for setting in settings {
        let Some((name, value)) = setting.split_once('=') else {
            bail!("--set {setting}: expected NAME=VALUE");
        };
        let value = match value.strip_prefix('@') {
            None => value.to_owned(),
            Some(path) => {
                let text = fs::read_to_string(path);
                let text = text.with_context(|| format!("--set {name}=@{path}"))?;
                text.lines().next().unwrap_or_default().to_owned()
            }
        };
        given.insert(name.to_owned(), value);
    }
    Ok(given)
}

fn serializer(name: &str) -> Result<Serializer, String> {
    Serializer::from_name(name).ok_or_else(|| "expected json, msgpack or cbor".to_owned())
}

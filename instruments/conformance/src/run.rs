//! A run: plays the scenarios one after the other, and judges each.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_client::{Address, Authenticator, Endpoint, TlsOptions, tls_config};
use crosstie_scenario::{
    Action, Announcement, Feature, Happened, Join, Labels, Outcome, Play, Scenario, show_value,
};
use crosstie_wamp::{Serializer, Value};
use thiserror::Error;

use crate::judgement::{Counts, FeatureReport, Judgement, ScenarioReport, Verdict};
use crate::sessions::{Router, Sessions, happened};

/// Time limit for events that are known not to occur on several nodes.
const BY_NODE_PATIENCE_MAX: Duration = Duration::from_millis(500);

/// The router's address, and the options of the run.
pub struct Options {
    pub endpoint: Endpoint,
    /// Other nodes of the same realm, for further sessions.
    pub also: Vec<Endpoint>,
    pub tls: TlsOptions,
    pub realm: String,
    pub serializer: Serializer,
    pub batched: bool,
    pub authenticator: Arc<dyn Authenticator>,
    /// The longest wait for one message.
    pub patience: Duration,
    /// The longest time of one scenario.
    pub scenario_max: Duration,
    /// The prefix of every URI of the scenarios.
    pub prefix: String,
    /// Values of labels that scenarios need.
    pub given: BTreeMap<String, String>,
    /// Whether to play features that are not announced.
    pub unannounced: bool,
    /// How many times each scenario is played; fewer as soon as two verdicts differ.
    pub plays: usize,
}

/// The reason why nothing can be judged.
#[derive(Debug, Error)]
pub enum RunError {
    #[error("{0}: {1}")]
    Unreachable(String, String),
    #[error("TLS: {0}")]
    Tls(io::Error),
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

/// Plays all scenarios; `played` is called after each feature.
pub fn run(
    options: Options,
    features: &[Feature],
    mut played: impl FnMut(&FeatureReport),
) -> Result<Judgement, RunError> {
    let url = options.endpoint.to_string();
    let also: Vec<_> = options.also.iter().map(Endpoint::to_string).collect();
    let endpoints: Vec<_> = std::iter::once(options.endpoint)
        .chain(options.also)
        .collect();
    let has_tls = |one: &Endpoint| matches!(one.address, Address::Tcp { tls: true, .. });
    let tls = match endpoints.iter().any(has_tls) {
        true => Some(tls_config(&options.tls).map_err(RunError::Tls)?),
        false => None,
    };
    let router = Router {
        endpoints,
        tls,
        realm: options.realm,
        serializer: options.serializer,
        batched: options.batched,
        authenticator: options.authenticator,
        patience: options.patience,
    };
    // The first answer may take as long as a whole scenario; every later wait is for one message.
    let mut welcomes = Vec::new();
    for endpoint in &router.endpoints {
        let said = welcome(&router, endpoint, options.scenario_max);
        welcomes.push(said.map_err(|why| RunError::Unreachable(endpoint.to_string(), why))?);
    }
    // A feature that one node announces alone is not the realm's.
    let announcements = welcomes.iter().map(announced);
    let announced = announcements.reduce(|all, one| &all & &one);
    let announced = announced.unwrap_or_default();
    let agent = welcomes.first().and_then(agent);
    let mut stage = Stage {
        labels: labels(&router, &options.given),
        router,
        announced,
        scenario_max: options.scenario_max,
        unannounced: options.unannounced,
        plays: options.plays.max(1),
        is_crosstie: agent
            .as_deref()
            .is_some_and(|agent| agent.starts_with(CROSSTIE)),
        prefix: format!("{}.{}", options.prefix, run_name()?),
        number: 0,
        gone_since: None,
    };
    let mut judgement = Judgement {
        url,
        also,
        realm: stage.router.realm.clone(),
        serializer: stage.router.serializer.to_string(),
        router: agent,
        announced: stage.announced.iter().cloned().collect(),
        features: Vec::new(),
        counts: Counts::default(),
        own_counts: Counts::default(),
        gone_since: None,
    };
    for feature in features {
        let report = stage.feature(feature);
        played(&report);
        judgement.add(report);
    }
    judgement.gone_since = stage.gone_since;
    Ok(judgement)
}

/// The part that does not change from scenario to scenario.
struct Stage {
    router: Router,
    announced: BTreeSet<String>,
    labels: Labels,
    scenario_max: Duration,
    unannounced: bool,
    prefix: String,
    number: usize,
    plays: usize,
    is_crosstie: bool,
    /// The scenario during which the router ended, or before which it had.
    gone_since: Option<String>,
}

impl Stage {
    fn feature(&mut self, feature: &Feature) -> FeatureReport {
        let scenarios = feature.scenarios.iter();
        let mut report = FeatureReport {
            feature: feature.title.clone(),
            file: feature.file.clone(),
            section: feature.section.clone(),
            is_own: feature.is_own,
            announces: feature
                .announced
                .iter()
                .map(Announcement::to_string)
                .collect(),
            is_announced: self.missing_of(feature).is_none(),
            verdict: Verdict::Undecided,
            scenarios: scenarios.map(|one| self.scenario(feature, one)).collect(),
        };
        report.judge();
        report
    }

    fn scenario(&mut self, feature: &Feature, scenario: &Scenario) -> ScenarioReport {
        let section = scenario.section.as_ref().unwrap_or(&feature.section);
        let mut report = ScenarioReport {
            scenario: scenario.name.clone(),
            section: section.clone(),
            verdict: Verdict::Passes,
            line: scenario.line,
            session: None,
            expected: None,
            came: None,
            why: Vec::new(),
            transcript: Vec::new(),
        };
        let missing = self.missing_of(feature);
        let missing = missing.or_else(|| self.missing(&scenario.announced));
        if let Some(missing) = missing.filter(|_| !self.unannounced) {
            report.verdict = Verdict::NotAnnounced;
            report.why.push(missing);
            return report;
        }
        let mut needs = feature.needs.iter().chain(&scenario.needs);
        if let Some(name) = needs.find(|name| self.labels.value(name).is_none()) {
            report.verdict = Verdict::NotGiven;
            report.why.push(match name.strip_prefix(METHOD) {
                Some(method) => format!("it needs --authmethod {}", method.replace("wamp_", "")),
                None => format!("it needs --set {name}=…"),
            });
            return report;
        }
        if self.gone_since.is_some() {
            report.verdict = Verdict::Undecided;
            return report;
        }
        let by_node = scenario.by_node.as_ref().or(feature.by_node.as_ref());
        let by_node = by_node.filter(|_| self.router.endpoints.len() > 1);
        let patience = match by_node {
            None => self.router.patience,
            Some(_) => self.router.patience.min(BY_NODE_PATIENCE_MAX),
        };
        let plays = if by_node.is_some() { 1 } else { self.plays };
        self.play_several_times(scenario, patience, plays, &mut report);
        if let Some(why) = by_node
            && matches!(report.verdict, Verdict::Fails | Verdict::AsCrossbar)
        {
            report.verdict = Verdict::ByNode;
            report.why.insert(0, why.clone());
        }
        report
    }

    /// Repeats until two verdicts differ: then the scenario is unstable, and the failure is shown.
    fn play_several_times(
        &mut self,
        scenario: &Scenario,
        patience: Duration,
        plays: usize,
        report: &mut ScenarioReport,
    ) {
        let fresh = report.clone();
        self.play(scenario, patience, report);
        for play in 2..=plays {
            if self.gone_since.is_some() || report.verdict == Verdict::Undecided {
                return;
            }
            let mut again = fresh.clone();
            self.play(scenario, patience, &mut again);
            if again.verdict == report.verdict || self.gone_since.is_some() {
                continue;
            }
            let verdicts = [report.verdict, again.verdict];
            let said = format!("{} at first, {} in play {play}", verdicts[0], verdicts[1]);
            if report.verdict == Verdict::Passes {
                *report = again;
            }
            report.verdict = Verdict::Unstable;
            report.why.insert(0, said);
            return;
        }
    }

    fn play(&mut self, scenario: &Scenario, patience: Duration, report: &mut ScenarioReport) {
        self.number += 1;
        let mut labels = self.labels.clone();
        let prefix = format!("{}.s{}", self.prefix, self.number);
        labels.set("u", Value::String(prefix));
        let end = Instant::now() + self.scenario_max;
        let mut sessions = Sessions::new(&self.router, patience, end);
        let mut play = Play::new(scenario, labels);
        loop {
            match play.next_action() {
                Action::Done => break,
                _ if Instant::now() > end => {
                    play.give_up(&format!("more than {} s", self.scenario_max.as_secs_f64()));
                }
                action => {
                    let happened = sessions.act(action);
                    play.handle(happened);
                }
            }
        }
        if sessions.has_lost_one && self.router.is_gone() {
            self.gone_since = Some(scenario.name.clone());
            report.transcript = sessions.transcript.lines();
            // An end before the scenario began is reported for the run, and not here.
            report.verdict = match report.transcript.is_empty() {
                true => Verdict::Undecided,
                false => {
                    let why = "the router ended: it accepts no connection any more";
                    report.why.push(why.to_owned());
                    Verdict::Fails
                }
            };
            return;
        }
        match play.outcome() {
            Outcome::Passes => {}
            Outcome::AsCrossbar(how) => {
                report.verdict = Verdict::AsCrossbar;
                report.why = how;
            }
            Outcome::Undecided(why) => {
                report.verdict = Verdict::Undecided;
                report.why.push(why);
            }
            Outcome::Fails(failure) => {
                report.verdict = Verdict::Fails;
                report.line = failure.line;
                report.session = Some(failure.who);
                report.expected = Some(failure.expected);
                report.came = Some(failure.came);
                report.why.push(failure.why);
                report.transcript = sessions.transcript.lines();
            }
        }
    }

    /// The reason why the router does not have a feature, from its announcements.
    fn missing_of(&self, feature: &Feature) -> Option<String> {
        match feature.is_own && feature.announced.is_empty() && !self.is_crosstie {
            true => {
                Some("the specification does not have it, and this is another router".to_owned())
            }
            false => self.missing(&feature.announced),
        }
    }

    fn missing(&self, announced: &[Announcement]) -> Option<String> {
        let mut announced = announced.iter().map(Announcement::to_string);
        let missing = announced.find(|one| !self.announced.contains(one))?;
        Some(format!("{missing} is not in WELCOME"))
    }
}

/// Prefix of Crosstie's `WELCOME.Details.agent`.
const CROSSTIE: &str = "Crosstie";

/// The router's announcements.
fn welcome(router: &Router, endpoint: &Endpoint, patience: Duration) -> Result<Value, String> {
    let opened = router.open(endpoint, None);
    let mut connection = opened.map_err(|trouble| trouble.to_string())?;
    let joined = router.join(&mut connection, &Join::default(), patience, |_, _| {});
    match joined {
        Happened::Joined { details, .. } => {
            leave(&mut connection, router.patience);
            Ok(details)
        }
        Happened::Message(message) => {
            Err(format!("it answers HELLO with {}", show_value(&message)))
        }
        Happened::Closed => Err("it closes the connection at HELLO".to_owned()),
        Happened::Else(why) | Happened::NotSpoken(why) => Err(why),
        Happened::Done => Err("it says nothing".to_owned()),
    }
}

/// In order, as far as the router cooperates.
fn leave(connection: &mut crate::connection::Connection, patience: Duration) {
    let goodbye = Value::List(vec![
        Value::from(6),
        Value::Dict(Vec::new()),
        Value::from("wamp.close.close_realm"),
    ]);
    if connection.send(&goodbye).is_ok() {
        let _ = happened(connection.receive(patience));
    }
}

fn agent(welcome: &Value) -> Option<String> {
    Some(welcome.get("agent")?.as_str()?.to_owned())
}

fn announced(welcome: &Value) -> BTreeSet<String> {
    let roles = welcome.get("roles").and_then(Value::as_dict);
    let mut announced = BTreeSet::new();
    for (role, details) in roles.into_iter().flatten() {
        let features = details.get("features").and_then(Value::as_dict);
        // Reflection is announced beside the features.
        let beside = details.as_dict();
        for (feature, value) in features.into_iter().chain(beside).flatten() {
            if *value == Value::Bool(true) {
                announced.insert(format!("{role}.{feature}"));
            }
        }
    }
    announced
}

/// The label of the sessions' login method, before its name.
pub const METHOD: &str = "method_";

fn labels(router: &Router, given: &BTreeMap<String, String>) -> Labels {
    let mut labels = Labels::default();
    labels.set("realm", Value::from(router.realm.as_str()));
    let method = router.authenticator.method().replace('-', "_");
    let method = format!("{METHOD}{method}");
    labels.set(method, Value::Bool(true));
    for (name, value) in given {
        labels.set(name.as_str(), Value::from(value.as_str()));
    }
    labels
}

/// Two runs on one router have no URI in common.
fn run_name() -> Result<String, RunError> {
    let number = getrandom::u32().map_err(|error| RunError::Random(error.to_string()))?;
    Ok(format!("r{number:08x}"))
}

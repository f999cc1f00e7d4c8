//! A run: which scenarios are played, one after the other, and what becomes of each.

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

/// What is known not to come on several nodes is not waited for long.
const BY_NODE_PATIENCE_MAX: Duration = Duration::from_millis(500);

/// How the router is reached, and what is asked of it.
pub struct Options {
    pub endpoint: Endpoint,
    /// Other nodes of the same realm, on which sessions are too.
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
    /// What every URI of the scenarios begins with.
    pub prefix: String,
    /// Values of labels that scenarios need.
    pub given: BTreeMap<String, String>,
    /// Whether what is not announced is played too.
    pub unannounced: bool,
}

/// Why nothing can be judged.
#[derive(Debug, Error)]
pub enum RunError {
    #[error("{0}: {1}")]
    Unreachable(String, String),
    #[error("TLS: {0}")]
    Tls(io::Error),
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

/// Plays all scenarios; `played` is told of each feature.
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
    // The first answer may take as long as a whole scenario: behind it every wait is one message's.
    let mut welcomes = Vec::new();
    for endpoint in &router.endpoints {
        let said = welcome(&router, endpoint, options.scenario_max);
        welcomes.push(said.map_err(|why| RunError::Unreachable(endpoint.to_string(), why))?);
    }
    // What one node announces alone is not the realm's.
    let announcements = welcomes.iter().map(announced);
    let announced = announcements.reduce(|all, one| &all & &one);
    let announced = announced.unwrap_or_default();
    let mut stage = Stage {
        labels: labels(&router, &options.given),
        router,
        announced,
        scenario_max: options.scenario_max,
        unannounced: options.unannounced,
        prefix: format!("{}.{}", options.prefix, run_name()?),
        number: 0,
        unreachable_since: None,
    };
    let mut judgement = Judgement {
        url,
        also,
        realm: stage.router.realm.clone(),
        serializer: stage.router.serializer.to_string(),
        router: welcomes
            .first()
            .and_then(|welcome| welcome.get("agent"))
            .and_then(Value::as_str)
            .map(str::to_owned),
        announced: stage.announced.iter().cloned().collect(),
        features: Vec::new(),
        counts: Counts::default(),
        unreachable_since: None,
    };
    for feature in features {
        let report = stage.feature(feature);
        for scenario in &report.scenarios {
            judgement.counts.add(scenario.verdict);
        }
        played(&report);
        judgement.features.push(report);
    }
    judgement.unreachable_since = stage.unreachable_since;
    Ok(judgement)
}

/// What does not change from scenario to scenario.
struct Stage {
    router: Router,
    announced: BTreeSet<String>,
    labels: Labels,
    scenario_max: Duration,
    unannounced: bool,
    prefix: String,
    number: usize,
    /// The first scenario for which nobody listened any more.
    unreachable_since: Option<String>,
}

impl Stage {
    fn feature(&mut self, feature: &Feature) -> FeatureReport {
        let scenarios = feature.scenarios.iter();
        let mut report = FeatureReport {
            feature: feature.title.clone(),
            file: feature.file.clone(),
            section: feature.section.clone(),
            announces: feature
                .announced
                .iter()
                .map(Announcement::to_string)
                .collect(),
            is_announced: self.missing(&feature.announced).is_none(),
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
        let missing = self.missing(&feature.announced);
        let missing = missing.or_else(|| self.missing(&scenario.announced));
        if let Some(missing) = missing.filter(|_| !self.unannounced) {
            report.verdict = Verdict::NotAnnounced;
            report.why.push(format!("{missing} is not in WELCOME"));
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
        let by_node = scenario.by_node.as_ref().or(feature.by_node.as_ref());
        let by_node = by_node.filter(|_| self.router.endpoints.len() > 1);
        let patience = match by_node {
            None => self.router.patience,
            Some(_) => self.router.patience.min(BY_NODE_PATIENCE_MAX),
        };
        self.play(scenario, patience, &mut report);
        if let Some(why) = by_node
            && matches!(report.verdict, Verdict::Fails | Verdict::AsCrossbar)
        {
            report.verdict = Verdict::ByNode;
            report.why.insert(0, why.clone());
        }
        report
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
        if sessions.is_unreachable && self.unreachable_since.is_none() {
            self.unreachable_since = Some(scenario.name.clone());
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

    fn missing<'f>(&self, announced: &'f [Announcement]) -> Option<&'f Announcement> {
        announced
            .iter()
            .find(|one| !self.announced.contains(&one.to_string()))
    }
}

/// What the router says of itself.
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

/// In good order, as far as the router takes part in it.
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

/// The label that the method has by which the sessions log in, before its name.
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

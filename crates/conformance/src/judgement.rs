//! What is said of a router in the end: of each scenario, of each feature, in all.

use std::fmt::{self, Write};

use serde::Serialize;

/// Of a scenario, or of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As the specification says.
    Passes,
    /// As Crossbar.io does it, which is known to differ from the specification.
    AsCrossbar,
    Fails,
    /// It holds for the sessions of one node; here they are on several, and it is said what differs there.
    ByNode,
    /// It is not in WELCOME, and was not played.
    NotAnnounced,
    /// It takes something that was not given: a configured topic, a secret.
    NotGiven,
    /// It was played, and here it can show nothing.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passes => "passes",
            Self::AsCrossbar => "as Crossbar.io",
            Self::Fails => "fails",
            Self::ByNode => "by node",
            Self::NotAnnounced => "not announced",
            Self::NotGiven => "not given",
            Self::Undecided => "undecided",
        })
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    pub url: String,
    /// The other nodes of the realm that sessions were on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    pub realm: String,
    pub serializer: String,
    /// `WELCOME.Details.agent`.
    pub router: Option<String>,
    /// What WELCOME announces, as `dealer.call_canceling`.
    pub announced: Vec<String>,
    pub features: Vec<FeatureReport>,
    pub counts: Counts,
    /// The first scenario for which nobody listened any more: what fails from there on says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_since: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FeatureReport {
    pub feature: String,
    pub file: String,
    pub section: String,
    /// What a router with it announces.
    pub announces: Vec<String>,
    pub is_announced: bool,
    pub verdict: Verdict,
    pub scenarios: Vec<ScenarioReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ScenarioReport {
    pub scenario: String,
    pub section: String,
    pub verdict: Verdict,
    /// Of the file: where it failed, or where the scenario begins.
    pub line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub came: Option<String>,
    /// What differs; what is missing; how Crossbar.io does it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// All that was said, where it failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transcript: Vec<String>,
}

/// Scenarios by their verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub passes: usize,
    pub as_crossbar: usize,
    pub fails: usize,
    pub by_node: usize,
    pub not_announced: usize,
    pub not_given: usize,
    pub undecided: usize,
}

impl Counts {
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Passes => &mut self.passes,
            Verdict::AsCrossbar => &mut self.as_crossbar,
            Verdict::Fails => &mut self.fails,
            Verdict::ByNode => &mut self.by_node,
            Verdict::NotAnnounced => &mut self.not_announced,
            Verdict::NotGiven => &mut self.not_given,
            Verdict::Undecided => &mut self.undecided,
        } += 1;
    }

    fn of(scenarios: &[ScenarioReport]) -> Self {
        let mut counts = Self::default();
        for scenario in scenarios {
            counts.add(scenario.verdict);
        }
        counts
    }

    /// The verdict of them together: the worst that anything has, and of those without one the most common cause.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self { fails: 1.., .. } => Verdict::Fails,
            Self { by_node: 1.., .. } => Verdict::ByNode,
            Self {
                as_crossbar: 1.., ..
            } => Verdict::AsCrossbar,
            Self { passes: 1.., .. } => Verdict::Passes,
            Self {
                not_announced: 1.., ..
            } => Verdict::NotAnnounced,
            Self { not_given: 1.., .. } => Verdict::NotGiven,
            _ => Verdict::Undecided,
        }
    }
}

impl FeatureReport {
    pub(crate) fn judge(&mut self) {
        self.verdict = Counts::of(&self.scenarios).verdict();
    }

    /// Passed, and played.
    fn score(&self) -> String {
        let counts = Counts::of(&self.scenarios);
        let played = counts.passes + counts.as_crossbar + counts.fails + counts.by_node;
        match played {
            0 => format!("- of {}", self.scenarios.len()),
            _ => format!("{} of {played}", counts.passes),
        }
    }

    fn in_words(&self) -> String {
        match self.verdict {
            Verdict::Fails if !self.announces.is_empty() && self.is_announced => {
                "announced, but fails".to_owned()
            }
            verdict => verdict.to_string(),
        }
    }
}

impl Judgement {
    fn nodes(&self) -> Vec<&str> {
        let also = self.also.iter().map(String::as_str);
        std::iter::once(self.url.as_str()).chain(also).collect()
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let router = self.router.as_deref().unwrap_or("a router without a name");
        writeln!(
            f,
            "{router} at {}, realm {}, {}\n",
            self.nodes().join(" and "),
            self.realm,
            self.serializer
        )?;
        let longest = |width: usize, text: &str| width.max(text.chars().count());
        let features = self.features.iter();
        let titles = features
            .clone()
            .fold(7, |width, one| longest(width, &one.feature));
        let sections = features.fold(13, |width, one| longest(width, &one.section));
        writeln!(
            f,
            "{:titles$}  {:sections$}  {:9}  verdict",
            "feature", "specification", "passes"
        )?;
        for one in &self.features {
            writeln!(
                f,
                "{:titles$}  {:sections$}  {:9}  {}",
                one.feature,
                one.section,
                one.score(),
                one.in_words()
            )?;
        }
        for one in &self.features {
            f.write_str(&one.details())?;
        }
        if let Some(name) = &self.unreachable_since {
            writeln!(
                f,
                "\nnobody listened any more from this scenario on: {name}"
            )?;
        }
        let Counts {
            passes,
            as_crossbar,
            fails,
            by_node,
            not_announced,
            not_given,
            undecided,
        } = self.counts;
        write!(
            f,
            "\nscenarios: {passes} pass, {fails} fail, {as_crossbar} as Crossbar.io, {not_announced} not announced, \
             {not_given} not given, {undecided} undecided"
        )?;
        match self.also.is_empty() {
            true => Ok(()),
            false => write!(f, ", {by_node} by node"),
        }
    }
}

impl FeatureReport {
    /// What has to be said of scenarios beside a number.
    fn details(&self) -> String {
        let mut text = String::new();
        for scenario in &self.scenarios {
            let word = match scenario.verdict {
                Verdict::Passes | Verdict::NotAnnounced => continue,
                verdict => verdict,
            };
            let _ = writeln!(
                text,
                "\n{}:{}: {word}: {}",
                self.file, scenario.line, scenario.scenario
            );
            let _ = writeln!(text, "  specification  {}", scenario.section);
            if let (Some(who), Some(expected), Some(came)) =
                (scenario.session, &scenario.expected, &scenario.came)
            {
                let _ = writeln!(text, "  expected       {who}< {expected}");
                let _ = writeln!(text, "  came           {came}");
            }
            let label = match scenario.verdict {
                Verdict::AsCrossbar | Verdict::ByNode => "differs       ",
                _ => "because       ",
            };
            for why in scenario.why.iter().filter(|why| !why.is_empty()) {
                let _ = writeln!(text, "  {label} {why}");
            }
        }
        text
    }
}

//! The verdicts on a router: for each scenario, for each feature, in all.

use std::fmt::{self, Write};

use serde::Serialize;

/// Of a scenario, or of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Conforms to the specification.
    Passes,
    /// Behaves like Crossbar.io, in a known difference from the specification.
    AsCrossbar,
    Fails,
    /// It was played several times, with different results.
    Unstable,
    /// Holds for the sessions of one node; here they are on several, with a documented difference.
    ByNode,
    /// WELCOME does not announce it, and it was not played.
    NotAnnounced,
    /// Needs something that was not given: a configured topic, a secret.
    NotGiven,
    /// It was played, and its result is inconclusive here.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passes => "passes",
            Self::AsCrossbar => "as Crossbar.io",
            Self::Fails => "fails",
            Self::Unstable => "unstable",
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
    /// The features in WELCOME, as `dealer.call_canceling`.
    pub announced: Vec<String>,
    pub features: Vec<FeatureReport>,
    /// Scenarios of the specification.
    pub counts: Counts,
    /// Scenarios of Crosstie's own features.
    pub own_counts: Counts,
    /// The router ended while this scenario was played, or before it: later ones were not played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FeatureReport {
    pub feature: String,
    pub file: String,
    pub section: String,
    /// Whether it is Crosstie's own feature, and not the specification's.
    pub is_own: bool,
    /// The announcements of a router with this feature.
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
    /// The line of the file: of the failure, or of the scenario's beginning.
    pub line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub came: Option<String>,
    /// The difference; the missing prerequisites; Crossbar.io's behaviour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// All messages, if it failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transcript: Vec<String>,
}

/// Scenarios by their verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub passes: usize,
    pub as_crossbar: usize,
    pub fails: usize,
    pub unstable: usize,
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
            Verdict::Unstable => &mut self.unstable,
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

    /// The verdict of them together: the worst of any, and without one the most common cause.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self { fails: 1.., .. } => Verdict::Fails,
            Self { unstable: 1.., .. } => Verdict::Unstable,
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
        let failed = counts.as_crossbar + counts.fails + counts.unstable + counts.by_node;
        let played = counts.passes + failed;
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
    /// Adds the feature's scenarios to the counts of its origin.
    pub(crate) fn add(&mut self, report: FeatureReport) {
        let counts = match report.is_own {
            true => &mut self.own_counts,
            false => &mut self.counts,
        };
        for scenario in &report.scenarios {
            counts.add(scenario.verdict);
        }
        self.features.push(report);
    }

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
        let (own, specified): (Vec<_>, Vec<_>) = self.features.iter().partition(|one| one.is_own);
        table(f, "feature", "specification", &specified)?;
        if !own.is_empty() {
            writeln!(f)?;
            table(f, "Crosstie's own", "described in", &own)?;
        }
        for one in &self.features {
            f.write_str(&one.details())?;
        }
        if let Some(name) = &self.gone_since {
            writeln!(
                f,
                "\nthe router is gone since this scenario, and the rest is undecided: {name}"
            )?;
        }
        write!(f, "\nscenarios: {}", self.counts.in_words())?;
        match self.also.is_empty() {
            true => {}
            false => write!(f, ", {} by node", self.counts.by_node)?,
        }
        match own.is_empty() {
            true => Ok(()),
            false => write!(f, "\nCrosstie's own: {}", self.own_counts.in_words()),
        }
    }
}

/// A row for each feature.
fn table(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    place: &str,
    features: &[&FeatureReport],
) -> fmt::Result {
    let longest = |width: usize, text: &str| width.max(text.chars().count());
    let widest = |head: &str, text: fn(&FeatureReport) -> &str| {
        let texts = features.iter().map(|one| text(one));
        texts.fold(head.len(), longest)
    };
    let (titles, sections) = (
        widest(what, |one| &one.feature),
        widest(place, |one| &one.section),
    );
    writeln!(
        f,
        "{what:titles$}  {place:sections$}  {:9}  verdict",
        "passes"
    )?;
    for one in features {
        writeln!(
            f,
            "{:titles$}  {:sections$}  {:9}  {}",
            one.feature,
            one.section,
            one.score(),
            one.in_words()
        )?;
    }
    Ok(())
}

impl Counts {
    fn in_words(&self) -> String {
        format!(
            "{} pass, {} fail, {} unstable, {} as Crossbar.io, {} not announced, {} not given, {} undecided",
            self.passes,
            self.fails,
            self.unstable,
            self.as_crossbar,
            self.not_announced,
            self.not_given,
            self.undecided
        )
    }
}

impl FeatureReport {
    /// The notes on scenarios besides the numbers.
    fn details(&self) -> String {
        let mut text = String::new();
        for scenario in &self.scenarios {
            let word = match scenario.verdict {
                Verdict::Passes | Verdict::NotAnnounced => continue,
                // Printed once, for the router.
                Verdict::Undecided if scenario.why.is_empty() => continue,
                verdict => verdict,
            };
            let _ = writeln!(
                text,
                "\n{}:{}: {word}: {}",
                self.file, scenario.line, scenario.scenario
            );
            let place = match self.is_own {
                true => "described in ",
                false => "specification",
            };
            let _ = writeln!(text, "  {place}  {}", scenario.section);
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

//! Parses text into features; every error names the line, and the expectation.

mod message;
mod references;

use std::collections::BTreeSet;

use crosstie_wamp::Serializer;
use thiserror::Error;

use crate::lines::{Line, lines};
use crate::model::{Act, Alternative, Announcement, Expected, Feature, Join, Scenario, Step};
use crate::words::{Words, beginning, octets};
use message::{expected, sent};

/// Maximum size of one file in bytes.
pub const BYTES_MAX: usize = 1 << 20;

/// Maximum number of lines of one scenario.
pub const LINES_MAX: usize = 1_000;

/// The expectation after `nodes`.
const DIFFERS: &str = "a sentence: the difference on several nodes";

/// A malformed file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {reason}")]
pub struct ParseError {
    pub file: String,
    pub line: usize,
    pub reason: String,
}

/// Reads a file. `given` are the names of labels that the player sets, besides the standard ones.
pub fn parse(file: &str, text: &str) -> Result<Feature, ParseError> {
    let mut parser = Parser {
        feature: Feature {
            file: file.to_owned(),
            title: String::new(),
            section: String::new(),
            is_own: false,
            announced: Vec::new(),
            needs: Vec::new(),
            by_node: None,
            scenarios: Vec::new(),
        },
        defaults: Vec::new(),
        open: None,
    };
    let fail = |line: usize, reason: String| ParseError {
        file: file.to_owned(),
        line,
        reason,
    };
    if text.len() > BYTES_MAX {
        return Err(fail(1, format!("expected at most {BYTES_MAX} bytes")));
    }
    for line in lines(text) {
        parser
            .line(line)
            .map_err(|reason| fail(line.number, reason))?;
    }
    parser
        .finish()
        .map_err(|(line, reason)| fail(line.max(1), reason))
}

struct Parser {
    feature: Feature,
    /// Every session's announcements, unless it overrides them.
    defaults: Vec<Announcement>,
    /// The block that has begun and not ended.
    open: Option<Block>,
}

enum Block {
    AnyOrder {
        line: usize,
        expected: Vec<Expected>,
    },
    Either {
        line: usize,
        alternatives: Vec<Alternative>,
    },
}

impl Block {
    fn line(&self) -> usize {
        match self {
            Self::AnyOrder { line, .. } | Self::Either { line, .. } => *line,
        }
    }
}

impl Parser {
    fn line(&mut self, line: Line<'_>) -> Result<(), String> {
        if let Some(name) = line.text.strip_prefix("== ") {
            self.close_scenario()?;
            self.feature.scenarios.push(Scenario {
                line: line.number,
                name: name.trim().to_owned(),
                section: None,
                announced: Vec::new(),
                needs: Vec::new(),
                by_node: None,
                steps: Vec::new(),
            });
            return Ok(());
        }
        let (head, rest) = line
            .text
            .split_once(char::is_whitespace)
            .unwrap_or((line.text, ""));
        let rest = rest.trim();
        match (head, self.feature.scenarios.last_mut()) {
            ("feature", None) => self.feature.title = named(rest, "the feature's title")?,
            ("section", None) => {
                self.feature.section = named(rest, "the section, as advanced/x#y")?
            }
            ("own", None) => {
                self.feature.section = named(rest, "the page, as docs/x.md")?;
                self.feature.is_own = true;
            }
            ("section", Some(scenario)) => {
                scenario.section = Some(named(rest, "the section, as advanced/x#y")?);
            }
            ("announced", None) => self.feature.announced = announcements(rest)?,
            ("announced", Some(scenario)) => scenario.announced = announcements(rest)?,
            ("needs", None) => self.feature.needs = names(rest)?,
            ("needs", Some(scenario)) => scenario.needs = names(rest)?,
            ("nodes", None) => self.feature.by_node = Some(named(rest, DIFFERS)?),
            ("nodes", Some(scenario)) => scenario.by_node = Some(named(rest, DIFFERS)?),
            ("features", None) => self.defaults = announcements(rest)?,
            (_, None) => {
                return Err(format!(
                    "expected feature, section, own, announced, needs, nodes, features or == NAME, found {:?}",
                    beginning(head)
                ));
            }
            (_, Some(_)) => return self.step(line, head, rest),
        }
        Ok(())
    }

    fn step(&mut self, line: Line<'_>, head: &str, rest: &str) -> Result<(), String> {
        let act = match (head, &mut self.open) {
            ("any", None) if rest == "order" => {
                let expected = Vec::new();
                self.open = Some(Block::AnyOrder {
                    line: line.number,
                    expected,
                });
                return Ok(());
            }
            ("either", None) => {
                let alternatives = vec![alternative(rest)?];
                self.open = Some(Block::Either {
                    line: line.number,
                    alternatives,
                });
                return Ok(());
            }
            ("or", Some(Block::Either { alternatives, .. })) => {
                alternatives.push(alternative(rest)?);
                return Ok(());
            }
            ("or", _) => return Err("expected or between either and end".to_owned()),
            ("end", Some(_)) if rest.is_empty() => return self.close_block(),
            ("end", None) => {
                return Err("expected end behind either or any order only".to_owned());
            }
            ("either" | "any", Some(_)) => {
                return Err("expected no block within another".to_owned());
            }
            ("differ", _) => {
                let mut words = Words::new(rest);
                let act = Act::Differ(words.term()?, words.term()?);
                nothing_more(&words)?;
                act
            }
            _ => self.act(line, head, rest)?,
        };
        let step = Step {
            line: line.number,
            act,
        };
        match &mut self.open {
            None => self.scenario()?.steps.push(step),
            Some(Block::AnyOrder { expected, .. }) => match step.act {
                Act::Expect(message) if message.is_optional => {
                    return Err("expected nothing optional within any order".to_owned());
                }
                Act::Expect(message) => expected.push(message),
                _ => return Err("expected messages that come (A< …) within any order".to_owned()),
            },
            Some(Block::Either { alternatives, .. }) => {
                let steps = alternatives.last_mut().map(|last| &mut last.steps);
                steps.ok_or("expected either first")?.push(step);
            }
        }
        let lines = self.scenario()?.steps.len();
        match lines > LINES_MAX {
            true => Err(format!("expected at most {LINES_MAX} lines in a scenario")),
            false => Ok(()),
        }
    }

    /// A session's action, or a message to it: `A: …`, `A> …`, `A< …`, `A<? …`.
    fn act(&self, line: Line<'_>, head: &str, rest: &str) -> Result<Act, String> {
        let mut characters = head.chars();
        let who = characters
            .next()
            .filter(char::is_ascii_uppercase)
            .unwrap_or(' ');
        let mark = characters.as_str();
        match mark {
            _ if who == ' ' => {}
            ":" => return self.session(who, rest),
            ">" => {
                let octets = rest
                    .strip_prefix("octets 0x")
                    .map(|digits| octets(digits.trim()));
                return match octets {
                    Some(bytes) => Ok(Act::Octets { who, bytes: bytes? }),
                    None => Ok(Act::Send {
                        who,
                        parts: sent(rest)?,
                    }),
                };
            }
            "<" if rest == "closed" => return Ok(Act::Closed { who }),
            "<" | "<?" => {
                let is_optional = mark == "<?";
                let (parts, is_open) = expected(rest)?;
                return Ok(Act::Expect(Expected {
                    line: line.number,
                    who,
                    parts,
                    is_open,
                    is_optional,
                }));
            }
            _ => {}
        }
        Err(format!(
            "expected A: …, A> …, A< …, A<? …, any order, either or differ, found {:?}",
            beginning(head)
        ))
    }

    fn session(&self, who: char, rest: &str) -> Result<Act, String> {
        let mut words = Words::new(rest);
        match words.word() {
            Some("join") => {
                let mut join = Join {
                    features: self.defaults.clone(),
                    serializer: None,
                };
                while let Some(word) = words.word() {
                    match word.split_once('=') {
                        Some(("features", "none")) => join.features = Vec::new(),
                        Some(("features", list)) => {
                            join.features = announcements(&list.replace(',', " "))?;
                        }
                        Some(("serializer", name)) => join.serializer = Some(serializer(name)?),
                        _ => {
                            return Err(format!(
                                "expected features=… or serializer=…, found {word:?}"
                            ));
                        }
                    }
                }
                Ok(Act::Join { who, join })
            }
            Some("connect") => {
                let serializer = match words.word().map(|word| word.split_once('=')) {
                    None => None,
                    Some(Some(("serializer", name))) => Some(serializer(name)?),
                    Some(_) => return Err("expected serializer=… behind connect".to_owned()),
                };
                nothing_more(&words)?;
                Ok(Act::Connect { who, serializer })
            }
            Some("leave") if words.is_done() => Ok(Act::Leave { who }),
            Some("drop") if words.is_done() => Ok(Act::Drop { who }),
            Some("nothing") => {
                let request = words.word().and_then(|word| word.parse().ok());
                let request = request.ok_or("expected the number of a request behind nothing")?;
                nothing_more(&words)?;
                Ok(Act::Nothing { who, request })
            }
            _ => Err(format!(
                "expected join, connect, leave, drop or nothing, found {:?}",
                beginning(rest)
            )),
        }
    }

    fn close_block(&mut self) -> Result<(), String> {
        let Some(block) = self.open.take() else {
            return Ok(());
        };
        let line = block.line();
        let act = match block {
            Block::AnyOrder { expected, .. } => {
                let one_session = expected.windows(2).all(|pair| pair[0].who == pair[1].who);
                if expected.len() < 2 || !one_session {
                    return Err(
                        "expected two messages or more to one session in any order: \
                                between sessions there is no order"
                            .to_owned(),
                    );
                }
                Act::AnyOrder(expected)
            }
            Block::Either { alternatives, .. } => {
                check_alternatives(&alternatives)?;
                Act::Either(alternatives)
            }
        };
        self.scenario()?.steps.push(Step { line, act });
        Ok(())
    }

    fn scenario(&mut self) -> Result<&mut Scenario, String> {
        let last = self.feature.scenarios.last_mut();
        last.ok_or_else(|| "expected == NAME first".to_owned())
    }

    fn close_scenario(&self) -> Result<(), String> {
        match &self.open {
            Some(block) => Err(format!(
                "expected the end of the block of line {}",
                block.line()
            )),
            None => Ok(()),
        }
    }

    fn finish(self) -> Result<Feature, (usize, String)> {
        let last = self.feature.scenarios.last().map_or(1, |last| last.line);
        self.close_scenario().map_err(|reason| (last, reason))?;
        let feature = &self.feature;
        for (what, text) in [("feature", &feature.title), ("section", &feature.section)] {
            if text.is_empty() {
                return Err((1, format!("expected a line that begins with {what}")));
            }
        }
        if feature.scenarios.is_empty() {
            return Err((
                1,
                "expected a scenario, which begins with == NAME".to_owned(),
            ));
        }
        let mut names = BTreeSet::new();
        for scenario in &feature.scenarios {
            if !names.insert(&scenario.name) {
                let reason = format!(
                    "expected each name once; {:?} is there twice",
                    scenario.name
                );
                return Err((scenario.line, reason));
            }
            if scenario.steps.is_empty() {
                return Err((scenario.line, "expected lines behind == NAME".to_owned()));
            }
            references::check(feature, scenario)?;
        }
        Ok(self.feature)
    }
}

/// The first message of one and the same session distinguishes each from the others.
fn check_alternatives(alternatives: &[Alternative]) -> Result<(), String> {
    let first = |alternative: &Alternative| match alternative.steps.first().map(|step| &step.act) {
        Some(Act::Expect(message)) if !message.is_optional => Some(message.who),
        Some(Act::Closed { who }) => Some(*who),
        _ => None,
    };
    let who = alternatives.first().and_then(first);
    let alike = who.is_some() && alternatives.iter().all(|other| first(other) == who);
    match alike && alternatives.len() > 1 {
        true => Ok(()),
        false => Err(
            "expected two alternatives or more, each of which begins with a message to \
                      the same session (A< …)"
                .to_owned(),
        ),
    }
}

fn alternative(text: &str) -> Result<Alternative, String> {
    let crossbar = match text.strip_prefix("crossbar:") {
        Some(why) if !why.trim().is_empty() => Some(why.trim().to_owned()),
        None if text.is_empty() => None,
        _ => return Err("expected nothing, or crossbar: and the difference".to_owned()),
    };
    Ok(Alternative {
        crossbar,
        steps: Vec::new(),
    })
}

fn named(text: &str, what: &str) -> Result<String, String> {
    match text {
        "" => Err(format!("expected {what}")),
        text => Ok(text.to_owned()),
    }
}

fn announcements(text: &str) -> Result<Vec<Announcement>, String> {
    const ROLES: [&str; 6] = [
        "broker",
        "dealer",
        "publisher",
        "subscriber",
        "caller",
        "callee",
    ];
    let known = |word: &str| {
        let (role, feature) = word.split_once('.')?;
        (ROLES.contains(&role) && !feature.is_empty()).then(|| Announcement {
            role: role.to_owned(),
            feature: feature.to_owned(),
        })
    };
    let words = text.split_whitespace();
    words
        .map(|word| known(word).ok_or_else(|| format!("expected ROLE.FEATURE, found {word:?}")))
        .collect()
}

fn names(text: &str) -> Result<Vec<String>, String> {
    let words = text.split_whitespace();
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    words
        .map(|word| match is_name(word) {
            true => Ok(word.to_owned()),
            false => Err(format!(
                "expected names of letters, digits and _, found {word:?}"
            )),
        })
        .collect()
}

fn serializer(name: &str) -> Result<Serializer, String> {
    Serializer::from_name(name)
        .ok_or_else(|| format!("expected json, msgpack or cbor, found {name:?}"))
}

fn nothing_more(words: &Words<'_>) -> Result<(), String> {
    match words.is_done() {
        true => Ok(()),
        false => Err(format!(
            "expected nothing more, found {:?}",
            beginning(words.rest())
        )),
    }
}

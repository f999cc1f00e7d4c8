//! Checks that every session of a scenario has begun, and every label is bound before it is sent.

use std::collections::BTreeSet;

use crate::model::{Act, Expected, Feature, Scenario, Step};
use crate::term::{Piece, Term};

/// The labels that the player always sets: the URI prefix of this scenario, and the realm.
const ALWAYS: [&str; 2] = ["u", "realm"];

type Found = Result<(), (usize, String)>;

pub(super) fn check(feature: &Feature, scenario: &Scenario) -> Found {
    let given = feature.needs.iter().chain(&scenario.needs).cloned();
    let mut known = Known {
        sessions: BTreeSet::new(),
        labels: ALWAYS.map(str::to_owned).into_iter().chain(given).collect(),
    };
    known.follow(&scenario.steps)
}

struct Known {
    sessions: BTreeSet<char>,
    labels: BTreeSet<String>,
}

impl Known {
    fn follow(&mut self, steps: &[Step]) -> Found {
        for step in steps {
            self.look(step)?;
        }
        Ok(())
    }

    fn look(&mut self, step: &Step) -> Found {
        let line = step.line;
        match &step.act {
            Act::Connect { who, .. } | Act::Join { who, .. } => {
                if !self.sessions.insert(*who) {
                    return Err((
                        line,
                        format!("expected {who} to leave before it starts again"),
                    ));
                }
                if matches!(step.act, Act::Join { .. }) {
                    self.labels.insert(who.to_string());
                    for what in ["authid", "authrole"] {
                        self.labels.insert(format!("{what}_{who}"));
                    }
                }
                Ok(())
            }
            Act::Leave { who } | Act::Drop { who } | Act::Closed { who } => {
                self.has(*who, line)?;
                self.sessions.remove(who);
                Ok(())
            }
            Act::Octets { who, .. } | Act::Nothing { who, .. } => self.has(*who, line),
            Act::Send { who, parts } => {
                self.has(*who, line)?;
                parts.iter().try_for_each(|part| self.bound(part, line))
            }
            Act::Expect(message) => self.expect(message),
            Act::AnyOrder(messages) => messages.iter().try_for_each(|message| self.expect(message)),
            Act::Either(alternatives) => {
                // Only bindings of every course are known behind it; a session that one course ends may not be used by
                // later lines, whichever course was taken.
                let before = self.sessions.clone();
                let mut left = before.clone();
                for alternative in alternatives {
                    self.sessions.clone_from(&before);
                    self.follow(&alternative.steps)?;
                    left.retain(|who| self.sessions.contains(who));
                }
                self.sessions = left;
                Ok(())
            }
            Act::Differ(one, other) => {
                self.bound(one, line)?;
                self.bound(other, line)
            }
        }
    }

    fn expect(&mut self, message: &Expected) -> Found {
        self.has(message.who, message.line)?;
        for part in &message.parts {
            // A label by itself is bound here; one within text must be known.
            part.visit(&mut |term| {
                if let Term::Label(name) = term {
                    self.labels.insert(name.clone());
                }
            });
            self.texts(part, message.line)?;
        }
        Ok(())
    }

    fn has(&self, who: char, line: usize) -> Found {
        match self.sessions.contains(&who) {
            true => Ok(()),
            false => Err((
                line,
                format!("expected {who}: join or {who}: connect before"),
            )),
        }
    }

    fn bound(&self, term: &Term, line: usize) -> Found {
        let mut unbound = None;
        term.visit(&mut |term| {
            if let Term::Label(name) = term
                && !self.labels.contains(name)
            {
                unbound = Some(name);
            }
        });
        self.texts(term, line)?;
        self.refuse(unbound, line)
    }

    fn texts(&self, term: &Term, line: usize) -> Found {
        let mut unbound = None;
        term.visit(&mut |term| {
            let pieces: &[Piece] = match term {
                Term::Text(pieces) => pieces,
                _ => &[],
            };
            for piece in pieces {
                if let Piece::Label(name) = piece
                    && !self.labels.contains(name)
                {
                    unbound = Some(name);
                }
            }
        });
        self.refuse(unbound, line)
    }

    fn refuse(&self, unbound: Option<&String>, line: usize) -> Found {
        match unbound {
            None => Ok(()),
            Some(name) => Err((
                line,
                format!(
                    "#{name}: expected a message before that binds it, or `needs {name}` at the \
                     scenario's beginning"
                ),
            )),
        }
    }
}

//! One scenario in play: a state machine without IO.
//!
//! ```text
//! loop  match play.next_action()      Action::Done: play.outcome() is the result
//!       do it, or wait; then   play.handle(Happened::…)
//! ```
//!
//! `next_action` returns one action at a time, and the same one again until `handle` gets its result.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crosstie_wamp::{MessageType, Value};

use crate::compare::compare_message;
use crate::happened::{Action, Failure, Happened, Outcome, in_words};
use crate::labels::Labels;
use crate::model::{Act, Alternative, Expected, Scenario, Step};
use crate::show::{show_value, written};
use crate::state::{State, first_session};

pub struct Play<'s> {
    todo: VecDeque<&'s Step>,
    state: State<'s>,
    /// The state after the action.
    then: State<'s>,
    /// The session whose connection is left over.
    left_over: Option<char>,
    labels: Labels,
    /// A message that a line did not accept.
    held: BTreeMap<char, Value>,
    connected: BTreeSet<char>,
    joined: BTreeSet<char>,
    crossbar: Vec<String>,
    outcome: Option<Outcome>,
    line: usize,
}

impl<'s> Play<'s> {
    /// `labels` must have `u` and `realm`, and the scenario's prerequisites.
    pub fn new(scenario: &'s Scenario, labels: Labels) -> Self {
        Self {
            todo: scenario.steps.iter().collect(),
            state: State::Idle,
            then: State::Idle,
            left_over: None,
            labels,
            held: BTreeMap::new(),
            connected: BTreeSet::new(),
            joined: BTreeSet::new(),
            crossbar: Vec::new(),
            outcome: None,
            line: scenario.line,
        }
    }

    pub fn next_action(&mut self) -> Action<'s> {
        loop {
            if self.outcome.is_some() {
                return Action::Done;
            }
            if let Some(who) = self.state.waits_for() {
                match self.held.remove(&who) {
                    Some(message) => self.take(Happened::Message(message)),
                    None => return Action::Receive { who },
                }
                continue;
            }
            if let Some(action) = self.begin() {
                return action;
            }
        }
    }

    /// Handles the result of the last action.
    pub fn handle(&mut self, happened: Happened) {
        match (&self.state, happened) {
            (_, Happened::NotSpoken(why)) => self.outcome = Some(Outcome::Undecided(why)),
            (State::Doing, _) => self.state = std::mem::replace(&mut self.then, State::Idle),
            (State::Connecting { .. }, Happened::Done) => self.state = State::Idle,
            (State::Connecting { who }, happened) => {
                let came = in_words(&happened);
                self.fail(*who, "a connection".to_owned(), &came, "");
            }
            (State::Joining { who }, happened) => {
                let who = *who;
                self.handle_joined(who, happened);
            }
            (_, happened) => self.take(happened),
        }
    }

    /// The outcome, after [`Action::Done`].
    pub fn outcome(self) -> Outcome {
        match self.outcome {
            Some(Outcome::Passes) if !self.crossbar.is_empty() => {
                Outcome::AsCrossbar(self.crossbar)
            }
            Some(outcome) => outcome,
            None => Outcome::Undecided("it was not played to its end".to_owned()),
        }
    }

    /// Ends it from outside: it took too long.
    pub fn give_up(&mut self, why: &str) {
        let who = self.state.waits_for().unwrap_or('-');
        self.fail(who, "an end within its time".to_owned(), why, "");
    }

    /// The next step, as far as an action; `None` if a state has to be checked.
    fn begin(&mut self) -> Option<Action<'s>> {
        if let Some(who) = self.left_over.take() {
            self.state = State::Doing;
            return Some(self.drop_connection(who));
        }
        let Some(step) = self.todo.pop_front() else {
            return self.end();
        };
        self.line = step.line;
        match &step.act {
            Act::Connect { who, serializer } => {
                self.state = State::Connecting { who: *who };
                self.connected.insert(*who);
                return Some(Action::Connect {
                    who: *who,
                    serializer: *serializer,
                });
            }
            Act::Join { who, join } => {
                self.state = State::Joining { who: *who };
                self.connected.insert(*who);
                return Some(Action::Join { who: *who, join });
            }
            Act::Leave { who } => return self.leave(*who, false),
            Act::Drop { who } => {
                self.state = State::Doing;
                return Some(self.drop_connection(*who));
            }
            Act::Send { who, parts } => {
                let parts = parts.iter().map(|part| part.fill(&self.labels));
                match parts.collect::<Result<Vec<_>, _>>() {
                    Ok(parts) => return Some(self.send(*who, parts)),
                    Err(label) => {
                        let why = format!("nothing has bound {label} on this course");
                        self.fail(*who, "a value to send".to_owned(), &why, "");
                    }
                }
            }
            Act::Octets { who, bytes } => {
                self.state = State::Doing;
                return Some(Action::Octets { who: *who, bytes });
            }
            Act::Expect(expected) => self.state = State::Expecting(expected),
            Act::Closed { who } => self.state = State::Closing { who: *who },
            Act::Nothing { who, request } => {
                let parts = self.call_unregistered(*request);
                self.then = State::Nothing {
                    who: *who,
                    request: *request,
                };
                return Some(self.send(*who, parts));
            }
            Act::AnyOrder(expected) => self.state = State::AnyOrder(expected.iter().collect()),
            Act::Either(alternatives) => self.state = State::Either(alternatives),
            Act::Differ(one, other) => {
                if let (Ok(one), Ok(other)) = (one.fill(&self.labels), other.fill(&self.labels))
                    && one == other
                {
                    let why = format!("both are {}", show_value(&one));
                    self.outcome = Some(Outcome::Undecided(why));
                }
            }
        }
        None
    }

    /// All lines were played: all sessions leave, and must not have received anything more.
    fn end(&mut self) -> Option<Action<'s>> {
        if let Some(who) = self.joined.first().copied() {
            return self.leave(who, true);
        }
        if let Some(who) = self.connected.first().copied() {
            self.state = State::Doing;
            return Some(self.drop_connection(who));
        }
        self.outcome = Some(Outcome::Passes);
        None
    }

    fn leave(&mut self, who: char, at_end: bool) -> Option<Action<'s>> {
        let reason = Value::from("wamp.close.close_realm");
        let goodbye = vec![code(MessageType::Goodbye), Value::Dict(Vec::new()), reason];
        self.joined.remove(&who);
        self.then = State::Leaving { who, at_end };
        Some(self.send(who, goodbye))
    }

    fn drop_connection(&mut self, who: char) -> Action<'s> {
        self.connected.remove(&who);
        self.joined.remove(&who);
        self.held.remove(&who);
        Action::Drop { who }
    }

    fn send(&mut self, who: char, parts: Vec<Value>) -> Action<'s> {
        self.state = State::Doing;
        Action::Send {
            who,
            message: Value::List(parts),
        }
    }

    fn call_unregistered(&self, request: u64) -> Vec<Value> {
        let prefix = self.labels.value("u").and_then(Value::as_str);
        let procedure = format!("{}.nobody", prefix.unwrap_or("com"));
        vec![
            code(MessageType::Call),
            Value::from(request),
            Value::Dict(Vec::new()),
            Value::String(procedure),
        ]
    }

    fn handle_joined(&mut self, who: char, happened: Happened) {
        let Happened::Joined { session, details } = happened else {
            let came = in_words(&happened);
            return self.fail(who, "WELCOME".to_owned(), &came, "");
        };
        self.joined.insert(who);
        self.labels.set(who.to_string(), session);
        for what in ["authid", "authrole"] {
            let value = details.get(what).cloned().unwrap_or(Value::Null);
            self.labels.set(format!("{what}_{who}"), value);
        }
        self.state = State::Idle;
    }

    /// Matches a result with the expectation.
    fn take(&mut self, happened: Happened) {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle | State::Doing | State::Connecting { .. } | State::Joining { .. } => {}
            State::Expecting(expected) => self.take_expected(expected, happened),
            State::Closing { who } => match happened {
                Happened::Closed => self.closed(who),
                other => {
                    let came = in_words(&other);
                    self.fail(who, "the end of the connection".to_owned(), &came, "");
                }
            },
            State::Nothing { who, request } => self.take_marker(who, request, happened),
            State::AnyOrder(left) => self.take_any(left, happened),
            State::Either(alternatives) => self.take_either(alternatives, happened),
            State::Leaving { who, at_end } => self.take_farewell(who, at_end, happened),
        }
    }

    fn take_expected(&mut self, expected: &'s Expected, happened: Happened) {
        let fits = match &happened {
            Happened::Message(message) => self.compare(expected, message),
            _ => Err(String::new()),
        };
        match (fits, happened) {
            (Ok(()), _) => {}
            (Err(_), Happened::Message(message)) if expected.is_optional => {
                self.held.insert(expected.who, message);
            }
            (Err(_), Happened::Else(_)) if expected.is_optional => {}
            (Err(why), happened) => {
                let came = in_words(&happened);
                self.fail(
                    expected.who,
                    written(&expected.parts, expected.is_open),
                    &came,
                    &why,
                );
            }
        }
    }

    fn take_any(&mut self, mut left: Vec<&'s Expected>, happened: Happened) {
        let who = left.first().map_or('-', |expected| expected.who);
        let found = match &happened {
            Happened::Message(message) => left
                .iter()
                .position(|expected| self.compare(expected, message).is_ok()),
            _ => None,
        };
        match found {
            Some(index) => {
                left.remove(index);
                if !left.is_empty() {
                    self.state = State::AnyOrder(left);
                }
            }
            None => {
                let expected: Vec<_> = left
                    .iter()
                    .map(|expected| written(&expected.parts, expected.is_open))
                    .collect();
                let expected = format!("any of: {}", expected.join(" | "));
                self.fail(who, expected, &in_words(&happened), "");
            }
        }
    }

    fn take_either(&mut self, alternatives: &'s [Alternative], happened: Happened) {
        for alternative in alternatives {
            let Some((first, rest)) = alternative.steps.split_first() else {
                continue;
            };
            let fits = match (&first.act, &happened) {
                (Act::Expect(expected), Happened::Message(message)) => {
                    self.compare(expected, message).is_ok()
                }
                (Act::Closed { who }, Happened::Closed) => {
                    self.closed(*who);
                    true
                }
                _ => false,
            };
            if fits {
                self.crossbar.extend(alternative.crossbar.clone());
                for step in rest.iter().rev() {
                    self.todo.push_front(step);
                }
                return;
            }
        }
        let who = alternatives.first().and_then(first_session).unwrap_or('-');
        let firsts = alternatives.iter().filter_map(|alternative| {
            let first = alternative.steps.first()?;
            let text = match &first.act {
                Act::Expect(expected) => written(&expected.parts, expected.is_open),
                _ => "the end of the connection".to_owned(),
            };
            Some(match alternative.crossbar {
                Some(_) => format!("{text} (as Crossbar.io)"),
                None => text,
            })
        });
        let expected = firsts.collect::<Vec<_>>().join(", or ");
        self.fail(who, expected, &in_words(&happened), "");
    }

    fn take_marker(&mut self, who: char, request: u64, happened: Happened) {
        let is_answer = match &happened {
            Happened::Message(Value::List(parts)) => {
                let [error, result] = [MessageType::Error, MessageType::Result].map(code);
                let request = Value::from(request);
                let call = code(MessageType::Call);
                parts.first() == Some(&result) && parts.get(1) == Some(&request)
                    || parts.first() == Some(&error)
                        && parts.get(1) == Some(&call)
                        && parts.get(2) == Some(&request)
            }
            _ => false,
        };
        if !is_answer {
            let expected = format!("nothing before the answer to CALL {request}");
            self.fail(who, expected, &in_words(&happened), "");
        }
    }

    fn take_farewell(&mut self, who: char, at_end: bool, happened: Happened) {
        let is_goodbye = match &happened {
            Happened::Message(Value::List(parts)) => {
                parts.first() == Some(&code(MessageType::Goodbye))
            }
            Happened::Message(_) => false,
            // A router that only closes is judged by the scenarios about GOODBYE.
            Happened::Closed => true,
            _ => at_end,
        };
        match is_goodbye {
            true => self.left_over = Some(who),
            false => {
                let expected = match at_end {
                    true => "nothing more: every line was played".to_owned(),
                    false => "GOODBYE".to_owned(),
                };
                self.fail(who, expected, &in_words(&happened), "");
            }
        }
    }

    fn closed(&mut self, who: char) {
        self.joined.remove(&who);
        self.left_over = Some(who);
    }

    /// Labels are bound only if the whole message fits.
    fn compare(&mut self, expected: &Expected, message: &Value) -> Result<(), String> {
        let Value::List(parts) = message else {
            return Err("it is no list".to_owned());
        };
        let mut labels = self.labels.clone();
        compare_message(&expected.parts, expected.is_open, parts, &mut labels)?;
        self.labels = labels;
        let kind = parts.first().and_then(Value::as_u64);
        let kind = kind.and_then(MessageType::from_code);
        match kind {
            Some(MessageType::Welcome) => {
                self.joined.insert(expected.who);
            }
            // The session is over, so none can be left.
            Some(MessageType::Abort | MessageType::Goodbye) => {
                self.joined.remove(&expected.who);
            }
            _ => {}
        }
        Ok(())
    }

    fn fail(&mut self, who: char, expected: String, came: &str, why: &str) {
        self.outcome = Some(Outcome::Fails(Failure {
            line: self.line,
            who,
            expected,
            came: came.to_owned(),
            why: why.to_owned(),
        }));
    }
}

fn code(kind: MessageType) -> Value {
    Value::from(kind.code())
}

//! The tree against the tables: unknown, missing and refused keys, types, ranges and words.
//!
//! All problems are reported, not only the first. A tree that passes holds what its tables allow, so that
//! [`crate::view`] reads it without further checks.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::Outside;
use crate::catalogue::refused::{self, KEYS, VALUES};
use crate::catalogue::{Fallback, Key, Kind, Rule, Table, Tagged};
use crate::expectation::{expectation, expected, one_of};
use crate::near::{nearest, of_texts, places_below};
use crate::problem::Problem;
use crate::secrets::{is_secret, is_secret_key};
use crate::tree::{Entry, Node, Span, Value, quoted};
use crate::variables::{expanded, file_of_secret, variable};

/// Checks `root`, named `subject` in messages, against `kind`, and inserts values from outside; without `outside`,
/// `$VARIABLE` is ordinary text. Returns the variables that secrets come from.
pub(crate) fn check(
    root: &mut Node,
    kind: &Kind,
    subject: &str,
    outside: Option<Outside<'_>>,
    problems: &mut Vec<Problem>,
) -> BTreeSet<String> {
    let mut checker = Checker {
        is_secret: false,
        secret_variables: BTreeSet::new(),
        outside,
        problems,
    };
    checker.value(root, kind, subject);
    checker.secret_variables
}

struct Checker<'a> {
    /// The value is a secret, and messages do not show it.
    is_secret: bool,
    /// The environment variables that secrets came from.
    secret_variables: BTreeSet<String>,
    outside: Option<Outside<'a>>,
    problems: &'a mut Vec<Problem>,
}

impl Checker<'_> {
    fn object(&mut self, node: &mut Node, table: &'static Table, subject: &str) {
        let Value::Object(entries) = &mut node.value else {
            return self.mismatch(node, subject, "an object");
        };
        for entry in entries.iter_mut() {
            match table.key(&entry.key) {
                Some(key) => self.entry(entry, key, table),
                None => self.stray(entry, table),
            }
        }
        for key in table.keys {
            let required = matches!(key.fallback, Fallback::Required);
            if required && entries.iter().all(|entry| entry.key != key.name) {
                let message = format!("{} needs {}", table.name, quoted(key.name));
                let problem = Problem::error(node.span, message);
                self.problems.push(problem.note(expectation(&key.kind)));
            }
        }
    }

    fn entry(&mut self, entry: &mut Entry, key: &'static Key, table: &'static Table) {
        let mut subject = format!("{} in {}", quoted(key.name), table.name);
        if let Some(reason) = key.inert {
            let message = format!("{subject} has no effect: {reason}");
            self.problems
                .push(Problem::warning(entry.key_span, message));
        }
        if key.environment {
            self.note_secret(key.name, &entry.node);
            if !self.substitute(&mut entry.node, &key.kind, &mut subject) {
                return;
            }
        }
        self.secret(is_secret_key(key.name), |checker| {
            checker.value(&mut entry.node, &key.kind, &subject);
        });
    }

    /// Checks the value of a key.
    fn secret(&mut self, is_secret: bool, check: impl FnOnce(&mut Self)) {
        let outside = std::mem::replace(&mut self.is_secret, is_secret);
        check(self);
        self.is_secret = outside;
    }

    /// Remembers the variable that the key of a secret names.
    fn note_secret(&mut self, key: &str, node: &Node) {
        let variable = variable(node).filter(|_| is_secret(key));
        self.secret_variables.extend(variable.map(str::to_owned));
    }

    /// Replaces `$VARIABLE` by the variable's value. Returns whether a value is left to check.
    fn substitute(&mut self, node: &mut Node, kind: &Kind, subject: &mut String) -> bool {
        if let Some(file) = file_of_secret(node, kind) {
            return self.read_secret(node, &file, subject);
        }
        let is_expanded = matches!(kind, Kind::Text(Rule::SocketPath | Rule::HeaderValue));
        if let Some(outside) = self.outside.filter(|_| is_expanded) {
            return self.expand(node, outside);
        }
        let variable = variable(node).map(str::to_owned);
        let Some((outside, variable)) = self.outside.zip(variable) else {
            return true;
        };
        let found = (outside.environment)(&variable);
        node.value = match (kind, found) {
            (Kind::Boolean, found) => Value::Boolean(found.is_some_and(|text| !text.is_empty())),
            (Kind::Integer { .. }, Some(text)) => {
                let integer = text.parse().map(Value::Integer);
                integer.unwrap_or(Value::Text(text))
            }
            (_, Some(text)) => Value::Text(text),
            (_, None) => {
                let message = format!("the environment variable {variable} is not set");
                self.problems.push(Problem::error(node.span, message));
                return false;
            }
        };
        *subject = format!("{subject} (from the environment variable {variable})");
        true
    }

    /// Replaces every `$VARIABLE` in a text, as a shell does. Returns whether a value is left to check.
    fn expand(&mut self, node: &mut Node, outside: Outside<'_>) -> bool {
        let Value::Text(text) = &node.value else {
            return true;
        };
        let named = RefCell::new(Vec::new());
        let expanded = expanded(text, &|name| {
            named.borrow_mut().push(name.to_owned());
            (outside.environment)(name)
        });
        if self.is_secret {
            self.secret_variables.extend(named.into_inner());
        }
        match expanded {
            Ok(text) => {
                node.value = Value::Text(text);
                true
            }
            Err(variable) => {
                let message = format!("the environment variable {variable} is not set");
                self.problems.push(Problem::error(node.span, message));
                false
            }
        }
    }

    /// Replaces `{file: PATH}` by the file's first line. Returns whether a value is left to check.
    fn read_secret(&mut self, node: &mut Node, file: &str, subject: &mut String) -> bool {
        let read = match self.outside {
            Some(outside) => (outside.secret)(file),
            None => Err("a file is read only where a node's configuration names it".to_owned()),
        };
        match read {
            Ok(secret) => {
                node.value = Value::Text(secret);
                *subject = format!("{subject} (from the file {})", quoted(file));
                true
            }
            Err(why) => {
                let message = format!("{subject} cannot be read from {}: {why}", quoted(file));
                self.problems.push(Problem::error(node.span, message));
                false
            }
        }
    }

    fn value(&mut self, node: &mut Node, kind: &Kind, subject: &str) {
        let kind = match kind {
            Kind::Either(one, other) => match (takes(one, node), takes(other, node)) {
                (true, _) => one,
                (false, true) => other,
                (false, false) => return self.mismatch(node, subject, &expected(kind)),
            },
            _ => kind,
        };
        match (kind, &mut node.value) {
            (Kind::Boolean, Value::Boolean(_)) => {}
            (Kind::Only(only, reason), Value::Boolean(value)) => {
                if value != only {
                    let message =
                        format!("{subject} can only be {only}, which it counts as: {reason}");
                    self.problems.push(Problem::warning(node.span, message));
                }
            }
            (Kind::Always(only, reason), Value::Boolean(value)) => {
                if value != only {
                    let message = format!("{subject} can only be {only}: {reason}");
                    self.problems.push(Problem::error(node.span, message));
                }
            }
            (&Kind::Integer { min, max, or_zero }, Value::Integer(value))
                if (min..=max).contains(value) || (or_zero && *value == 0) => {}
            (Kind::Numbers { path, numbers }, Value::Integer(value)) => {
                let value = *value;
                if !numbers.contains(&value) {
                    self.wrong_word(node, path, &value.to_string(), kind, subject);
                }
            }
            (Kind::Text(rule), Value::Text(text)) if rule.holds(text) => {}
            (Kind::OneOf(words), Value::Text(text)) => {
                if !words.words.contains(&text.as_str()) {
                    let text = text.clone();
                    self.wrong_word(node, words.path, &text, kind, subject);
                }
            }
            (Kind::List { of, least }, Value::List(items)) if items.len() >= *least => {
                self.leave_out(items, of, *least, subject);
                self.items(items, of, subject);
            }
            (Kind::OneOrMore(of), Value::List(items)) => self.items(items, of, subject),
            (Kind::OneOrMore(of), _) => self.value(node, of, subject),
            (Kind::OrNull(_), Value::Null) => {}
            (Kind::OrNull(of), _) => self.value(node, of, subject),
            (Kind::Map { .. }, Value::Object(entries)) => self.map(entries, kind, subject),
            (Kind::Json, _) => {}
            (Kind::Object(table), _) => self.object(node, table, subject),
            (Kind::Tagged(tagged), _) => self.tagged(node, tagged, subject),
            _ => self.mismatch(node, subject, &expected(kind)),
        }
    }

    fn map(&mut self, entries: &mut [Entry], kind: &Kind, subject: &str) {
        let Kind::Map {
            keys,
            of,
            environment,
        } = kind
        else {
            return;
        };
        for entry in entries {
            let mut subject = format!("{} in {subject}", quoted(&entry.key));
            if !keys.holds(&entry.key) {
                let message = format!("the key {subject} must be {}", keys.words());
                self.problems.push(Problem::error(entry.key_span, message));
            }
            if !*environment || self.substitute(&mut entry.node, of, &mut subject) {
                let is_secret = self.is_secret || is_secret(&entry.key);
                self.secret(is_secret, |checker| {
                    checker.value(&mut entry.node, of, &subject);
                });
            }
        }
    }

    /// Removes the items that a node can do without, unless too few would remain.
    fn leave_out(&mut self, items: &mut Vec<Node>, of: &Kind, least: usize, subject: &str) {
        let dispensable = |item: &Node| known_of(item, of).filter(|known| known.when.is_left_out());
        let count = items
            .iter()
            .filter(|item| dispensable(item).is_some())
            .count();
        if items.len() - count < least {
            return;
        }
        items.retain(|item| {
            let Some(known) = dispensable(item) else {
                return true;
            };
            let (name, when, why) = (quoted(known.name), known.when.words(), known.why);
            let message = format!("{name} as an item of {subject} is {when}: {why}");
            let at = item.entry("type").map_or(item.span, |tag| tag.node.span);
            self.problems.push(Problem::warning(at, message));
            false
        });
    }

    fn items(&mut self, items: &mut [Node], of: &Kind, subject: &str) {
        let subject = format!("an item of {subject}");
        for item in items {
            self.value(item, of, &subject);
        }
    }

    fn tagged(&mut self, node: &mut Node, tagged: &'static Tagged, subject: &str) {
        if !matches!(node.value, Value::Object(_)) {
            return self.mismatch(node, subject, "an object");
        }
        let names = tagged.variants.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.collect();
        let Some(tag) = node.entry("type") else {
            let message = format!("{} needs \"type\"", tagged.name);
            let problem = Problem::error(node.span, message);
            return self
                .problems
                .push(problem.note(format!("it must be {}", one_of(&names))));
        };
        let subject = format!("\"type\" of {}", tagged.name);
        let Value::Text(name) = &tag.node.value else {
            return self.mismatch(&tag.node, &subject, &one_of(&names));
        };
        let variant = tagged.variants.iter().find(|(known, _)| known == name);
        match variant {
            Some((_, table)) => self.object(node, table, &subject),
            None => {
                let problem = wrong_word(tag.node.span, tagged.path, name, &names, &subject);
                self.problems.push(problem);
            }
        }
    }

    /// A key that the table does not have.
    fn stray(&mut self, entry: &Entry, table: &'static Table) {
        let name = quoted(&entry.key);
        if let Some(known) = refused::find(KEYS, table.path, &entry.key) {
            let (when, why) = (known.when.words(), known.why);
            let message = format!("{name} in {} is {when}: {why}", table.name);
            return self.problems.push(match known.when.is_left_out() {
                true => Problem::warning(entry.key_span, message),
                false => Problem::error(entry.key_span, message),
            });
        }
        let mut message = format!("unknown key {name} in {}", table.name);
        let near = table.keys.iter().map(|key| key.name);
        let near = near.chain(refused::at(KEYS, table.path).map(|refused| refused.name));
        let places = places_below(table, &entry.key);
        if !places.is_empty() {
            message = format!("{message}; it belongs in {}", one_of(&places));
        } else if let Some(near) = nearest(&entry.key, near) {
            message = format!("{message}; did you mean {}?", quoted(near));
        } else if let Some(map) = table.keys.iter().find(|key| of_texts(&key.kind)) {
            message = format!("{message}; it belongs in {}", quoted(map.name));
        }
        let taken = table.keys.iter().filter(|key| key.inert.is_none());
        let taken: Vec<&str> = taken.map(|key| key.name).collect();
        let taken = if taken.is_empty() {
            "no keys are known here".to_owned()
        } else {
            format!("known here: {}", taken.join(", "))
        };
        self.problems
            .push(Problem::error(entry.key_span, message).note(taken));
    }

    fn wrong_word(&mut self, node: &Node, path: &str, word: &str, kind: &Kind, subject: &str) {
        let problem = match kind {
            Kind::OneOf(words) => wrong_word(node.span, path, word, words.words, subject),
            _ => match refused::find(VALUES, path, word) {
                Some(known) => refused_word(node.span, word, known, subject),
                None => return self.mismatch(node, subject, &expected(kind)),
            },
        };
        self.problems.push(problem);
    }

    fn mismatch(&mut self, node: &Node, subject: &str, expected: &str) {
        let found = match self.is_secret {
            true => node.describe_kind(),
            false => node.describe(),
        };
        let message = format!("{subject} must be {expected}, found {found}");
        self.problems.push(Problem::error(node.span, message));
    }
}

/// The problem of a text that is none of the expected words.
fn wrong_word(at: Span, path: &str, word: &str, words: &[&str], subject: &str) -> Problem {
    if let Some(known) = refused::find(VALUES, path, word) {
        return refused_word(at, &quoted(word), known, subject);
    }
    let expected = one_of(words);
    let mut message = format!("{subject} must be {expected}, found {}", quoted(word));
    let known = refused::at(VALUES, path).map(|refused| refused.name);
    if let Some(near) = nearest(word, words.iter().copied().chain(known)) {
        message = format!("{message}; did you mean {}?", quoted(near));
    }
    Problem::error(at, message)
}

/// The known reason for refusing an item of a list: a word, or an object by its type.
fn known_of(item: &Node, of: &Kind) -> Option<&'static refused::Refused> {
    let (path, value) = match of {
        Kind::OneOf(words) => (words.path, &item.value),
        Kind::Tagged(tagged) => (tagged.path, &item.entry("type")?.node.value),
        _ => return None,
    };
    match value {
        Value::Text(name) => refused::find(VALUES, path, name),
        _ => None,
    }
}

fn refused_word(at: Span, word: &str, known: &refused::Refused, subject: &str) -> Problem {
    // A single value cannot be left out as an item of a list can.
    let when = match known.when.is_left_out() {
        true => refused::When::Never.words(),
        false => known.when.words(),
    };
    let message = format!("{word} as {subject} is {when}: {}", known.why);
    Problem::error(at, message)
}

/// Whether a value of this form can be of this kind, whatever its content.
fn takes(kind: &Kind, node: &Node) -> bool {
    match kind {
        Kind::Boolean => matches!(node.value, Value::Boolean(_)),
        Kind::OneOf(_) | Kind::Text(_) => matches!(node.value, Value::Text(_)),
        Kind::List { .. } => matches!(node.value, Value::List(_)),
        Kind::Tagged(_) | Kind::Object(_) => matches!(node.value, Value::Object(_)),
        _ => true,
    }
}

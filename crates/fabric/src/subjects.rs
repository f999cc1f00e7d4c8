//! Converts URIs and patterns to subjects, and back.
//!
//! `W1.<realm>.e.<topic>`: each component of a URI is a token of the subject. Characters that a token cannot contain
//! become `=HH`, and an empty component `=`. A wildcard pattern is thus a pattern of the engine, and so is a prefix
//! that ends with a dot. For any other prefix the parent is subscribed, and the realm filters the events.

use std::fmt::Write as _;

use crosstie_routing::Pattern;
use crosstie_wamp::MatchPolicy;

/// Maximum length of a subject. By default NATS accepts lines of 4,096 bytes, with a verb, numbers and the subject.
pub const SUBJECT_BYTES_MAX: usize = 3_840;

/// The subjects of one realm.
#[derive(Clone, Debug)]
pub struct Subjects {
    /// With a trailing dot.
    events: String,
    all: String,
    nodes: String,
}

impl Subjects {
    pub fn new(realm: &str) -> Self {
        let mut root = "W1.".to_owned();
        put_word(realm, &mut root);
        // A realm's name is one token, with its dots escaped.
        let root = format!("W1.{}", root["W1.".len()..].replace('.', "=2E"));
        Self {
            events: format!("{root}.e."),
            all: format!("{root}.c"),
            nodes: format!("{root}.n."),
        }
    }

    /// A pattern that matches all of them, and none of another realm.
    pub fn every(&self) -> String {
        let root = self.all.strip_suffix('c').unwrap_or(&self.all);
        format!("{root}>")
    }

    /// The pattern of claims on procedures in the bucket.
    pub fn granted(&self) -> String {
        let root = self.all.strip_suffix('c').unwrap_or(&self.all);
        format!("{root}k.>")
    }

    /// The bucket's name.
    pub fn bucket(&self) -> String {
        let root = self.all.strip_suffix(".c").unwrap_or(&self.all);
        root.replace('.', "_")
    }

    /// The key of a claim on a pattern; `None` if it is too long.
    pub fn of_claim(&self, pattern: Pattern<'_>) -> Option<String> {
        let root = self.all.strip_suffix('c').unwrap_or(&self.all);
        let mut word = String::new();
        put_word(pattern.topic, &mut word);
        // A single token, with its dots escaped.
        let word = word.replace('.', "=2E");
        let subject = format!("{root}k.r.{}.{word}", pattern.match_policy.name());
        (subject.len() <= SUBJECT_BYTES_MAX).then_some(subject)
    }

    /// The lease of a node.
    pub fn of_lease(&self, lease: &str) -> String {
        let root = self.all.strip_suffix('c').unwrap_or(&self.all);
        format!("{root}k.n.{lease}")
    }

    /// The subject to which all nodes subscribe.
    pub fn all(&self) -> &str {
        &self.all
    }

    /// Whether it is the subject of an event.
    pub fn is_topic(&self, subject: &str) -> bool {
        subject.starts_with(&self.events)
    }

    /// The subject of one node.
    pub fn of_node(&self, incarnation: u64) -> String {
        let mut subject = String::new();
        self.write_node(incarnation, &mut subject);
        subject
    }

    /// Writes the subject of one node to `out`.
    pub(crate) fn write_node(&self, incarnation: u64, out: &mut String) {
        out.clear();
        out.push_str(&self.nodes);
        for octet in incarnation.to_be_bytes() {
            for digit in [octet >> 4, octet & 15] {
                out.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
            }
        }
    }

    /// Writes the subject of a topic to `out`. Returns whether it is short enough.
    pub fn write_topic(&self, topic: &str, out: &mut String) -> bool {
        out.clear();
        out.push_str(&self.events);
        put_words(topic, "=", out);
        out.len() <= SUBJECT_BYTES_MAX
    }

    /// The subscription for a pattern; `None` if no short enough subject would match.
    pub fn of_pattern(&self, pattern: Pattern<'_>) -> Option<String> {
        let mut subject = self.events.clone();
        match pattern.match_policy {
            MatchPolicy::Exact => put_words(pattern.topic, "=", &mut subject),
            MatchPolicy::Wildcard => put_words(pattern.topic, "*", &mut subject),
            MatchPolicy::Prefix => {
                if let Some((parent, _)) = pattern.topic.rsplit_once('.') {
                    put_words(parent, "=", &mut subject);
                    subject.push('.');
                }
                subject.push('>');
            }
        }
        (subject.len() <= SUBJECT_BYTES_MAX).then_some(subject)
    }

    /// Writes the topic of a subject to `out`. Returns whether the subject is that of a topic.
    pub fn read_topic(&self, subject: &str, out: &mut String) -> bool {
        out.clear();
        let Some(words) = subject.strip_prefix(&self.events) else {
            return false;
        };
        for (place, word) in words.split('.').enumerate() {
            if place > 0 {
                out.push('.');
            }
            if word != "=" && read_word(word, out).is_none() {
                return false;
            }
        }
        true
    }
}

fn put_words(uri: &str, empty: &str, out: &mut String) {
    for (place, component) in uri.split('.').enumerate() {
        if place > 0 {
            out.push('.');
        }
        match component {
            "" => out.push_str(empty),
            component => put_word(component, out),
        }
    }
}

fn put_word(component: &str, out: &mut String) {
    for character in component.chars() {
        if is_plain(character) {
            out.push(character);
            continue;
        }
        for octet in character.encode_utf8(&mut [0; 4]).bytes() {
            // Writing to a string cannot fail.
            let _ = write!(out, "={octet:02X}");
        }
    }
}

/// Whether a character needs no escape. Letters of any alphabet do not.
fn is_plain(character: char) -> bool {
    match character {
        '*' | '>' | '=' => false,
        other => !other.is_control() && !other.is_whitespace(),
    }
}

fn read_word(word: &str, out: &mut String) -> Option<()> {
    let mut octets = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((octet, behind)) = rest.split_first() {
        rest = behind;
        if *octet != b'=' {
            octets.push(*octet);
            continue;
        }
        let (digits, behind) = rest.split_first_chunk::<2>()?;
        let digit = |octet: u8| match octet {
            b'0'..=b'9' => Some(octet - b'0'),
            b'A'..=b'F' => Some(octet - b'A' + 10),
            _ => None,
        };
        octets.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = behind;
    }
    out.push_str(std::str::from_utf8(&octets).ok()?);
    Some(())
}

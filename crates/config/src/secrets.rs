//! Blanking of secrets, which an excerpt or a log must not show.
//!
//! An excerpt may come from a file that no parser accepts. So this code reads the text alone and prefers to blank too
//! much: after the key of a secret, all that can be its value, over all of its lines.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::near::nearest;

/// The text with a `*` for each character of a secret. Lines and columns do not change.
pub(crate) fn blanked(text: &str) -> String {
    let mut secrets = secrets(text).into_iter().peekable();
    let mut shown = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        while secrets.next_if(|secret| secret.end <= at).is_some() {}
        let is_secret = secrets.peek().is_some_and(|secret| secret.contains(&at));
        shown.push(match is_secret && !character.is_whitespace() {
            true => '*',
            false => character,
        });
    }
    shown
}

/// The same for a key of a table, which is asked for each of ten thousand objects.
pub(crate) fn is_secret_key(key: &'static str) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<&'static str, bool>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| *known.entry(key).or_insert_with(|| is_secret(key)))
}

/// Whether a key of this name holds a secret.
pub fn is_secret(key: &str) -> bool {
    const WORDS: &[&str] = &[
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "secret",
        "ticket",
        "token",
        "seed",
        "salt",
        "hash",
        "credential",
        "private",
        "privkey",
        "pkey",
        "stored-key",
        "stored_key",
        "server-key",
        "server_key",
        "apikey",
        "api_key",
        "api-key",
        "access_key",
    ];
    let key = key.to_ascii_lowercase();
    if key.ends_with("algorithm") {
        return false;
    }
    WORDS.iter().any(|word| key.contains(word))
        // Those of requests may hold a key, by any name.
        || key == "headers"
        // Misspelt keys count too: an unknown key is shown in an excerpt.
        || nearest(&key, ["password", "password_hash", "secret"].into_iter()).is_some()
}

/// The ranges of the secrets, in order; none overlap.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let is_json = text.trim_start().starts_with(['{', '[']);
    let mut found: Vec<Range<usize>> = Vec::new();
    let separators = text.match_indices([':', '=', '@']);
    for (at, separator) in separators {
        let done = found.last().map_or(0, |last| last.end);
        if at < done {
            continue;
        }
        let secret = match separator {
            "@" => password_of_url(text, at),
            _ => key_before(text, at).and_then(|key| match separator {
                ":" => Value { text, key, is_json }.range(at + 1),
                _ => argument(text, &key, at + 1),
            }),
        };
        found.extend(secret.filter(|secret| secret.start >= done));
    }
    found
}

/// The key that ends before `at`, quoted or not.
fn key_before(text: &str, at: usize) -> Option<Range<usize>> {
    let before = text[..at].trim_end_matches([' ', '\t', '\r', '\n']);
    let quote = before.chars().next_back()?;
    if matches!(quote, '"' | '\'') {
        let end = before.len() - 1;
        let start = before[..end].rfind(quote)? + 1;
        return Some(start..end);
    }
    let is_of_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    let start = before.trim_end_matches(is_of_key).len();
    (start < before.len()).then_some(start..before.len())
}

/// `password=…` in an argument or a query.
fn argument(text: &str, key: &Range<usize>, start: usize) -> Option<Range<usize>> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '&' | ']' | '}');
    let end = text[start..]
        .find(is_end)
        .map_or(text.len(), |at| start + at);
    is_secret(&text[key.clone()]).then_some(start..end)
}

/// The password in `scheme://user:password@host`.
fn password_of_url(text: &str, at: usize) -> Option<Range<usize>> {
    let is_outside = |c: char| c.is_whitespace() || matches!(c, '"' | '\'');
    let start = text[..at].rfind(is_outside).map_or(0, |before| before + 1);
    let end = text[at..]
        .find(is_outside)
        .map_or(text.len(), |after| at + after);
    // A password that is not encoded may contain an `@`.
    let at = text[..end].rfind('@')?;
    let user = start + text[start..at].rfind("://")? + "://".len();
    let password = user + text[user..at].find(':')? + 1;
    Some(password..at)
}

/// The value after a key and its colon.
struct Value<'t> {
    text: &'t str,
    key: Range<usize>,
    is_json: bool,
}

impl Value<'_> {
    /// The value that begins after `colon_end`, if it is a secret.
    fn range(&self, colon_end: usize) -> Option<Range<usize>> {
        let name = &self.text[self.key.clone()];
        let is_key = name.eq_ignore_ascii_case("key");
        if !is_key && !is_secret(name) {
            return None;
        }
        let start = self.start(colon_end);
        // The name of an authentication method, whose value is its users and not a secret.
        let first = self.text[start..].chars().next()?;
        let is_section = name.eq_ignore_ascii_case("ticket");
        if is_section && (first == '{' || self.is_block_mapping(colon_end)) {
            return None;
        }
        let end = self.end(start, first);
        // The path of a private key is not secret.
        let is_path = is_key && self.text[start..end].contains('.');
        (!is_path).then_some(start..end)
    }

    /// The position behind blanks and behind YAML's tags and anchors.
    fn start(&self, from: usize) -> usize {
        let mut start = from;
        loop {
            let rest = &self.text[start..];
            start += rest.len() - rest.trim_start().len();
            let rest = &self.text[start..];
            if self.is_json || !rest.starts_with(['&', '!']) {
                return start;
            }
            start += rest.find(char::is_whitespace).unwrap_or(rest.len());
        }
    }

    fn end(&self, start: usize, first: char) -> usize {
        let quoted = || end_of_quoted(self.text, start);
        match first {
            '"' | '\'' => quoted(),
            '{' | '[' => end_of_brackets(self.text, start),
            _ if self.is_in_brackets() => {
                let rest = &self.text[start..];
                start + rest.find([',', '}', ']']).unwrap_or(rest.len())
            }
            _ => self.end_of_block(start),
        }
    }

    /// The end of a YAML scalar without quotes, a block scalar or a list: all lines indented deeper than the key, or
    /// items beside it.
    fn end_of_block(&self, start: usize) -> usize {
        let column = self.column();
        let mut end = start;
        for (number, line) in self.text[start..].split_inclusive('\n').enumerate() {
            let inner = line.trim_start_matches(' ');
            let indent = line.len() - inner.len();
            let is_item = indent == column && inner.starts_with("- ");
            let is_inside = inner.trim().is_empty() || indent > column || is_item;
            if number > 0 && !is_inside {
                break;
            }
            end += line.len();
        }
        end
    }

    /// Whether keys follow on lines of their own.
    fn is_block_mapping(&self, colon_end: usize) -> bool {
        let rest = &self.text[colon_end..];
        let (here, next) = rest.split_once('\n').unwrap_or((rest, ""));
        here.trim().is_empty() && next.lines().next().is_some_and(|line| line.contains(':'))
    }

    fn is_in_brackets(&self) -> bool {
        self.is_json || self.line_before().contains(['{', '['])
    }

    /// The indentation of the key.
    fn column(&self) -> usize {
        self.line_before().trim_end_matches(['"', '\'']).len()
    }

    fn line_before(&self) -> &str {
        let before = &self.text[..self.key.start];
        &before[before.rfind('\n').map_or(0, |at| at + 1)..]
    }
}

/// The byte after the quotation that begins at `start`, or the end of the text.
fn end_of_quoted(text: &str, start: usize) -> usize {
    let mut characters = text[start..].char_indices();
    let Some((_, quote)) = characters.next() else {
        return text.len();
    };
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if quote == '"' => {
                characters.next();
            }
            // YAML writes a quote in single quotes twice.
            '\'' if quote == '\'' && text[start + at + 1..].starts_with('\'') => {
                characters.next();
            }
            _ if character == quote => return start + at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The byte after the brackets that begin at `start`, or the end of the text.
fn end_of_brackets(text: &str, start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(character) = text[at..].chars().next() {
        let next = match character {
            '"' | '\'' => end_of_quoted(text, at),
            _ => at + character.len_utf8(),
        };
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at = next;
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each secret in the texts contains `hunter2`; visible values are `seen`.
    #[test]
    fn no_secret_is_shown() {
        for text in [
            r#"{"name": "seen", "password": "hunter2", "tags": ["seen"]}"#,
            r#"{"password": "a\"hunter2", "tags": ["seen"]}"#,
            r#"{"password": hunter2, "tags": ["seen"]}"#,
            r#"{"password_hash": ["hunter2", {"x": "hunter2"}], "name": "seen"}"#,
            r#"{"password": {"x": "hunter2]}"}, "name": "seen"}"#,
            "{\"secret\" :\n  \"hunter2\",\n \"name\": \"seen\"}",
            r#"{"pasword": "hunter2", "name": "seen"}"#,
            r#"{"passwort": "hunter2", "name": "seen"}"#,
            r#"{"ticket": {"principals": {"joe": {"ticket": "hunter2", "role": "seen"}}}}"#,
            r#"{"ticket": {"key": "hunter2", "role": "seen"}}"#,
            r#"{"scram": {"stored-key": "hunter2", "salt": "hunter2", "role": "seen"}}"#,
            r#"{"vars": {"NOVA_PASSWORD": "hunter2", "LANG": "seen"}}"#,
            r#"{"url": "rabbit://seen:hunter2@host", "name": "seen"}"#,
            r#"{"url": "rabbit://seen:hun@hunter2@host", "name": "seen"}"#,
            r#"{"arguments": ["--password=hunter2", "seen"]}"#,
            r#"{"tls": {"key": "seen.key"}, "token": 7000"#,
            "password: hunter2 # no, hunter2, {hunter2}\nname: seen",
            "users:\n  - password: hunter2\n    name: seen",
            "users:\n  - name: seen\n    password: hunter2\n      and hunter2\n    tags: [seen]",
            "password: |\n  hunter2\n\n  hunter2\nname: seen",
            "- password: &it >-\n    hunter2\n  name: seen",
            "password:\n  hunter2\nname: seen",
            "secrets:\n- hunter2\n- hunter2\nname: seen",
            "password:\n  first: hunter2\nname: seen",
            "password: 'it''s hunter2'\nname: seen",
            "password: \"hunter2\n  hunter2\"\nname: seen",
            "user: {name: seen, password: hunter2, tags: [seen]}",
            "ticket:\n  principals:\n    joe: {ticket: hunter2, role: seen}",
            "seed: hunter2",
            "password: 'hunter2 is not closed\nname: hunter2",
            "password",
            "password:",
            ":",
            "\"password\": \u{1f600}hunter2\u{1f600}",
        ] {
            let shown = blanked(text);
            assert!(!shown.contains("hunter2"), "{text}\n{shown}");
            let seen = |text: &str| text.matches("seen").count();
            assert_eq!(seen(&shown), seen(text), "{text}\n{shown}");
            let shape = |text: &str| -> Vec<usize> {
                text.lines().map(|line| line.chars().count()).collect()
            };
            assert_eq!(shape(&shown), shape(text), "{text}\n{shown}");
        }
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        for text in [
            r#"{"key": "tls/server.key", "certificate": "server.pem"}"#,
            r#"{"hashing_algorithm": "rabbit_password_hashing_md5"}"#,
            r#"{"url": "ws://localhost:8080/ws", "realm": "realm1", "port": 8080}"#,
            "realm: realm1\nport: 8080\nuri: com.shop.*",
        ] {
            assert_eq!(blanked(text), text);
        }
    }
}

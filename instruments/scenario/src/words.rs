//! The words of a line: values, wildcards and labels, from text.
//!
//! ```text
//! value  number · true false null · "text in JSON" · text · 0x00ff (bytes) · - (empty text)
//!        [value, …]   {key=value, flag, !key}   #label   *   *id *number *text *flag *list *dict *bytes
//! ```

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Serializer, Value};

use crate::term::{Entry, Item, Kind, Piece, Term};

/// Maximum depth of nested lists and dictionaries.
const DEPTH_MAX: usize = 32;

/// Reads the rest of a line, from its front.
pub(crate) struct Words<'t> {
    rest: &'t str,
}

type Read<T> = Result<T, String>;

impl<'t> Words<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { rest: text.trim() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'t str {
        self.rest
    }

    /// The text up to the next space.
    pub(crate) fn word(&mut self) -> Option<&'t str> {
        let end = self.rest.find(char::is_whitespace);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        (!word.is_empty()).then_some(word)
    }

    /// The next value of the line, and the space behind it.
    pub(crate) fn term(&mut self) -> Read<Term> {
        let term = self.value(DEPTH_MAX)?;
        if !self.rest.is_empty() && !self.rest.starts_with(char::is_whitespace) {
            return Err(format!(
                "expected a space before {:?}",
                beginning(self.rest)
            ));
        }
        self.skip_space();
        Ok(term)
    }

    fn value(&mut self, depth_left: usize) -> Read<Term> {
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(format!(
                "expected at most {DEPTH_MAX} lists and dictionaries inside one another"
            ));
        };
        match self.rest.chars().next() {
            Some('[') => self.list(depth_left),
            Some('{') => self.dict(depth_left),
            Some('"') => self.quoted().map(Term::Value),
            Some('*') => self.wildcard(),
            Some(_) => plain(self.plain_word()?),
            None => Err("expected a value, and the line ends".to_owned()),
        }
    }

    fn list(&mut self, depth_left: usize) -> Read<Term> {
        self.take("[");
        let mut items = Vec::new();
        while !self.closes("]", items.is_empty())? {
            if self.rest.starts_with("...") {
                self.take("...");
                if items.last() == Some(&Item::Rest) {
                    return Err("expected a value between two `...`".to_owned());
                }
                items.push(Item::Rest);
            } else {
                items.push(Item::One(self.value(depth_left)?));
            }
        }
        Ok(Term::List(items))
    }

    fn dict(&mut self, depth_left: usize) -> Read<Term> {
        self.take("{");
        let mut entries: Vec<Entry> = Vec::new();
        let mut is_open = false;
        while !self.closes("}", entries.is_empty() && !is_open)? {
            if self.rest.starts_with("...") {
                self.take("...");
                is_open = true;
                continue;
            }
            let absent = self.rest.starts_with('!');
            if absent {
                self.take("!");
            }
            let key = self.key()?;
            if entries.iter().any(|entry| entry.key == key) {
                return Err(format!("expected each key once; {key} is there twice"));
            }
            self.skip_space();
            let value = if self.rest.starts_with(['=', ':']) {
                if absent {
                    return Err(format!(
                        "expected no value for !{key}, which must not be there"
                    ));
                }
                self.rest = self.rest[1..].trim_start();
                Some(self.value(depth_left)?)
            } else {
                (!absent).then_some(Term::Value(Value::Bool(true)))
            };
            entries.push(Entry { key, value });
        }
        Ok(Term::Dict { entries, is_open })
    }

    fn key(&mut self) -> Read<String> {
        if !self.rest.starts_with('"') {
            return self.plain_word().map(str::to_owned);
        }
        match self.quoted()? {
            Value::String(key) => Ok(key),
            _ => Err("expected text as a key".to_owned()),
        }
    }

    /// Whether the list or dictionary ends here; takes the comma before a further part.
    fn closes(&mut self, end: &str, is_first: bool) -> Read<bool> {
        self.skip_space();
        if self.rest.starts_with(end) {
            self.take(end);
            return Ok(true);
        }
        if is_first {
            return Ok(false);
        }
        if !self.rest.starts_with(',') {
            let found = beginning(self.rest);
            return Err(format!("expected , or {end}, found {found:?}"));
        }
        self.take(",");
        self.skip_space();
        Ok(false)
    }

    /// Text, or bytes, in JSON's form.
    fn quoted(&mut self) -> Read<Value> {
        let mut is_escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            ends
        });
        let Some((end, _)) = end else {
            return Err("expected a quotation mark at the end of the text".to_owned());
        };
        let (quoted, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        codec::decode_value(Serializer::Json, quoted.as_bytes(), &Limits::default())
            .map_err(|error| format!("expected text as JSON has it: {error}"))
    }

    fn wildcard(&mut self) -> Read<Term> {
        self.take("*");
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic());
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        let Some(kind) = kind else {
            let names = Kind::ALL.map(|kind| format!("*{}", kind.name())).join(", ");
            return Err(format!("*{name}: expected one of {names}"));
        };
        self.rest = rest;
        Ok(Term::Any(kind))
    }

    fn plain_word(&mut self) -> Read<&'t str> {
        let ends = |c: char| c.is_whitespace() || ",=[]{}\"".contains(c);
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        if self.rest.is_empty() {
            return Err("expected a value, and the line ends".to_owned());
        }
        if end == 0 {
            return Err(format!(
                "expected a value, found {:?}",
                beginning(self.rest)
            ));
        }
        let (word, rest) = self.rest.split_at(end);
        // In JSON's form a key is in quotation marks, and its colon is not part of it.
        self.rest = rest;
        Ok(word)
    }

    fn take(&mut self, what: &str) {
        self.rest = self.rest.strip_prefix(what).unwrap_or(self.rest);
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

/// The meaning of a word without quotation marks.
fn plain(word: &str) -> Read<Term> {
    let value = match word {
        "-" => Value::String(String::new()),
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        _ if word.starts_with("0x") => Value::Binary(octets(&word[2..])?),
        _ if is_number(word) => {
            codec::decode_value(Serializer::Json, word.as_bytes(), &Limits::default())
                .map_err(|error| format!("{word}: expected a number as JSON has it: {error}"))?
        }
        _ if word.contains('#') => return labelled(word),
        _ => Value::String(word.to_owned()),
    };
    Ok(Term::Value(value))
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
}

/// Bytes from hexadecimal digits.
pub(crate) fn octets(digits: &str) -> Read<Vec<u8>> {
    let is_whole =
        digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_whole {
        return Err(format!(
            "0x{digits}: expected an even number of hexadecimal digits"
        ));
    }
    let pairs = (0..digits.len()).step_by(2);
    let bytes = pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
    bytes
        .collect::<Result<_, _>>()
        .map_err(|error| format!("0x{digits}: {error}"))
}

fn labelled(word: &str) -> Read<Term> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(start) = rest.find('#') {
        let (before, after) = rest.split_at(start);
        if !before.is_empty() {
            pieces.push(Piece::Plain(before.to_owned()));
        }
        let after = &after[1..];
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (name, after) = after.split_at(end.unwrap_or(after.len()));
        if name.is_empty() {
            return Err(format!(
                "{word}: expected a name behind #, of letters, digits and _"
            ));
        }
        pieces.push(Piece::Label(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Plain(rest.to_owned()));
    }
    Ok(match pieces.as_slice() {
        [Piece::Label(name)] => Term::Label(name.clone()),
        _ => Term::Text(pieces),
    })
}

/// Enough of the text to find it by.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(24).collect()
}

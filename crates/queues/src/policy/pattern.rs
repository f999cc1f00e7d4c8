//! A policy's pattern over the names of queues and exchanges.

use std::fmt;

use fancy_regex::{Regex, RegexBuilder};

use super::syntax;

/// A compiled pattern: unanchored, and case-sensitive.
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: String,
    /// `None`: it matches every name.
    regex: Option<Box<Regex>>,
}

/// The reason why a pattern is refused, and the byte at which it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrongPattern {
    pub(super) reason: String,
    pub(super) at: usize,
}

/// Bytes of a pattern, at most.
const PATTERN_BYTES_MAX: usize = 4096;
/// Bytes of a compiled part, at most.
const COMPILED_BYTES_MAX: usize = 256 << 10;
/// Instructions of a compiled pattern, at most.
const INSTRUCTIONS_MAX: usize = 10_000;
/// Bound on backtracking. No sensible pattern comes near it on a name of 255 bytes. Beyond it the name does not match.
const BACKTRACKS_MAX: usize = 1_000;

impl NamePattern {
    /// Compiles a pattern. Patterns that only Perl's expressions have are refused, too.
    pub(super) fn parse(text: &str) -> Result<Self, WrongPattern> {
        let wrong = |reason: &str, at| WrongPattern {
            reason: reason.to_owned(),
            at,
        };
        if text.len() > PATTERN_BYTES_MAX {
            return Err(wrong("regular expression is too large", PATTERN_BYTES_MAX));
        }
        let checked = syntax::check(text).map_err(|(reason, at)| wrong(reason, at))?;
        let regex = match text {
            "" | ".*" | "^" | "^.*" | ".*$" | "^.*$" => None,
            _ => Some(Box::new(compile(&checked)?)),
        };
        Ok(Self {
            text: text.to_owned(),
            regex,
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let Some(regex) = &self.regex else {
            return true;
        };
        regex.is_match(name).unwrap_or(false)
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

fn compile(text: &str) -> Result<Regex, WrongPattern> {
    let built = RegexBuilder::new(text)
        .backtrack_limit(BACKTRACKS_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .delegate_dfa_size_limit(COMPILED_BYTES_MAX)
        .max_prog_size(INSTRUCTIONS_MAX)
        .build();
    built.map_err(|error| {
        let (reason, at) = reason(&error, text.len());
        WrongPattern { reason, at }
    })
}

fn reason(error: &fancy_regex::Error, end: usize) -> (String, usize) {
    use fancy_regex::{CompileError, Error, ParseError};

    const NO_GROUP: &str = "reference to non-existent subpattern";
    const TOO_LARGE: &str = "regular expression is too large";
    let unsupported = |what: &dyn fmt::Display| format!("not supported: {what}");
    let error = match error {
        Error::ParseError(at, ParseError::InvalidBackref) => return (NO_GROUP.to_owned(), *at),
        Error::ParseError(at, error) => return (unsupported(error), *at),
        Error::CompileError(error) => error,
        other => return (unsupported(other), end),
    };
    let reason = match &**error {
        CompileError::InvalidBackref(_) | CompileError::InvalidGroupNameBackref(_) => {
            NO_GROUP.to_owned()
        }
        CompileError::LookBehindNotConst | CompileError::VariableLookBehindRequiresFeature => {
            "lookbehind assertion is not fixed length".to_owned()
        }
        CompileError::PatternTooComplex => TOO_LARGE.to_owned(),
        CompileError::InnerError(inner) if inner.size_limit().is_some() => TOO_LARGE.to_owned(),
        CompileError::InnerError(inner) => match inner.syntax_error() {
            Some(error) => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                match last.trim_start_matches("error: ") {
                    "Unicode property not found" => {
                        r"unknown property name after \P or \p".to_owned()
                    }
                    reason => unsupported(&reason),
                }
            }
            None => unsupported(inner),
        },
        other => unsupported(other),
    };
    (reason, end)
}

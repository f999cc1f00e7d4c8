//! Problems of a configuration, with their positions and rendering.

use std::fmt::Write as _;

use crate::secrets;
use crate::tree::Span;

/// A file's text and the name that messages call it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub text: String,
}

impl Source {
    pub fn new(name: String, text: String) -> Self {
        Self { name, text }
    }
}

/// Whether the configuration remains usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// One problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    pub span: Span,
    /// The found and the expected value, in one sentence.
    pub message: String,
    /// Advice, with the other place that it refers to, if any.
    pub notes: Vec<(String, Option<Span>)>,
}

impl Problem {
    pub fn error(span: Span, message: String) -> Self {
        Self {
            severity: Severity::Error,
            span,
            message,
            notes: Vec::new(),
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    pub fn warning(span: Span, message: String) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message)
        }
    }

    /// The problem on one line, for a log, without excerpt and severity.
    pub fn line(&self, source: &Source) -> String {
        let (line, column) = source.position(self.span);
        let notes = self.notes.iter().map(|(note, at)| match at {
            Some(at) => format!("; {note} (line {})", source.position(*at).0),
            None => format!("; {note}"),
        });
        let notes: String = notes.collect();
        format!("{}:{line}:{column}: {}{notes}", source.name, self.message)
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push((note.into(), None));
        self
    }

    pub(crate) fn note_at(mut self, span: Span, note: impl Into<String>) -> Self {
        self.notes.push((note.into(), Some(span)));
        self
    }
}

/// Whether one of them is an error.
pub(crate) fn failed(problems: &[Problem]) -> bool {
    let mut severities = problems.iter().map(|problem| problem.severity);
    severities.any(|severity| severity == Severity::Error)
}

impl Source {
    /// Line and column, both from 1; columns count characters.
    pub fn position(&self, span: Span) -> (usize, usize) {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}

/// Renders `problems` in the order of the file, each with its line and a caret below. Secrets in the lines are
/// blanked.
///
/// ```text
/// config.json:12:17: unknown key "relams" in a router worker; did you mean "realms"?
///    12 |                 "relams": [
///       |                 ^^^^^^^^
///       = known here: type, id, options, realms, transports
/// ```
pub fn render(problems: &[Problem], source: &Source) -> String {
    let mut ordered: Vec<&Problem> = problems.iter().collect();
    ordered.sort_by_key(|problem| problem.span.start);
    let mut out = String::new();
    let shown = secrets::blanked(&source.text);
    for problem in ordered {
        let (line, column) = source.position(problem.span);
        let kind = match problem.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{}:{line}:{column}: {kind}{}",
            source.name, problem.message
        );
        excerpt(&mut out, source, &shown, problem.span);
        for (note, at) in &problem.notes {
            let _ = writeln!(out, "      = {note}");
            if let Some(at) = at {
                excerpt(&mut out, source, &shown, *at);
            }
        }
    }
    out
}

/// The first line of `span` as it is shown, with carets below; of a long line, the part around them.
fn excerpt(out: &mut String, source: &Source, shown: &str, span: Span) {
    const SHOWN_MAX: usize = 120;
    const SHOWN_BEFORE: usize = 50;

    let (line, column) = source.position(span);
    let text = shown.lines().nth(line - 1).unwrap_or("");
    let before = column - 1;
    let skipped = if text.chars().count() > SHOWN_MAX {
        before.saturating_sub(SHOWN_BEFORE)
    } else {
        0
    };
    let shown: String = text
        .chars()
        .skip(skipped)
        .take(SHOWN_MAX)
        // A tab or an escape sequence would move the carets.
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let spanned = source.text.get(span.start..span.end).unwrap_or("");
    let width = spanned.lines().next().unwrap_or("").chars().count().max(1);
    let room = (shown.chars().count() + skipped)
        .saturating_sub(before)
        .max(1);
    let carets = "^".repeat(width.min(room));
    let _ = writeln!(out, "{line:>5} | {}", shown.trim_end());
    let _ = writeln!(out, "      | {}{carets}", " ".repeat(before - skipped));
}

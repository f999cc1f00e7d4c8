//! What every grammar of the command line's values answers to a text that it cannot read.

/// A case, placement or URL that could not be read; it says what came and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{came}`: {expected}")]
pub struct ParseError {
    pub came: String,
    pub expected: &'static str,
}

impl ParseError {
    pub(crate) fn new(came: &str, expected: &'static str) -> Self {
        Self {
            came: came.to_owned(),
            expected,
        }
    }
}

//! One call of a management procedure: its arguments, and the way of its answer.

use crosstie_client::{ArgumentError, Arguments, FromValue};
use crosstie_config::Json;
use tokio::sync::oneshot;

use super::errors::{self, Refusal};

/// The answer to a call.
pub(crate) type Answer = Result<Json, Refusal>;

/// The sender of the answer.
pub(crate) type Reply = oneshot::Sender<Answer>;

/// A pending call.
pub(crate) struct Request {
    /// The URI in the table of procedures.
    pub(super) procedure: &'static str,
    pub(super) call: Call,
    pub(super) reply: Reply,
}

/// The procedure's worker and arguments.
pub(crate) struct Call {
    /// The worker of a worker's procedure.
    pub(super) worker: String,
    arguments: Arguments,
}

impl Call {
    pub(super) fn new(worker: impl Into<String>, arguments: Arguments) -> Self {
        Self {
            worker: worker.into(),
            arguments,
        }
    }

    /// A required argument, by position or by name.
    pub(super) fn required<T: FromValue>(&self, index: usize, name: &str) -> Result<T, Refusal> {
        self.optional(index, name)?.ok_or_else(|| {
            let expected = T::EXPECTED;
            errors::invalid_argument(&format!(
                "expected {expected} as argument {index}, '{name}'"
            ))
        })
    }

    /// An optional argument, which may also be null.
    pub(super) fn optional<T: FromValue>(
        &self,
        index: usize,
        name: &str,
    ) -> Result<Option<T>, Refusal> {
        let invalid = |error: ArgumentError| {
            let what = match error {
                ArgumentError::Kind {
                    expected, found, ..
                } if expected == found => {
                    format!("expected {expected} that is neither too small nor too large")
                }
                ArgumentError::Kind {
                    expected, found, ..
                } => format!("expected {expected}, got {found}"),
                error => error.to_string(),
            };
            errors::invalid_argument(&format!("argument {index}, '{name}': {what}"))
        };
        let count = self.arguments.args().map_err(invalid)?.len();
        if index < count {
            return self.arguments.argument(index).map_err(invalid);
        }
        let kwargs = self.arguments.kwargs().map_err(invalid)?;
        match kwargs.iter().any(|(key, _)| key == name) {
            true => self.arguments.keyword(name).map_err(invalid),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use crosstie_client::args;

    use super::*;

    #[test]
    fn arguments_by_place_and_by_name() {
        let call = |arguments| Call::new("worker1", arguments);
        let text = |call: &Call| {
            call.required::<String>(0, "id")
                .map_err(|refusal| refusal.uri)
        };
        assert_eq!(text(&call(args!["a"])), Ok("a".to_owned()));
        assert_eq!(text(&call(args![; id = "b"])), Ok("b".to_owned()));
        let invalid = Err("wamp.error.invalid_argument");
        assert_eq!(text(&call(args![])), invalid);
        assert_eq!(text(&call(args![5])), invalid);
        assert_eq!(text(&call(args![; id = 5])), invalid);
        let null = call(args![Option::<String>::None]);
        assert_eq!(text(&null), invalid);
        assert_eq!(null.optional::<String>(0, "id").ok(), Some(None));
    }
}

//! One call of a management procedure: from its caller through the node's loop and back.

use crosstie_client::{ApplicationError, ArgumentError, Arguments, FromValue, Invocation, args};
use crosstie_config::Json;
use tokio::sync::oneshot;

use super::errors::{self, Refusal};
use super::procedures::{Handler, Procedure, worker_of};
use crate::event::{Event, Events};
use crate::node::Node;

/// The answer to a call.
pub(crate) type Answer = Result<Json, Refusal>;

/// The sender of the answer.
pub(crate) type Reply = oneshot::Sender<Answer>;

/// A pending call.
pub(crate) struct Request {
    procedure: &'static Procedure,
    call: Call,
    reply: Reply,
}

/// The procedure's worker and arguments.
pub(crate) struct Call {
    /// The worker of a worker's procedure.
    pub(super) worker: String,
    arguments: Arguments,
}

/// Passes a call to the node's loop, and waits for its answer.
pub(super) async fn ask(
    procedure: &'static Procedure,
    invocation: Invocation,
    events: Events,
) -> Result<Arguments, ApplicationError> {
    let worker = worker_of(invocation.procedure()).unwrap_or_default();
    let (reply, answer) = oneshot::channel();
    let request = Request {
        procedure,
        call: Call {
            worker: worker.to_owned(),
            arguments: invocation.arguments,
        },
        reply,
    };
    // A node that shuts down drops pending calls.
    if events.send(Event::Request(request)).is_err() {
        return Err(errors::ending().into());
    }
    let answer = answer.await.unwrap_or_else(|_| Err(errors::ending()));
    Ok(args![answer?])
}

impl Request {
    pub(crate) fn answer(self, node: &mut Node) {
        match self.procedure.handler {
            Handler::Now(handle) => {
                let answer = handle(node, &self.call);
                // The caller may have gone.
                let _ = self.reply.send(answer);
            }
            Handler::Later(handle) => {
                if let Err((reply, error)) = handle(node, &self.call, self.reply) {
                    let _ = reply.send(Err(error));
                }
            }
        }
    }
}

impl Call {
    #[cfg(test)]
    pub(super) fn new(worker: &str, arguments: Arguments) -> Self {
        Self {
            worker: worker.to_owned(),
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

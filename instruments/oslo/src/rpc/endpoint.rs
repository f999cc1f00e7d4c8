//! The methods of a server.

use std::thread;
use std::time::Duration;

use crosstie_joints::{RemoteFailure, Request};
use serde_json::{Map, Value, json};

/// The input of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    pub request: Request,
}

/// The result of a method.
pub type Outcome = Result<Value, Box<RemoteFailure>>;

/// Methods, by name.
pub trait Endpoint: Sync {
    /// Executes the call.
    fn invoke(&self, incoming: &Incoming) -> Outcome;

    /// Whether the method takes long, so that it needs a thread of its own.
    fn is_slow(&self, _method: &str) -> bool {
        false
    }
}

/// The methods of the original programs' server: sink, echo, sleep, fail.
pub struct TestEndpoint<S> {
    /// Called for each call, with the original's text: the method's name in its spelling, the context, the arguments.
    pub say: S,
}

impl<S: Fn(&str, &Value, &Value) + Sync> Endpoint for TestEndpoint<S> {
    fn invoke(&self, incoming: &Incoming) -> Outcome {
        let request = &incoming.request;
        let call = &request.call;
        // The original's own spelling, colon for colon.
        let shown = match call.method.as_str() {
            "sink" => ":sink",
            "echo" => "::echo",
            "sleep" => "::sleeps",
            "fail" => "::fail",
            method => return Err(RemoteFailure::no_such_method(method)),
        };
        let mut context = call.context.clone();
        let timeout = request.monitor_timeout_s.map_or(Value::Null, Value::from);
        context.insert("client_timeout".to_owned(), timeout);
        let (context, args) = (Value::from(context), Value::from(call.args.clone()));
        (self.say)(shown, &context, &args);
        match call.method.as_str() {
            "echo" => Ok(json!({"method": "echo", "context": context, "args": args})),
            "sleep" => sleep(&call.args),
            "fail" => Err(RemoteFailure::of_builtin(
                "RuntimeError",
                "fail method invoked!",
            )),
            _ => Ok(Value::Null),
        }
    }

    fn is_slow(&self, method: &str) -> bool {
        method == "sleep"
    }
}

/// Sleeps for `timeout` seconds, ten by default, and returns `reply`.
fn sleep(args: &Map<String, Value>) -> Outcome {
    let seconds = match args.get("timeout") {
        None => Some(10.0),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(value) => value.as_f64(),
    };
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let Some(duration) = duration else {
        let message = "sleep's timeout is no number of seconds";
        return Err(RemoteFailure::of_builtin("ValueError", message));
    };
    thread::sleep(duration);
    Ok(args.get("reply").cloned().unwrap_or_default())
}

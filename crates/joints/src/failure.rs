//! A server's exception in its reply to the caller.

use std::fmt;

use serde_json::{Map, Value};

/// A server's exception. Boxed wherever it is passed, as it is rare and large.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoteFailure {
    pub class: String,
    pub module: String,
    pub message: String,
    /// Each entry has one or more lines, as in Python's `format_exception`.
    pub traceback: Vec<String>,
    pub args: Vec<Value>,
    pub kwargs: Map<String, Value>,
}

impl RemoteFailure {
    /// A built-in exception of Python, which callers in Python get as that class.
    pub fn of_builtin(class: &str, message: &str) -> Box<Self> {
        Self::new(class, "builtins", message)
    }

    /// The method does not exist.
    pub fn no_such_method(method: &str) -> Box<Self> {
        let message = format!("Endpoint does not support RPC method {method}");
        Self::new("NoSuchMethod", DISPATCHER, &message)
    }

    /// The version or the namespace is not served.
    pub fn unsupported_version(version: &str, method: &str) -> Box<Self> {
        let message =
            format!("Endpoint does not support RPC version {version}. Attempted method: {method}");
        Self::new("UnsupportedVersion", DISPATCHER, &message)
    }

    fn new(class: &str, module: &str, message: &str) -> Box<Self> {
        Box::new(Self {
            class: class.to_owned(),
            module: module.to_owned(),
            message: message.to_owned(),
            traceback: vec![format!("{class}: {message}\n")],
            args: vec![Value::from(message)],
            kwargs: Map::new(),
        })
    }

    /// The JSON for a reply, to be put into a string.
    pub(crate) fn to_json(&self) -> String {
        let Self {
            class,
            module,
            message,
            traceback,
            args,
            kwargs,
        } = self;
        serde_json::json!({
            "class": class, "module": module, "message": message, "tb": traceback, "args": args,
            "kwargs": kwargs,
        })
        .to_string()
    }

    /// Decodes the JSON of a reply. Absent parts are empty.
    pub(crate) fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let mut said: Map<String, Value> = serde_json::from_str(text)?;
        let mut text = |key| match said.remove(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let (class, module, message) = (text("class"), text("module"), text("message"));
        let traceback = match said.remove("tb") {
            Some(Value::Array(lines)) => lines,
            _ => vec![],
        };
        let lines = traceback.into_iter().map(|line| match line {
            Value::String(line) => line,
            other => other.to_string(),
        });
        Ok(Self {
            class,
            module,
            message,
            traceback: lines.collect(),
            args: match said.remove("args") {
                Some(Value::Array(args)) => args,
                _ => vec![],
            },
            kwargs: match said.remove("kwargs") {
                Some(Value::Object(kwargs)) => kwargs,
                _ => Map::new(),
            },
        })
    }
}

/// The module of a dispatcher's own failures, for callers in Python.
const DISPATCHER: &str = "oslo_messaging.rpc.dispatcher";

impl fmt::Display for RemoteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for RemoteFailure {}

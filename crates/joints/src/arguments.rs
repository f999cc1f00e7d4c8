//! The arguments of a WAMP message, as JSON.

use std::fmt;

use serde_json::{Map, Value};

/// `Arguments|list` and `ArgumentsKw|dict`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    pub args: Vec<Value>,
    pub kwargs: Map<String, Value>,
}

/// Why arguments cannot be forwarded.
#[derive(Debug)]
pub enum ArgumentsError {
    /// Invalid JSON, or JSON nested too deeply.
    Json(serde_json::Error),
    /// More positional arguments than names.
    Unnamed { given: usize, names: usize },
    /// An argument given both by position and by name.
    Twice { name: String },
}

impl Arguments {
    /// Reads a JSON payload; either part may be empty.
    pub fn read(args: &[u8], kwargs: &[u8]) -> Result<Self, ArgumentsError> {
        let mut arguments = Self::default();
        if !args.is_empty() {
            arguments.args = serde_json::from_slice(args).map_err(ArgumentsError::Json)?;
        }
        if !kwargs.is_empty() {
            arguments.kwargs = serde_json::from_slice(kwargs).map_err(ArgumentsError::Json)?;
        }
        Ok(arguments)
    }

    /// One positional argument.
    pub fn of_value(value: Value) -> Self {
        Self {
            args: vec![value],
            kwargs: Map::new(),
        }
    }

    /// Keyword arguments.
    pub fn of_object(kwargs: Map<String, Value>) -> Self {
        Self {
            args: Vec::new(),
            kwargs,
        }
    }

    /// The positional part in a payload's form.
    pub fn args_json(&self) -> Vec<u8> {
        match self.args.is_empty() {
            true => Vec::new(),
            // The values were parsed or made here; writing them to memory cannot fail.
            false => serde_json::to_vec(&self.args).unwrap_or_default(),
        }
    }

    /// The keyword part in a payload's form.
    pub fn kwargs_json(&self) -> Vec<u8> {
        match self.kwargs.is_empty() {
            true => Vec::new(),
            false => serde_json::to_vec(&self.kwargs).unwrap_or_default(),
        }
    }

    /// The arguments of a method that names all of them: positional ones get names in the order of `names`.
    pub fn into_named(self, names: &[String]) -> Result<Map<String, Value>, ArgumentsError> {
        let Self { args, mut kwargs } = self;
        if args.len() > names.len() {
            return Err(ArgumentsError::Unnamed {
                given: args.len(),
                names: names.len(),
            });
        }
        for (name, value) in names.iter().zip(args) {
            if kwargs.insert(name.clone(), value).is_some() {
                return Err(ArgumentsError::Twice { name: name.clone() });
            }
        }
        Ok(kwargs)
    }

    /// The arguments as one value: none become null, a single positional argument is the value itself, and any others
    /// become an object of both parts.
    pub fn into_value(mut self) -> Value {
        match (self.args.len(), self.kwargs.is_empty()) {
            (0, true) => Value::Null,
            (1, true) => self.args.pop().unwrap_or_default(),
            _ => self.into_both(),
        }
    }

    /// An object of both parts.
    pub(crate) fn into_both(self) -> Value {
        let parts = [
            ("args".to_owned(), Value::Array(self.args)),
            ("kwargs".to_owned(), Value::Object(self.kwargs)),
        ];
        Value::Object(parts.into_iter().collect())
    }

    /// From an object of both parts, either of which may be missing.
    pub(crate) fn from_both(value: Value) -> Option<Self> {
        let Value::Object(mut parts) = value else {
            return None;
        };
        let args = match parts.remove("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(args)) => args,
            Some(_) => return None,
        };
        let kwargs = match parts.remove("kwargs") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(kwargs)) => kwargs,
            Some(_) => return None,
        };
        parts.is_empty().then_some(Self { args, kwargs })
    }
}

impl fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(e) => write!(f, "arguments that cannot be read: {e}"),
            Self::Unnamed { given, names: 0 } => write!(
                f,
                "{given} positional arguments, where the method takes keyword arguments alone"
            ),
            Self::Unnamed { given, names } => write!(
                f,
                "{given} positional arguments, where there are names for {names}"
            ),
            Self::Twice { name } => write!(f, "the argument {name:?} is given twice"),
        }
    }
}

impl std::error::Error for ArgumentsError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(args: &str, kwargs: &str) -> Arguments {
        Arguments::read(args.as_bytes(), kwargs.as_bytes()).expect("JSON")
    }

    #[test]
    fn a_payload_is_read_and_written() {
        for (args, kwargs) in [
            ("", ""),
            ("[1,null]", ""),
            ("", r#"{"a":[]}"#),
            ("[0]", r#"{"b":1}"#),
        ] {
            let read = arguments(args, kwargs);
            assert_eq!(read.args_json(), args.as_bytes());
            assert_eq!(read.kwargs_json(), kwargs.as_bytes());
        }
        let deep = "[".repeat(500) + &"]".repeat(500);
        let error = Arguments::read(deep.as_bytes(), b"").expect_err("too deep");
        assert!(error.to_string().contains("recursion limit"), "{error}");
    }

    #[test]
    fn positional_arguments_get_names() {
        let check = |args: &str, kwargs: &str, names: &[&str], expected: Result<&str, &str>| {
            let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
            let named = arguments(args, kwargs).into_named(&names);
            let named = named.map(|named| Value::from(named).to_string());
            let named = named.map_err(|e| e.to_string());
            assert_eq!(named.as_deref().map_err(|e| &**e), expected);
        };
        check("", "", &[], Ok("{}"));
        check("[1]", r#"{"b":2}"#, &["a", "b"], Ok(r#"{"b":2,"a":1}"#));
        check(
            "[1]",
            "",
            &[],
            Err("1 positional arguments, where the method takes keyword arguments alone"),
        );
        check(
            "[1,2,3]",
            "",
            &["a", "b"],
            Err("3 positional arguments, where there are names for 2"),
        );
        check(
            "[1]",
            r#"{"a":2}"#,
            &["a"],
            Err("the argument \"a\" is given twice"),
        );
    }

    #[test]
    fn arguments_become_one_value() {
        for (args, kwargs, expected) in [
            ("", "", json!(null)),
            ("[[1]]", "", json!([1])),
            ("[1,2]", "", json!({"args": [1, 2], "kwargs": {}})),
            (
                "[1]",
                r#"{"a":2}"#,
                json!({"args": [1], "kwargs": {"a": 2}}),
            ),
            ("", r#"{"a":2}"#, json!({"args": [], "kwargs": {"a": 2}})),
        ] {
            assert_eq!(arguments(args, kwargs).into_value(), expected);
        }
    }
}

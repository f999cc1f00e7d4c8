//! Errors: by URI in WAMP, by class and module in Python.

use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::failure::RemoteFailure;
use crate::template::uri_part;

/// An error with names on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    pub uri: String,
    pub module: String,
    pub class: String,
}

/// The errors that a joint's configuration names; they precede those of all joints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions {
    pub named: Vec<Exception>,
    /// Forwards tracebacks of failures.
    pub passes_tracebacks: bool,
}

/// The URI prefix of all other classes.
const PREFIX: &str = "oslo.error.";

/// The module of classes whose name is a URI; no client has it.
const MODULE: &str = "wamp";

/// The keyword argument with the details of the exception.
const EXCEPTION: &str = "exception";

/// Maximum length of a URI made from a class.
const URI_BYTES_MAX: usize = 255;

/// The errors that all joints know: URI, module, class.
const KNOWN: &[(&str, &str, &str)] = &[
    ("wamp.error.no_such_procedure", DISPATCHER, "NoSuchMethod"),
    (
        "wamp.error.timeout",
        "oslo_messaging.exceptions",
        "MessagingTimeout",
    ),
    ("wamp.error.runtime_error", "builtins", "RuntimeError"),
];

const DISPATCHER: &str = "oslo_messaging.rpc.dispatcher";

impl Exceptions {
    /// A server's exception as a WAMP error: its URI and arguments.
    pub fn to_wamp(&self, failure: &RemoteFailure) -> (String, Arguments) {
        let RemoteFailure {
            class,
            module,
            message,
            traceback,
            args,
            kwargs,
        } = failure;
        let mut arguments = Arguments {
            args: args.clone(),
            kwargs: kwargs.clone(),
        };
        if args.is_empty() && !message.is_empty() {
            arguments.args.push(Value::from(message.as_str()));
        }
        let mut exception = json!({"class": class, "module": module, "message": message});
        if self.passes_tracebacks {
            exception["traceback"] = Value::from(traceback.clone());
        }
        arguments.kwargs.insert(EXCEPTION.to_owned(), exception);
        (self.uri(module, class), arguments)
    }

    /// A WAMP error as an exception that a server could have raised.
    pub fn to_oslo(&self, uri: &str, arguments: Arguments) -> Box<RemoteFailure> {
        let Arguments { args, mut kwargs } = arguments;
        let said = take_exception(&mut kwargs);
        let (module, class) = self.class(uri);
        let message = match (said, args.first()) {
            (Some(message), _) => message,
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(_)) => Value::from(args.clone()).to_string(),
            (None, None) => uri.to_owned(),
        };
        Box::new(RemoteFailure {
            traceback: vec![format!("{uri}: {message}\n")],
            class,
            module,
            message,
            args,
            kwargs,
        })
    }

    fn uri(&self, module: &str, class: &str) -> String {
        let named = self.named.iter();
        let named = named.map(|one| (&*one.uri, &*one.module, &*one.class));
        let mut known = named.chain(KNOWN.iter().copied());
        if let Some((uri, ..)) = known.find(|known| (known.1, known.2) == (module, class)) {
            return uri.to_owned();
        }
        if module == MODULE && is_uri(class) {
            return class.to_owned();
        }
        let name = match module {
            "" => uri_part(class),
            module => uri_part(&format!("{module}.{class}")),
        };
        let mut uri = format!("{PREFIX}{name}");
        uri.truncate(uri.floor_char_boundary(URI_BYTES_MAX));
        // No trailing empty component.
        uri.truncate(uri.trim_end_matches('.').len());
        uri
    }

    fn class(&self, uri: &str) -> (String, String) {
        let named = self.named.iter();
        let named = named.map(|one| (&*one.uri, &*one.module, &*one.class));
        let mut known = named.chain(KNOWN.iter().copied());
        if let Some((_, module, class)) = known.find(|known| known.0 == uri) {
            return (module.to_owned(), class.to_owned());
        }
        match uri.strip_prefix(PREFIX) {
            Some(name) => match name.rsplit_once('.') {
                Some((module, class)) => (module.to_owned(), class.to_owned()),
                None => (String::new(), name.to_owned()),
            },
            None => (MODULE.to_owned(), uri.to_owned()),
        }
    }
}

fn is_uri(text: &str) -> bool {
    !text.is_empty() && text.len() <= URI_BYTES_MAX && uri_part(text) == text
}

/// The message of an exception in an error that a joint has made from it.
fn take_exception(kwargs: &mut Map<String, Value>) -> Option<String> {
    let exception = kwargs.get(EXCEPTION)?.as_object()?;
    let is_whole = ["class", "module", "message"]
        .iter()
        .all(|name| exception.get(*name).is_some_and(Value::is_string));
    if !is_whole {
        return None;
    }
    let message = exception["message"].as_str()?.to_owned();
    kwargs.remove(EXCEPTION);
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions() -> Exceptions {
        Exceptions {
            named: vec![Exception {
                uri: "com.example.not_found".to_owned(),
                module: "nova.exception".to_owned(),
                class: "InstanceNotFound".to_owned(),
            }],
            passes_tracebacks: false,
        }
    }

    #[test]
    fn classes_are_uris_and_come_back() {
        let check = |module: &str, class: &str, uri: &str| {
            assert_eq!(exceptions().uri(module, class), uri);
            let back = exceptions().class(uri);
            assert_eq!((&*back.0, &*back.1), (module, class));
        };
        check(
            "nova.exception",
            "InstanceNotFound",
            "com.example.not_found",
        );
        check("builtins", "ValueError", "oslo.error.builtins.ValueError");
        check("builtins", "RuntimeError", "wamp.error.runtime_error");
        check("", "Odd", "oslo.error.Odd");
        check("wamp", "com.example.error", "com.example.error");
        check(
            "oslo_messaging.rpc.dispatcher",
            "NoSuchMethod",
            "wamp.error.no_such_procedure",
        );
    }

    #[test]
    fn any_class_makes_a_uri() {
        for (module, class) in [
            ("", ""),
            ("wamp", "not a uri"),
            ("..", "#"),
            ("x", &*"y.".repeat(200)),
        ] {
            let uri = exceptions().uri(module, class);
            assert!(is_uri(&uri), "{module} {class}: {uri}");
        }
    }

    #[test]
    fn an_exception_survives_both_ways() {
        let mut failure = RemoteFailure::of_builtin("ValueError", "bad");
        failure.kwargs.insert("id".to_owned(), Value::from(3));
        let (uri, arguments) = exceptions().to_wamp(&failure);
        assert_eq!(uri, "oslo.error.builtins.ValueError");
        assert_eq!(arguments.args, ["bad"]);
        assert_eq!(arguments.kwargs["exception"]["message"], "bad");
        let back = exceptions().to_oslo(&uri, arguments);
        assert_eq!(
            (
                &back.class,
                &back.module,
                &back.message,
                &back.args,
                &back.kwargs
            ),
            (
                &failure.class,
                &failure.module,
                &failure.message,
                &failure.args,
                &failure.kwargs
            )
        );
    }

    #[test]
    fn an_error_keeps_its_uri_and_message() {
        let check = |args: &str, message: &str| {
            let arguments = Arguments::read(args.as_bytes(), b"").expect("JSON");
            let failure = exceptions().to_oslo("com.example.broken", arguments);
            assert_eq!(
                (&*failure.class, &*failure.module),
                ("com.example.broken", "wamp")
            );
            assert_eq!(failure.message, message);
        };
        check("", "com.example.broken");
        check(r#"["it broke", 1]"#, "it broke");
        check("[1, null]", "[1,null]");
    }
}

//! Arguments of the form NAME=VALUE: a path, and a body.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value as Json};

use super::failure::Failure;
use super::objects::Acted;
use super::options::Options;

/// Characters of a segment that need no escape.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A request to change an object.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// Below `/api`.
    pub(super) path: String,
    pub(super) body: Map<String, Json>,
}

/// A text as a segment of a path.
pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// Reads the arguments of a verb.
pub(super) fn request(
    arguments: &[String],
    acted: &Acted,
    options: &Options,
) -> Result<Request, Failure> {
    let mut body = Map::new();
    for (name, value) in acted.optional {
        if let Some(value) = value {
            // The table is part of the program.
            let value = serde_json::from_str(value).unwrap_or_default();
            body.insert((*name).to_owned(), value);
        }
    }
    for argument in arguments {
        let (name, value) = pair(argument, acted)?;
        body.insert(name, value);
    }
    for required in acted.required {
        check_given(required, &body)?;
    }
    if !acted.required.contains(&"vhost") {
        let vhost = options.vhost.as_ref().unwrap_or(&options.declare_vhost);
        body.insert("vhost".to_owned(), vhost.as_str().into());
    }
    let path = path(acted.path, &body)?;
    let kind = body.get("queue_type").cloned();
    if let (Some(kind), Some(Json::Object(arguments))) = (kind, body.get_mut("arguments")) {
        arguments.insert("x-queue-type".to_owned(), kind);
    }
    Ok(Request { path, body })
}

fn pair(argument: &str, acted: &Acted) -> Result<(String, Json), Failure> {
    let Some((name, value)) = argument.split_once('=') else {
        let text = format!("Argument \"{argument}\" not in the name=value format");
        return Err(Failure::usage(&text));
    };
    let mut required = acted.required.iter().flat_map(|names| names.split('|'));
    let mut optional = acted.optional.iter();
    if !required.any(|known| known == name) && !optional.any(|(known, _)| *known == name) {
        let text = format!("Argument \"{name}\" is not recognised");
        return Err(Failure::usage(&text));
    }
    let value = match acted.json.contains(&name) {
        true => serde_json::from_str(value).map_err(|_| Failure::no_json(value))?,
        false => value.into(),
    };
    Ok((name.to_owned(), value))
}

fn check_given(required: &str, body: &Map<String, Json>) -> Result<(), Failure> {
    if required.split('|').any(|name| body.contains_key(name)) {
        return Ok(());
    }
    let text = match required.split_once('|') {
        Some((one, other)) => {
            format!("one of mandatory arguments \"['{one}', '{other}']\" is required")
        }
        None => format!("mandatory argument \"{required}\" is required"),
    };
    Err(Failure::usage(&text))
}

/// Puts the arguments into a path.
fn path(template: &str, body: &Map<String, Json>) -> Result<String, Failure> {
    let mut path = String::new();
    for part in template.split_inclusive(['{', '}']) {
        match part.strip_suffix('}') {
            None => path.push_str(part.trim_end_matches('{')),
            Some("destination_char") => {
                let kind = body.get("destination_type").and_then(Json::as_str);
                path.extend(kind.and_then(|kind| kind.chars().next()));
            }
            Some(name) => {
                let value = body.get(name).and_then(Json::as_str);
                let value = value.filter(|value| !value.is_empty()).ok_or_else(|| {
                    Failure::usage(&format!("Argument \"{name}\" must not be empty"))
                })?;
                path.push_str(&segment(value));
            }
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rabbitmqadmin::known::Given;
    use crate::rabbitmqadmin::objects::{DECLARED, DELETED, GET, PUBLISH};

    fn asked(line: &str, acted: &Acted) -> Result<(String, Json), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let given = Given::parse(&words).expect("options");
        let options = Options::resolve(&given).expect("they hold");
        match request(&given.arguments, acted, &options) {
            Ok(Request { path, body }) => Ok((path, body.into())),
            Err(failure) => Err(failure.text.lines().nth(1).unwrap_or_default().to_owned()),
        }
    }

    #[test]
    fn arguments_are_a_path_and_a_body() {
        let [exchange, queue, binding, _, user, ..] = &DECLARED;
        let [_, _, unbind, ..] = &DELETED;
        for (line, acted, path, body) in [
            (
                "-V v/1 name=q queue_type=quorum durable=no",
                queue,
                "/queues/v%2F1/q",
                json!({"auto_delete": "false", "durable": "no", "arguments": {"x-queue-type": "quorum"},
                    "name": "q", "queue_type": "quorum", "vhost": "v/1"}),
            ),
            (
                "name=e type=topic arguments={\"a\":1}",
                exchange,
                "/exchanges/%2F/e",
                json!({"auto_delete": "false", "durable": "true", "internal": "false",
                    "arguments": {"a": 1}, "name": "e", "type": "topic", "vhost": "/"}),
            ),
            (
                "source=a destination=b destination_type=exchange",
                binding,
                "/bindings/%2F/e/a/e/b",
                json!({"destination_type": "exchange", "routing_key": "", "arguments": {},
                    "source": "a", "destination": "b", "vhost": "/"}),
            ),
            (
                "source=a destination_type=queue destination=b",
                unbind,
                "/bindings/%2F/e/a/q/b/~",
                json!({"properties_key": "~", "source": "a", "destination_type": "queue",
                    "destination": "b", "vhost": "/"}),
            ),
            (
                "name=u password_hash=x tags=",
                user,
                "/users/u",
                json!({"name": "u", "password_hash": "x", "tags": "", "vhost": "/"}),
            ),
            (
                "routing_key= payload=a=b",
                &PUBLISH,
                "/exchanges/%2F/amq.default/publish",
                json!({"properties": {}, "exchange": "amq.default", "payload_encoding": "string",
                    "routing_key": "", "payload": "a=b", "vhost": "/"}),
            ),
        ] {
            assert_eq!(asked(line, acted), Ok((path.to_owned(), body)), "{line}");
        }
    }

    #[test]
    fn wrong_arguments_are_named() {
        let [_, queue, _, _, user, ..] = &DECLARED;
        for (line, acted, expected) in [
            ("", queue, "ERROR: mandatory argument \"name\" is required"),
            (
                "q",
                queue,
                "ERROR: Argument \"q\" not in the name=value format",
            ),
            (
                "name=q x=1",
                queue,
                "ERROR: Argument \"x\" is not recognised",
            ),
            ("name=", queue, "ERROR: Argument \"name\" must not be empty"),
            ("name=q arguments={", queue, "  {"),
            (
                "name=u tags=",
                user,
                "ERROR: one of mandatory arguments \"['password', 'password_hash']\" is required",
            ),
            ("", &GET, "ERROR: mandatory argument \"queue\" is required"),
        ] {
            assert_eq!(asked(line, acted), Err(expected.to_owned()), "{line}");
        }
    }
}

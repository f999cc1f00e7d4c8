//! The verbs: list, show, declare, delete, close, purge, publish, get, export, import, help.

use std::fs;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::api::Api;
use super::arguments::{Request, request, segment};
use super::failure::Failure;
use super::formats::formatted;
use super::help;
use super::objects::{
    Acted, CLOSED, DECLARED, DELETED, GET, LISTED, Listed, PUBLISH, PURGED, SHOWN,
};
use super::options::Options;
use super::output::print;

/// Runs a verb.
pub(super) fn run(options: &Options, arguments: &[String]) -> Result<(), Failure> {
    let Some((verb, arguments)) = arguments.split_first() else {
        return Err(Failure::usage("Action not specified"));
    };
    if verb == "help" {
        return help(arguments);
    }
    let act = Act {
        options,
        api: Api::new(options)?,
        arguments,
    };
    match verb.as_str() {
        "list" => act.list(&LISTED, "list"),
        "show" => act.list(&SHOWN, "show"),
        "declare" => act.change(&DECLARED, "PUT", "declared"),
        "delete" => act.change(&DELETED, "DELETE", "deleted"),
        "close" => act.change(&CLOSED, "DELETE", "closed"),
        "purge" => act.change(&PURGED, "DELETE", "purged"),
        "publish" => act.publish(),
        "get" => act.get(),
        "export" => act.export(),
        "import" => act.import(),
        other => Err(Failure::usage(&format!("Action {other} not understood"))),
    }
}

fn help(arguments: &[String]) -> Result<(), Failure> {
    let topics = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    match topics.as_slice() {
        [] => print(help::OPTIONS),
        ["subcommands"] => print(&help::subcommands()),
        ["config"] => print(help::FILE),
        [_] => Err(Failure::usage(
            "help topic must be one of:\n  subcommands\n  config",
        )),
        _ => Err(Failure::usage("Exactly one argument required")),
    }
}

/// A verb with its arguments.
struct Act<'a> {
    options: &'a Options,
    api: Api<'a>,
    arguments: &'a [String],
}

impl Act<'_> {
    fn say(&self, text: &str) -> Result<(), Failure> {
        match self.options.is_verbose {
            true => print(text),
            false => Ok(()),
        }
    }

    fn only_argument(&self) -> Result<&str, Failure> {
        match self.arguments {
            [only] => Ok(only),
            _ => Err(Failure::usage("Exactly one argument required")),
        }
    }

    fn list(&self, known: &[Listed], verb: &str) -> Result<(), Failure> {
        let Some((kind, columns)) = self.arguments.split_first() else {
            return Err(Failure::usage("Type not specified"));
        };
        let Some(listed) = known.iter().find(|listed| listed.name == kind) else {
            return Err(Failure::usage(&format!("Don't know how to {verb} {kind}")));
        };
        let has_own = self.options.depth.is_none() && !self.options.format.contains("json");
        let columns: Vec<String> = match columns {
            [] if has_own => listed
                .columns
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
            columns => columns.to_vec(),
        };
        let body = self.api.ask("GET", &self.path(listed, &columns), None)?;
        let body = match verb {
            "show" => format!("[{body}]"),
            _ => body,
        };
        self.show(&body, &columns, listed.json)
    }

    fn path(&self, listed: &Listed, columns: &[String]) -> String {
        let mut path = format!("/{}", listed.name.replace('_', "-"));
        if let (true, Some(vhost)) = (listed.is_of_vhost, &self.options.vhost) {
            path.push('/');
            path.push_str(&segment(vhost));
        }
        let query = |text: &str| segment(text).replace("%2C", ",");
        let mut parameters = Vec::new();
        if !columns.is_empty() {
            parameters.push(format!("columns={}", query(&columns.join(","))));
        }
        if let Some(sort) = &self.options.sort {
            parameters.push(format!("sort={}", query(sort)));
        }
        if self.options.is_reversed {
            parameters.push("sort_reverse=true".to_owned());
        }
        if !parameters.is_empty() {
            path.push('?');
            path.push_str(&parameters.join("&"));
        }
        path
    }

    fn show(&self, body: &str, columns: &[String], json: &str) -> Result<(), Failure> {
        match formatted(body, columns, json, self.options)? {
            Some(text) => print(&text),
            None => Ok(()),
        }
    }

    fn change(&self, known: &[Acted], method: &str, done: &str) -> Result<(), Failure> {
        let Some((kind, arguments)) = self.arguments.split_first() else {
            return Err(Failure::usage("Type not specified"));
        };
        let Some(acted) = known.iter().find(|acted| acted.name == kind) else {
            return Err(Failure::usage(&format!("Type {kind} not recognised")));
        };
        let Request { path, body } = request(arguments, acted, self.options)?;
        let (method, body) = match method {
            // Bindings have no names.
            "PUT" if kind == "binding" => ("POST", Some(Json::Object(body).to_string())),
            "PUT" => ("PUT", Some(Json::Object(body).to_string())),
            method => (method, None),
        };
        self.api.ask(method, &path, body)?;
        self.say(&format!("{kind} {done}"))
    }

    fn publish(&self) -> Result<(), Failure> {
        let Request { path, mut body } = request(self.arguments, &PUBLISH, self.options)?;
        if !body.contains_key("payload") {
            let mut payload = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut payload);
            read.map_err(|error| Failure::died(&format!("Cannot read the payload: {error}")))?;
            body.insert("payload".to_owned(), STANDARD.encode(payload).into());
            body.insert("payload_encoding".to_owned(), "base64".into());
        }
        let answer = self
            .api
            .ask("POST", &path, Some(Json::Object(body).to_string()))?;
        let answer: Json = serde_json::from_str(&answer).unwrap_or_default();
        self.say(match answer["routed"] == true {
            true => "Message published",
            false => "Message published but NOT routed",
        })
    }

    fn get(&self) -> Result<(), Failure> {
        let Request { path, body } = request(self.arguments, &GET, self.options)?;
        let file = body.get("payload_file").and_then(Json::as_str);
        let file = file.filter(|file| !file.is_empty()).map(str::to_owned);
        if file.is_some() && body["count"] != "1" {
            return Err(Failure::usage(
                "Cannot get multiple messages using payload_file",
            ));
        }
        let messages = self
            .api
            .ask("POST", &path, Some(Json::Object(body).to_string()))?;
        let Some(file) = file else {
            return self.show(&messages, &[], "");
        };
        write_payload(&file, &messages)?;
        let columns = [
            "routing_key",
            "exchange",
            "message_count",
            "payload_bytes",
            "redelivered",
        ];
        self.show(&messages, &columns.map(str::to_owned), "")
    }

    fn definitions_path(&self) -> String {
        match &self.options.vhost {
            Some(vhost) => format!("/definitions/{}", segment(vhost)),
            None => "/definitions".to_owned(),
        }
    }

    fn export(&self) -> Result<(), Failure> {
        let file = self.only_argument()?;
        let definitions = self.api.ask("GET", &self.definitions_path(), None)?;
        let written = fs::write(file, definitions);
        written.map_err(|error| Failure::died(&format!("Cannot write {file}: {error}")))?;
        let host = &self.options.hostname;
        self.say(&format!("Exported definitions for {host} to \"{file}\""))
    }

    fn import(&self) -> Result<(), Failure> {
        let file = self.only_argument()?;
        let definitions = fs::read_to_string(file);
        let definitions =
            definitions.map_err(|error| Failure::died(&format!("Cannot read {file}: {error}")))?;
        self.api
            .ask("POST", &self.definitions_path(), Some(definitions))?;
        let host = &self.options.hostname;
        self.say(&format!("Uploaded definitions from \"{file}\" to {host}."))
    }
}

/// Writes the payload of the only message.
fn write_payload(file: &str, messages: &str) -> Result<(), Failure> {
    let messages: Json = serde_json::from_str(messages).unwrap_or_default();
    let Some(payload) = messages[0]["payload"].as_str() else {
        return Err(Failure::died("The queue is empty"));
    };
    let payload = match messages[0]["payload_encoding"] == "base64" {
        true => {
            let decoded = STANDARD.decode(payload);
            decoded.map_err(|error| Failure::died(&format!("The payload is no Base64: {error}")))?
        }
        false => payload.as_bytes().to_vec(),
    };
    let written = fs::write(file, payload);
    written.map_err(|error| Failure::died(&format!("Cannot write {file}: {error}")))
}

//! The common options of `call`, `register`, `publish` and `subscribe`: the router's address, and arguments in JSON.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use crosstie_client::{
    ApplicationError, Arguments, Backoff, Client, Config, ConnectError, Dict, MatchPolicy,
    Serializer, SessionId, State, Value,
};
use crosstie_wamp::codec::{self, Limits};

use crosstie_terminal::credentials::Credentials;

use crate::context::Choice;

/// How to reach the router.
#[derive(clap::Args)]
pub(crate) struct Connection {
    /// Router: ws://, wss://, rs://, rss://, ws+unix:PATH or rs+unix:PATH; by default that of the context, or
    /// ws://127.0.0.1:8080/ws.
    #[arg(long)]
    url: Option<String>,
    /// Realm to join; by default that of the context, or realm1.
    #[arg(long)]
    realm: Option<String>,
    #[command(flatten)]
    context: Choice,
    /// Serializer to request; by default any that the router supports.
    #[arg(long, value_enum)]
    serializer: Option<SerializerName>,
    #[command(flatten)]
    credentials: Credentials,
    /// File with additional trusted authorities, or with the router's own certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
    /// Trust any certificate. Use it only for tests: the router's identity is not verified.
    #[arg(long)]
    insecure: bool,
    /// Interval of pings; a router that stays silent for as long after a ping is considered lost. 0 disables pings.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = seconds)]
    ping_interval: f64,
}

#[derive(Clone, Copy, ValueEnum)]
enum SerializerName {
    Json,
    Msgpack,
    Cbor,
}

/// How a URI is matched.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Match {
    #[default]
    Exact,
    Prefix,
    Wildcard,
}

impl From<Match> for MatchPolicy {
    fn from(name: Match) -> Self {
        match name {
            Match::Exact => Self::Exact,
            Match::Prefix => Self::Prefix,
            Match::Wildcard => Self::Wildcard,
        }
    }
}

impl Connection {
    /// Refuses options and contexts that no wait makes right.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.addressed().map(drop)
    }

    /// For one request: a lost connection is an error.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        self.connect_with(None).await
    }

    /// For as long as the user wants: a lost connection is restored, and reported.
    pub(crate) async fn connect_to_stay(&self) -> anyhow::Result<Client> {
        let client = self.connect_with(Some(Backoff::default())).await?;
        tokio::spawn(report(client.state()));
        Ok(client)
    }

    /// The address, the realm and the login: of the options, and else of the context.
    fn addressed(&self) -> anyhow::Result<Config> {
        // The login of a context is for its own address.
        let chosen = match &self.url {
            Some(_) => None,
            None => self.context.resolve()?,
        };
        let (mut config, realm) = match &chosen {
            Some(chosen) => {
                let Some(url) = &chosen.context.url else {
                    bail!(
                        "context '{0}' has no --url of a router: `crosstie context add {0} --replace` names one",
                        chosen.name
                    );
                };
                (chosen.config(url)?, chosen.context.realm.as_ref())
            }
            None => {
                let url = self.url.as_deref();
                (Config::new(url.unwrap_or("ws://127.0.0.1:8080/ws"))?, None)
            }
        };
        if let Some(realm) = self.realm.as_ref().or(realm) {
            config.realm.clone_from(realm);
        }
        if chosen.is_none() || !self.credentials.is_default() {
            config.authenticator = self.credentials.authenticator()?;
        }
        config.tls.ca_files.extend(self.ca.iter().cloned());
        config.tls.insecure |= self.insecure;
        Ok(config)
    }

    async fn connect_with(&self, reconnect: Option<Backoff>) -> anyhow::Result<Client> {
        let mut config = self.addressed()?;
        if let Some(name) = self.serializer {
            config.serializers = vec![match name {
                SerializerName::Json => Serializer::Json,
                SerializerName::Msgpack => Serializer::MsgPack,
                SerializerName::Cbor => Serializer::Cbor,
            }];
        }
        let interval = Duration::from_secs_f64(self.ping_interval);
        config.ping_interval = (!interval.is_zero()).then_some(interval);
        config.reconnect = reconnect;
        let connected = Client::connect(config).await;
        connected.map_err(|error| not_joined(&error, error.to_string(), advice(&error)))
    }
}

/// An error with its text and advice, by whose type the exit code is chosen.
pub(crate) fn not_joined(
    error: &ConnectError,
    mut text: String,
    advice: Option<&str>,
) -> anyhow::Error {
    if let Some(advice) = advice {
        text = [&text, "\n", advice].concat();
    }
    match error {
        ConnectError::Aborted { .. } => Refused(text).into(),
        _ => anyhow::anyhow!(text),
    }
}

/// The router answered, and rejected the session.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds == 0.0 || (0.1..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds, 0.1 to 86400, or 0 for never".to_owned()),
    }
}

/// Advice for the user.
fn advice(error: &ConnectError) -> Option<&'static str> {
    Some(match error {
        ConnectError::Dial { .. } => {
            "Is the router running? `crosstie start` starts one; --url names another one."
        }
        ConnectError::Tls { .. } => {
            "Does the router speak TLS there? If so, --ca names a file with the certificate \
             authority that its certificate is from, or with that certificate itself."
        }
        ConnectError::Handshake { .. } => {
            "Does the router listen for this transport there? --url names another one, and \
             --serializer another serializer."
        }
        ConnectError::Aborted { error, .. } => advice_on_abort(&error.uri),
        ConnectError::TimedOut { .. } => {
            "Something accepts connections there but does not speak WAMP; --url names another one."
        }
        _ => return None,
    })
}

/// Advice to the user about an ABORT, by its reason.
fn advice_on_abort(reason: &str) -> &'static str {
    match reason {
        "wamp.error.no_such_realm" => "--realm names another realm.",
        "wamp.error.no_such_role" => {
            "The realm has no such role: does the router's configuration give --authid a role of this \
             --realm?"
        }
        "wamp.error.no_auth_method" | "wamp.error.no_matching_auth_method" => {
            "--authmethod names another way to log in."
        }
        _ => {
            "The router rejects these credentials: --authid, --authmethod, and --secret-file or \
             --secret-env name others."
        }
    }
}

async fn report(mut states: tokio::sync::watch::Receiver<State>) {
    let mut lost = false;
    while states.changed().await.is_ok() {
        match &*states.borrow_and_update() {
            State::Reconnecting { attempt: 1, cause } => {
                lost = true;
                complain!("crosstie: {cause}; connecting again");
            }
            State::Joined(welcome) if lost => {
                lost = false;
                complain!("crosstie: joined again as session {}", welcome.session);
            }
            _ => {}
        }
    }
}

/// Arguments of a call or publication as the user writes them.
#[derive(clap::Args)]
pub(crate) struct Given {
    /// Arguments, each a JSON value; other text is passed as text.
    ///
    /// 5 is a number, true a boolean, null is null; hello is text, and so is '"5"'. An argument that begins with {, [
    /// or " must be JSON; quote it for the shell: '{"a": [1, 2]}'.
    #[arg(value_name = "ARG", value_parser = value, allow_negative_numbers = true)]
    args: Vec<Value>,
    /// Keyword arguments, as a JSON object.
    #[arg(long, value_name = "JSON", value_parser = object)]
    kwargs: Option<Dictionary>,
}

/// A dictionary; its own type, since clap takes every `Vec` for a repeated argument.
#[derive(Clone)]
pub(crate) struct Dictionary(Dict);

impl From<Given> for Arguments {
    fn from(given: Given) -> Self {
        let kwargs = given.kwargs.map_or_else(Dict::new, |kwargs| kwargs.0);
        Self::new(given.args, kwargs)
    }
}

/// A value in the user's form: JSON, or text that cannot be mistaken for JSON.
pub(crate) fn value(given: &str) -> anyhow::Result<Value> {
    match json(given) {
        Ok(value) => Ok(value),
        Err(error) if given.trim_start().starts_with(['{', '[', '"']) => {
            bail!(
                "begins with {{, [ or \", so it must be JSON, and it is not: {error}; to give it as \
                 text, write it as a JSON string, in quotes: '{}'",
                text(&Value::from(given))?
            )
        }
        Err(_) => Ok(Value::from(given)),
    }
}

/// A JSON value.
pub(crate) fn json(text: &str) -> anyhow::Result<Value> {
    let value = codec::decode_value(Serializer::Json, text.as_bytes(), &Limits::default())?;
    Ok(value)
}

fn object(text: &str) -> anyhow::Result<Dictionary> {
    match json(text)? {
        Value::Dict(dict) => Ok(Dictionary(dict)),
        _ => bail!("expected a JSON object"),
    }
}

/// A session id.
pub(crate) fn session(text: &str) -> anyhow::Result<SessionId> {
    Ok(SessionId(text.parse()?))
}

/// Both kinds of arguments as one JSON object.
pub(crate) fn to_object(arguments: &Arguments) -> anyhow::Result<String> {
    let (args, kwargs) = in_json(arguments)?;
    Ok(format!(r#"{{"args":{args},"kwargs":{kwargs}}}"#))
}

/// The only argument as it is, `null` if there is none, and else one JSON object.
pub(crate) fn to_value(arguments: &Arguments) -> anyhow::Result<String> {
    let (args, kwargs) = in_json(arguments)?;
    match (arguments.args(), kwargs.as_str()) {
        (Ok([]), "{}") => Ok("null".to_owned()),
        (Ok([value]), "{}") => text(value),
        _ => Ok(format!(r#"{{"args":{args},"kwargs":{kwargs}}}"#)),
    }
}

/// The arguments as a JSON list and the keyword arguments as a JSON object.
pub(crate) fn in_json(arguments: &Arguments) -> anyhow::Result<(String, String)> {
    let json = arguments.to_json();
    json.context("the router sent a value that JSON cannot hold")
}

/// A value in JSON.
pub(crate) fn text(value: &Value) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    codec::encode_value(value, Serializer::Json, &mut bytes)?;
    Ok(String::from_utf8(bytes)?)
}

/// Prints an ERROR's URI and arguments on standard error.
pub(crate) fn print_error(error: &ApplicationError) {
    complain!("crosstie: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_follows_the_reason_of_the_abort() {
        let check = |reason: &str, key: &str| {
            let error = ConnectError::Aborted {
                realm: "realm1".to_owned(),
                error: ApplicationError::new(reason, Arguments::default()),
            };
            let advice = advice(&error).unwrap_or_default();
            assert!(advice.contains(key), "{reason}: {advice}");
            let is_about_realm = advice.contains("names another realm");
            assert_eq!(is_about_realm, key == "--realm names", "{reason}");
        };
        check("wamp.error.no_such_realm", "--realm names");
        check("wamp.error.not_authorized", "--secret-file");
        check("wamp.error.authentication_failed", "--secret-file");
        check("wamp.error.no_such_principal", "--authid");
        check("com.example.denied", "--authid");
        check("wamp.error.no_such_role", "role");
        check("wamp.error.no_auth_method", "--authmethod names");
        check("wamp.error.no_matching_auth_method", "--authmethod names");
    }

    #[test]
    fn values() {
        let check = |given: &str, json: &str| {
            let value = value(given).map_err(|error| error.to_string());
            match value {
                Ok(value) => assert_eq!(text(&value).unwrap(), json, "{given}"),
                Err(error) => assert!(error.contains(json), "{given}: {error}"),
            }
        };
        check("5", "5");
        check("-2.5", "-2.5");
        check("true", "true");
        check("null", "null");
        check("\"5\"", "\"5\"");
        check("hello", "\"hello\"");
        check("hello world", "\"hello world\"");
        check("", "\"\"");
        check("5 apples", "\"5 apples\"");
        check("True", "\"True\"");
        check(" [1, {\"a\": null}] ", "[1,{\"a\":null}]");
        check("[1", "it must be JSON, and it is not");
        check("{a: 1}", "it must be JSON, and it is not");
        check("\"a", "it must be JSON, and it is not");
    }

    #[test]
    fn results() {
        let check = |args: &str, kwargs: &str, line: &str| {
            let arguments = Arguments::from_json(args, kwargs).unwrap();
            assert_eq!(to_value(&arguments).unwrap(), line);
        };
        check("", "", "null");
        check("[5]", "", "5");
        check("[[1,2]]", "{}", "[1,2]");
        check("[1,2]", "", r#"{"args":[1,2],"kwargs":{}}"#);
        check("[1]", r#"{"a":2}"#, r#"{"args":[1],"kwargs":{"a":2}}"#);
        check("", r#"{"a":2}"#, r#"{"args":[],"kwargs":{"a":2}}"#);
    }
}

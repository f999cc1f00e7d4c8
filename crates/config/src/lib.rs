//! A node's configuration: Crossbar.io's format version 2, as JSON or YAML, with Crosstie's own
//! keys beside it.
//!
//! ```text
//! text ──tree──▶ positioned tree ──earlier──▶ of version 2 ──check──▶ the same, known to hold what the tables say
//!                                 ──build──▶ Config, with every default filled in
//! ```
//!
//! Text goes in; a checked [`Config`] or the [`Problem`]s with their places come out. Nothing
//! but [`load`] touches the world, and the environment is an argument. The [`catalogue`] says
//! which keys there are; the JSON Schema and the reference in the documentation are made from
//! it. Problems are told all at once, in three steps that each need the one before: whether the
//! text is of its format, whether every key and value is known, whether the whole makes sense.

mod amqp;
mod build;
pub mod catalogue;
mod check;
mod checked;
mod convert;
mod definitions;
mod difference;
mod earlier;
mod effects;
mod expectation;
mod files;
mod joint_circle;
mod model;
mod near;
mod part;
mod plain;
mod principals;
mod problem;
mod proxied;
mod secrets;
mod tree;
mod twisted;
mod variables;
mod view;

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_auth::wamp::jwt::Jwks;
use crosstie_auth::wamp::{Method, Methods, PrincipalsFile};

pub use checked::Tree;
pub use convert::convert;
pub use definitions::NoDefinitions;
pub use difference::{Change, ChangeKind, Difference};
pub use effects::effects;
pub use files::{Files, NamedFiles};
pub use joint_circle::joints_in_a_circle;
pub use model::{
    Admin, Admits, Allow, Allowed, Amqp, AmqpAuthBackend, AmqpHttpBackend, AmqpIdentity,
    AmqpLimits, AmqpManagement, AmqpMechanism, AmqpOAuth2Backend, AmqpPermission, AmqpTransport,
    AmqpUser, AmqpVhost, AuditLog, CallTimeoutUnit, CancelAnswers, Cgi, ChildEnvironment,
    Component, ComponentKind, Config, ContainerShutdown, ContainerWorker, Controller, Cookie,
    CookieStore, Cors, DefinedArguments, DefinedBinding, DefinedExchange, DefinedQueue,
    DefinedSetting, Definitions, Deflate, Disclose, DiscloseMe, EmptyEligible, Endpoint,
    EventStore, FileSource, Forwarding, GuestInput, GuestOutput, GuestWatch, GuestWorker,
    HostMonitorWorker, HttpBridge, HttpBridgeOptions, Inherit, Json, Limits, ListenerLimits,
    LoneSurrogates, LongPoll, MatchPolicy, NativeOptions, OnLeave, OutgoingBridge, OutgoingKind,
    Page, Permission, Ping, Present, RawSocket, Realm, RealmLimits, RequestIdCheck, RequestKey,
    Restart, ReverseProxy, Role, RoleMatch, RouterWorker, Serializer, SettingKind, ShutdownTrigger,
    Skipped, SystemdEndpoint, TcpEndpoint, Testee, TesteeKind, TesteeWorker, Tls, Transport,
    TransportKind, UnreadableValues, UriCheck, Web, WebArchive, WebFiles, WebJson, WebOptions,
    WebPaths, WebProgram, WebPython, WebService, WebSocket, WebSocketOptions,
    WebSocketReverseProxy, WebSocketTestee, Webhook, Worker,
};
pub use model::{
    Elsewhere, Fabric, NamedCertificate, NatsUrl, NodesTls, ProxyProtocol, Replicated,
};
pub use model::{
    ExchangeToTopic, Joint, JointExchange, JointKind, JointTarget, ProcedureToTarget,
    TargetToProcedure, TopicToExchange,
};
pub use model::{Mqtt, MqttOptions, Otlp, PayloadMapping};
pub use model::{RLink, RLinkAuth, RLinkEndpoint, RLinkRequest, RLinkTls, RLinkTransport};
pub use part::{
    component_from_json, joint_from_json, realm_from_json, rlink_from_json, role_from_json,
    transport_from_json, worker_from_json,
};
pub use problem::{Problem, Severity, Source, render};
pub use secrets::is_secret;
pub use tree::{Format, Span};

/// The environment: the value of a variable, if it is set.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Values that a text refers to and that are elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    environment: Environment<'a>,
    /// The secret in a file, or the reason for its absence.
    secret: &'a dyn Fn(&str) -> Result<String, String>,
}

/// The JSON Schema of a configuration, for editors.
pub const JSON_SCHEMA: &str = include_str!("../schema/crosstie.schema.json");

/// The configuration of a node without a file.
pub const EMBEDDED: &str = include_str!("embedded.json");

/// The id of its AMQP transport.
pub const EMBEDDED_AMQP: &str = "amqp";

/// The id of the console's transport.
pub const CONSOLE: &str = "console";

/// The roles of sessions at the console: one that reads, and one that changes.
pub const CONSOLE_ROLES: [&str; 2] = ["monitoring", "administrator"];

/// The ids of the embedded default's transports for RabbitMQ's tools: the management API, and the metrics.
pub const EMBEDDED_TOOLS: [&str; 2] = ["management", "prometheus"];

/// The id of its transport for WAMP over TCP.
pub const EMBEDDED_TCP: &str = "transport1";

/// Maximum size of a configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Maximum size of a principals file, in bytes: several hundred thousand principals.
const PRINCIPALS_BYTES_MAX: u64 = 64 << 20;

/// Maximum size of a secret file, in bytes.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// A usable configuration with its warnings.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<Problem>,
    /// Files that a node would read with it; none has been read yet.
    pub files: Vec<NamedFiles>,
    /// The text that the places of warnings and files point into.
    pub source: Source,
    /// What the configuration was made from, to be compared with another one.
    pub tree: Tree,
}

/// The reason why a file gives no configuration.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The file cannot be read.
    Unreadable { path: PathBuf, error: io::Error },
    /// The file name names no known format.
    UnknownFormat { path: PathBuf },
    /// The file was read; at least one of the problems is an error.
    Invalid {
        source: Source,
        problems: Vec<Problem>,
    },
}

/// Checks `source`. On failure the problems include the warnings.
pub fn parse(
    source: &Source,
    format: Format,
    environment: Environment<'_>,
) -> Result<(Config, Vec<Problem>), Vec<Problem>> {
    let outside = without_files(environment);
    let (config, _, problems, _) = parse_with_files(source, format, outside)?;
    Ok((config, problems))
}

/// The same, with what the configuration was made from in place of the warnings.
pub fn parse_tree(
    source: &Source,
    format: Format,
    environment: Environment<'_>,
) -> Result<(Config, Tree), Vec<Problem>> {
    let outside = without_files(environment);
    let (config, _, _, tree) = parse_with_files(source, format, outside)?;
    Ok((config, tree))
}

/// The environment of a text that is in no directory.
fn without_files(environment: Environment<'_>) -> Outside<'_> {
    Outside {
        environment,
        secret: &|_| Err("there is no directory that it could be in".to_owned()),
    }
}

type Parsed = (Config, Vec<NamedFiles>, Vec<Problem>, Tree);

fn parse_with_files(
    source: &Source,
    format: Format,
    outside: Outside<'_>,
) -> Result<Parsed, Vec<Problem>> {
    let mut problems = Vec::new();
    let Some(mut root) = tree::parse(&source.text, format, &mut problems) else {
        return Err(problems);
    };
    earlier::renew(&mut root, &mut problems);
    proxied::give(&mut root, &mut problems);
    let table = &catalogue::CONFIG;
    let kind = catalogue::Kind::Object(table);
    let secrets = check::check(&mut root, &kind, table.name, Some(outside), &mut problems);
    if problem::failed(&problems) {
        return Err(problems);
    }
    let tree = Tree { root, secrets };
    let (config, files) = tree.build(&mut problems);
    if problem::failed(&problems) {
        return Err(problems);
    }
    Ok((config, files, problems, tree))
}

/// Reads and checks the file at `path`. The file name decides the format.
pub fn load(path: &Path, environment: Environment<'_>) -> Result<Loaded, Failure> {
    let (source, format) = read_source(path)?;
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let outside = Outside {
        environment,
        secret: &|file| read_secret(&directory.join(file)),
    };
    match parse_with_files(&source, format, outside) {
        Ok((config, files, warnings, tree)) => Ok(Loaded {
            config,
            tree,
            warnings,
            files,
            source,
        }),
        Err(problems) => Err(Failure::Invalid { source, problems }),
    }
}

/// The methods with the principals of their files. A relative path starts at `directory`.
pub fn read_principals(
    methods: &Methods,
    directory: &Path,
    environment: Environment<'_>,
) -> Result<Methods, Failure> {
    let mut read = methods.clone();
    for PrincipalsFile { method, path } in &methods.files {
        let path = directory.join(path);
        let (source, format) = read_source_of(&path, PRINCIPALS_BYTES_MAX)?;
        if let (Method::Jwt, Some(jwt)) = (*method, &mut read.jwt) {
            let keys = Jwks::parse(&source.text).map_err(|e| {
                let problems = vec![Problem::error(Span::default(), e.to_string())];
                Failure::Invalid { source, problems }
            })?;
            jwt.keys = Arc::new(keys);
            continue;
        }
        let beside = path.parent().unwrap_or_else(|| Path::new(""));
        let outside = Outside {
            environment,
            secret: &|file| read_secret(&beside.join(file)),
        };
        let mut problems = Vec::new();
        replace_principals(&mut read, *method, &source, format, outside, &mut problems);
        if problem::failed(&problems) {
            return Err(Failure::Invalid { source, problems });
        }
    }
    Ok(read)
}

/// Warnings about roles of principals in files that are neither in `roles`, the roles of the worker's realms, nor in
/// `configured`. `read` holds the principals of the files.
pub fn unknown_roles(configured: &Methods, read: &Methods, roles: &[String]) -> Vec<String> {
    let known: HashSet<&str> = roles
        .iter()
        .map(String::as_str)
        .chain(configured.roles().map(|(_, role)| role))
        .chain([Role::TRUSTED])
        .collect();
    let unknown: BTreeSet<&str> = read
        .roles()
        .map(|(_, role)| role)
        .filter(|role| !known.contains(role))
        .collect();
    let warning = |role: &str| {
        format!(
            "no realm that can be joined here has the role {}: the router rejects the principals with it",
            tree::quoted(role)
        )
    };
    unknown.into_iter().map(warning).collect()
}

/// Replaces the principals of a method by those of a file.
fn replace_principals(
    methods: &mut Methods,
    method: Method,
    source: &Source,
    format: Format,
    outside: Outside<'_>,
    problems: &mut Vec<Problem>,
) {
    let Some(file) = tree::parse(&source.text, format, problems) else {
        return;
    };
    let Some(key) = catalogue::AUTH.key(method.name()) else {
        return;
    };
    let mut root = principals::wrapped(methods, method, file);
    check::check(&mut root, &key.kind, key.name, Some(outside), problems);
    if problem::failed(problems) {
        return;
    }
    if let Some(view) = view::view_of(&root, &key.kind) {
        build::Builder::new(problems).replace_principals(methods, method, view);
    }
}

/// Reads the file at `path`. The file name decides the format.
pub fn read_source(path: &Path) -> Result<(Source, Format), Failure> {
    read_source_of(path, FILE_BYTES_MAX)
}

fn read_source_of(path: &Path, bytes_max: u64) -> Result<(Source, Format), Failure> {
    let format = Format::of(path).ok_or_else(|| Failure::UnknownFormat { path: path.into() })?;
    let bytes = read(path, bytes_max).map_err(|error| Failure::Unreadable {
        path: path.into(),
        error,
    })?;
    let name = path.display().to_string();
    let text = decode(bytes).map_err(|(text, problem)| Failure::Invalid {
        source: Source::new(name.clone(), text),
        problems: vec![problem],
    })?;
    Ok((Source { name, text }, format))
}

impl Config {
    /// The configuration without a file: `realm1`, in which role `anonymous` may do everything, on loopback port 8080
    /// and the Unix socket `crosstie.sock`; AMQP for `guest` on loopback port 5672, by the transport
    /// [`EMBEDDED_AMQP`]; RabbitMQ's management API and metrics on loopback ports 15672 and 15692, by [`EMBEDDED_TOOLS`]; the
    /// console on loopback port 8090, for every client of this machine.
    pub fn embedded_default() -> Self {
        let source = Source::new("embedded".into(), EMBEDDED.into());
        let parsed = parse(&source, Format::Json, &|_| None);
        // The file is part of the program, and a test reads it.
        let (config, _) =
            parsed.unwrap_or_else(|problems| panic!("{}", render(&problems, &source)));
        config
    }
}

#[expect(clippy::disallowed_types, reason = "the one place that reads a file")]
fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    io::Read::read_to_end(&mut io::Read::take(file, bytes_max + 1), &mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("it is larger than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The first line of a file.
fn read_secret(path: &Path) -> Result<String, String> {
    let bytes = read(path, SECRET_BYTES_MAX).map_err(|e| e.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let line = text.lines().next().unwrap_or_default();
    match line.is_empty() {
        true => Err("its first line is empty".to_owned()),
        false => Ok(line.to_owned()),
    }
}

/// The bytes as text, without a byte order mark. The error holds the text up to the first byte that is not UTF-8.
fn decode(mut bytes: Vec<u8>) -> Result<String, (String, Problem)> {
    const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned();
        let at = Span { start: end, end };
        (
            text,
            Problem::error(at, "the file is not UTF-8 here".into()),
        )
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => {
                write!(f, "cannot read {}: {error}", path.display())
            }
            Self::UnknownFormat { path } => write!(
                f,
                "cannot tell the format of {}: its name must end in .json, .yaml or .yml",
                path.display()
            ),
            Self::Invalid { source, problems } => f.write_str(render(problems, source).trim_end()),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}

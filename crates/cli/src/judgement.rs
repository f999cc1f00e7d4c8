//! The judgement of a configuration and of the files that it names, without starting anything.

use std::path::Path;

use crosstie_auth::wamp::Methods;
use crosstie_config::{
    self as config, Amqp, Definitions, Failure, Files, Loaded, NamedFiles, Problem, Severity,
    Skipped, Source, Span,
};
use crosstie_node::{NatsCredentials, check_tls, try_import};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::behind_proxy;

/// The problems of a configuration and of its files: warnings alone, or errors too; these without a source if the file
/// could not be read.
pub(crate) type Judgement = Result<(Vec<Problem>, Source), (Vec<Problem>, Option<Source>)>;

/// Judges a configuration of a node's directory, and prints the import's contents. An import that gives users more
/// rights than before is an error unless `allow_wider`.
pub(crate) fn judge(
    path: &Path,
    directory: &Path,
    allow_wider: bool,
    tell: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Judgement> {
    let loaded = match config::load(path, &|name| std::env::var(name).ok()) {
        Ok(loaded) => loaded,
        Err(Failure::Invalid { source, problems }) => return Ok(Err((problems, Some(source)))),
        Err(failure) => {
            let problem = Problem::error(Span::default(), failure.to_string());
            return Ok(Err((vec![problem], None)));
        }
    };
    judge_loaded(loaded, directory, allow_wider, tell)
}

/// The same for a configuration that was loaded.
pub(crate) fn judge_loaded(
    loaded: Loaded,
    directory: &Path,
    allow_wider: bool,
    tell: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Judgement> {
    let mut problems = loaded.warnings;
    for named in &loaded.files {
        problems.extend(judge_files(named, directory, allow_wider, tell)?);
    }
    let is_good = problems.iter().all(|p| p.severity != Severity::Error);
    for note in behind_proxy::notes(&loaded.config)
        .iter()
        .filter(|_| is_good)
    {
        tell(note)?;
    }
    Ok(match is_good {
        true => Ok((problems, loaded.source)),
        false => Err((problems, Some(loaded.source))),
    })
}

/// The problems of files that a configuration names.
fn judge_files(
    named: &NamedFiles,
    directory: &Path,
    allow_wider: bool,
    tell: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Problem>> {
    let NamedFiles { span, files } = named;
    let span = *span;
    let mut problems = Vec::new();
    let errors = match files {
        Files::Tls(tls) => match check_tls(tls, directory) {
            Ok(oddity) => {
                problems.extend(oddity.map(|text| Problem::warning(span, text)));
                Vec::new()
            }
            Err(e) => vec![e.to_string()],
        },
        Files::Definitions { path, amqp } => {
            let (errors, wider) = definitions(path, amqp, directory, tell)?;
            problems.extend(wider.map(|text| match allow_wider {
                true => Problem::warning(span, text),
                false => Problem::error(span, format!("{text} ({ALLOW_WIDER})")),
            }));
            errors
        }
        Files::Principals { methods, roles } => match principals(methods, roles, directory) {
            Ok(unknown) => {
                let warnings = unknown.into_iter().map(|text| Problem::warning(span, text));
                problems.extend(warnings);
                Vec::new()
            }
            Err(error) => vec![error],
        },
        Files::Directory(path) | Files::File(path) => {
            // It may be created before the node is started.
            let missing = missing(&directory.join(path), matches!(files, Files::Directory(_)));
            problems.extend(missing.map(|text| Problem::warning(span, text)));
            Vec::new()
        }
        Files::NatsCredentials(path) => {
            let path = directory.join(path);
            match missing(&path, false) {
                Some(text) => {
                    problems.push(Problem::warning(span, text));
                    Vec::new()
                }
                None => match NatsCredentials::check(&path) {
                    Ok(warning) => {
                        problems.extend(warning.map(|text| Problem::warning(span, text)));
                        Vec::new()
                    }
                    Err(why) => vec![why],
                },
            }
        }
        Files::Socket(path) => Vec::from_iter(too_long(&directory.join(path))),
        Files::Cores(cores) => {
            // The file may be for another machine.
            let missing = missing_cores(cores);
            problems.extend(missing.map(|text| Problem::warning(span, text)));
            Vec::new()
        }
        _ => Vec::new(),
    };
    problems.extend(errors.into_iter().map(|e| Problem::error(span, e)));
    Ok(problems)
}

/// Oddities of the principals in files, or the reason why the files cannot be read.
pub(crate) fn principals(
    methods: &Methods,
    roles: &Option<Vec<String>>,
    directory: &Path,
) -> Result<Vec<String>, String> {
    let environment = |name: &str| std::env::var(name).ok();
    let read = config::read_principals(methods, directory, &environment);
    let read = read.map_err(|e| e.to_string())?;
    let unknown = roles
        .iter()
        .flat_map(|roles| config::unknown_roles(methods, &read, roles));
    Ok(unknown.collect())
}

/// The missing file or directory of a web service, which could not serve or start without it.
fn missing(path: &Path, is_directory: bool) -> Option<String> {
    let (what, is_there, then) = match is_directory {
        true => (
            "directory",
            path.is_dir(),
            ": nothing is found below it until there is",
        ),
        false => ("file", path.is_file(), ", and the node would not start"),
    };
    (!is_there).then(|| format!("there is no {what} {}{then}", path.display()))
}

/// The reason why a socket cannot have that path.
fn too_long(path: &Path) -> Option<String> {
    let bytes = path.as_os_str().len();
    (bytes > SOCKET_PATH_BYTES_MAX).then(|| {
        format!(
            "the path of a Unix socket has at most {SOCKET_PATH_BYTES_MAX} bytes, and {} has {bytes}",
            path.display()
        )
    })
}

/// `sun_path` of `unix(7)`, less its zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The cores that a process cannot run on here: a node would not start.
fn missing_cores(cores: &[usize]) -> Option<String> {
    let usable = sched_getaffinity(None).ok()?;
    let is_there = |core: usize| core < CpuSet::MAX_CPU && usable.is_set(core);
    let listed = |cores: &mut dyn Iterator<Item = usize>| {
        let numbers: Vec<_> = cores.map(|core| core.to_string()).collect();
        numbers.join(", ")
    };
    let missing = listed(&mut cores.iter().copied().filter(|&core| !is_there(core)));
    let there = listed(&mut (0..CpuSet::MAX_CPU).filter(|&core| is_there(core)));
    let text = format!(
        "cores {missing} do not exist on this machine or may not be used, and the worker would not \
         start here; there are {there}"
    );
    (!missing.is_empty()).then_some(text)
}

const ALLOW_WIDER: &str = "`--allow-wider` accepts that";

/// Prints the parts of definitions that would be imported, and those that would not. Returns errors, and the
/// restrictions on users that would be lost.
pub(crate) fn definitions(
    path: &str,
    amqp: &Amqp,
    directory: &Path,
    tell: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<(Vec<String>, Option<String>)> {
    let definitions = match Definitions::load(&directory.join(path)) {
        Ok(definitions) => definitions,
        Err(error) => return Ok((vec![error.to_string()], None)),
    };
    let mut amqp = amqp.clone();
    let mut refused = amqp.import(&definitions);
    refused.extend(try_import(&amqp, &definitions));
    tell(&format!("{path}: {}", summary(&definitions, &refused)))?;
    let skipped: Vec<_> = definitions.skipped.iter().chain(&refused).collect();
    for skipped in &skipped {
        tell(&format!("  {skipped}"))?;
    }
    let unknown = amqp.unknown_users().into_iter().map(|(user, vhost)| {
        format!("{path}: vhost '{vhost}' has a permission of user '{user}', which does not exist")
    });
    Ok((unknown.collect(), wider(path, &skipped)))
}

/// The restrictions on users that are not imported.
fn wider(path: &str, skipped: &[&Skipped]) -> Option<String> {
    let mut parts = skipped.iter().filter(|part| part.is_wider);
    let first = &parts.next()?.what;
    let others = match parts.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "{path}: users may do more than in RabbitMQ: without the {first}{others}"
    ))
}

fn summary(definitions: &Definitions, refused: &[Skipped]) -> String {
    let taken = |count: usize, kind: &str| {
        let refused = refused.iter().filter(|r| r.what.starts_with(kind));
        count - refused.count()
    };
    let counts = [
        (definitions.users.len(), "users"),
        (definitions.vhosts.len(), "vhosts"),
        (taken(definitions.exchanges.len(), "exchange "), "exchanges"),
        (taken(definitions.queues.len(), "queue "), "queues"),
        (taken(definitions.bindings.len(), "binding "), "bindings"),
        (definitions.skipped.len() + refused.len(), "not imported"),
    ];
    let counts = counts.map(|(count, what)| format!("{count} {what}"));
    let version = definitions.version.as_deref();
    let version = version.map_or_else(String::new, |version| format!(" of RabbitMQ {version}"));
    format!("definitions{version}: {}", counts.join(", "))
}

//! Containers: child processes that host Autobahn|Python components, by means of Crosstie's own Python package.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosstie_config::{ContainerShutdown, Json, NativeOptions};

use crate::place::Place;
use crate::process::{Command, Output, Stdin, Streams, find_program};

/// The package's module that hosts components.
const MODULE: &str = "crosstie.container";

/// Number of last lines that are searched for the reason of a host's early end.
pub(crate) const REASON_LINES: usize = 20;

/// The command that hosts a worker's components.
pub(crate) fn command(
    worker: &str,
    options: &NativeOptions,
    shutdown: ContainerShutdown,
    place: &Place,
) -> Result<Command, String> {
    let socket = place
        .management_socket()
        .ok_or("it needs a node directory: there is no management realm without one")?;
    let program = interpreter(options.python.as_deref(), place)?;
    let mut arguments: Vec<String> = ["-u", "-m", MODULE].map(str::to_owned).into();
    // An id may begin like an option.
    arguments.push(format!("--worker={worker}"));
    let mut option = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
    option("management", format!("unix:{}", socket.display()));
    option("directory", place.directory.display().to_string());
    option("shutdown", policy(shutdown).to_owned());
    option("loglevel", place.loglevel.clone());
    if let Some(title) = &options.title {
        option("title", title.clone());
    }
    for path in &options.pythonpath {
        option(
            "pythonpath",
            place.directory.join(path).display().to_string(),
        );
    }
    if options.exposes_shared {
        arguments.push("--expose-shared".to_owned());
    }
    let has_extra = options.extra != Json::Null;
    if has_extra {
        arguments.extend(["--extra", "-"].map(str::to_owned));
    }
    Ok(Command {
        program,
        arguments: arguments.into_iter().map(Into::into).collect(),
        directory: place.directory.clone(),
        environment: options.environment.clone(),
        secrets: Arc::clone(&place.secrets),
        more_variables: Vec::new(),
        cpu_affinity: options.cpu_affinity.clone(),
        // Not an argument: arguments have a limited length, and every user of the machine can read them.
        stdin: match has_extra {
            true => Stdin::Text {
                bytes: options.extra.to_string().into_bytes(),
                close: true,
            },
            false => Stdin::Null,
        },
        stdout: Output::Lines,
        stderr: Output::Lines,
        streams: Streams::default(),
    })
}

/// Advice about a host that ended early, if its last lines show the cause.
pub(crate) fn advice(program: &Path, lines: &[String]) -> Option<String> {
    let missing = |name: &str| {
        let quoted = format!("No module named '{name}");
        let bare = format!("No module named {name}");
        lines
            .iter()
            .any(|line| line.contains(&quoted) || line.contains(&bare))
    };
    let program = program.display();
    if missing("crosstie") {
        return Some(format!(
            "the interpreter {program} has no package 'crosstie': get it with `{program} -m pip \
             install ./python` in Crosstie's source, or name another interpreter in the worker's \
             option 'python'"
        ));
    }
    missing("autobahn").then(|| {
        format!(
            "the interpreter {program} has no package 'autobahn': get it with `{program} -m pip \
             install 'autobahn[twisted]'`"
        )
    })
}

/// The interpreter: the configured one, or else one beside the node's own program, as in a virtual environment, or else
/// the one on PATH.
pub(crate) fn interpreter(configured: Option<&str>, place: &Place) -> Result<PathBuf, String> {
    let search_path = std::env::var_os("PATH");
    let find = |name: &Path| find_program(name, &place.directory, search_path.as_deref());
    if let Some(name) = configured {
        return find(Path::new(name)).map_err(|error| {
            format!("no interpreter as the worker's option 'python' has it: {error}")
        });
    }
    let beside = place.executable.parent().map(|bin| bin.join("python3"));
    if let Some(Ok(beside)) = beside.as_deref().map(find) {
        return Ok(beside);
    }
    find(Path::new("python3")).map_err(|error| {
        format!("no Python interpreter: {error}; the worker's option 'python' may name one")
    })
}

fn policy(shutdown: ContainerShutdown) -> &'static str {
    match shutdown {
        ContainerShutdown::LastComponentStopped => "last-component-stopped",
        ContainerShutdown::AnyComponentStopped => "any-component-stopped",
        ContainerShutdown::AnyComponentFailed => "any-component-failed",
        _ => "manual",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_module_is_named_with_its_remedy() {
        let check = |line: &str, expected: Option<&str>| {
            let advice = advice(Path::new("/opt/bin/python3"), &[line.to_owned()]);
            match expected {
                Some(text) => assert!(advice.is_some_and(|said| said.contains(text)), "{line}"),
                None => assert_eq!(advice, None, "{line}"),
            }
        };
        let install = "`/opt/bin/python3 -m pip install ./python`";
        check(
            "/opt/bin/python3: Error while finding module specification for \
             'crosstie.container' (ModuleNotFoundError: No module named 'crosstie')",
            Some(install),
        );
        check(
            "/usr/bin/python3: No module named crosstie.container",
            Some(install),
        );
        check(
            "ModuleNotFoundError: No module named 'autobahn'",
            Some("autobahn"),
        );
        check("ModuleNotFoundError: No module named 'numpy'", None);
    }
}

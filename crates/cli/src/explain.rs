//! `crosstie check --explain`: judges every configuration in a tree of directories, and ranks the reasons by the number
//! of files that they stop.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use crosstie_config::{Format, Problem, Severity, Source};
use crosstie_node::directory::CONFIG_NAMES;
use serde_json::{Value, json};

use crate::judgement::judge;
use crate::output::print;

/// Maximum number of files.
const FILES_MAX: usize = 100_000;

/// Maximum depth of directories.
const DEPTH_MAX: usize = 64;

/// Directories with third-party content.
const SKIPPED: &[&str] = &[".git", "node_modules"];

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    Text,
    Json,
}

/// One file, and its problems.
struct Judged {
    path: PathBuf,
    /// Each with its line and column, if it has a place.
    problems: Vec<(Option<(usize, usize)>, Problem)>,
}

pub(crate) fn run(roots: &[PathBuf], form: Form) -> anyhow::Result<ExitCode> {
    let mut paths = Vec::new();
    for root in roots {
        find(root, DEPTH_MAX, &mut paths)?;
    }
    paths.sort();
    paths.dedup();
    if paths.is_empty() {
        bail!("no node's configuration below {}", listed(roots));
    }
    let mut files = Vec::new();
    for path in paths {
        files.push(judged(path)?);
    }
    let told = match form {
        Form::Text => text(&files),
        Form::Json => format!("{:#}\n", as_json(&files)),
    };
    print(&told)?;
    Ok(match files.iter().all(Judged::loads) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn listed(roots: &[PathBuf]) -> String {
    let roots: Vec<String> = roots.iter().map(|r| r.display().to_string()).collect();
    roots.join(", ")
}

/// Adds the configurations below `directory`: files with a configuration's name, and in `.crossbar` those with its
/// prefix. Symbolic links are not followed, so that no file is found twice.
fn find(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let unreadable = || format!("cannot read {}", directory.display());
    let is_node = directory
        .file_name()
        .is_some_and(|name| name == ".crossbar");
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().with_context(unreadable)?;
        if kind.is_dir() {
            if depth > 0 && !SKIPPED.contains(&&*name) {
                find(&path, depth - 1, found)?;
            }
        } else if kind.is_file() {
            let is_one = match is_node {
                true => name.starts_with("config") && Format::of(&path).is_some(),
                false => CONFIG_NAMES.contains(&&*name) && says_workers(&path),
            };
            if is_one {
                found.push(path);
            }
            if found.len() > FILES_MAX {
                bail!("more than {FILES_MAX} configurations: name directories with fewer");
            }
        }
    }
    Ok(())
}

/// Many programs have a `config.json`: a node's has workers.
fn says_workers(path: &Path) -> bool {
    let read = crosstie_config::read_source(path);
    read.is_ok_and(|(source, _)| source.text.contains("workers"))
}

fn judged(path: PathBuf) -> anyhow::Result<Judged> {
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let problems = match judge(&path, directory, true, &mut |_| Ok(()))? {
        Ok((problems, source)) | Err((problems, Some(source))) => placed(problems, &source),
        Err((problems, None)) => problems.into_iter().map(|p| (None, p)).collect(),
    };
    Ok(Judged { path, problems })
}

fn placed(problems: Vec<Problem>, source: &Source) -> Vec<(Option<(usize, usize)>, Problem)> {
    let place = |problem: &Problem| Some(source.position(problem.span));
    let problems = problems.into_iter();
    let mut problems: Vec<_> = problems.map(|p| (place(&p), p)).collect();
    problems.sort_by_key(|(place, _)| *place);
    problems
}

impl Judged {
    fn loads(&self) -> bool {
        self.of(Severity::Error).next().is_none()
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Problem> {
        let problems = self.problems.iter().map(|(_, problem)| problem);
        problems.filter(move |problem| problem.severity == severity)
    }
}

/// Problems by number of files, the most common first; each with its first file.
fn ranked(files: &[Judged], severity: Severity) -> Vec<(usize, &str, &Path)> {
    let mut counts: BTreeMap<&str, (usize, &Path)> = BTreeMap::new();
    for file in files {
        let mut said: Vec<&str> = file.of(severity).map(|p| p.message.as_str()).collect();
        said.sort_unstable();
        said.dedup();
        for message in said {
            counts.entry(message).or_insert((0, &file.path)).0 += 1;
        }
    }
    let counts = counts.into_iter();
    let mut ranked: Vec<_> = counts
        .map(|(said, (count, file))| (count, said, file))
        .collect();
    ranked.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
    ranked
}

fn text(files: &[Judged]) -> String {
    let loaded = files.iter().filter(|file| file.loads()).count();
    let odd = files
        .iter()
        .filter(|file| file.loads() && !file.problems.is_empty());
    let mut lines = vec![format!(
        "{} configurations: {loaded} load ({} of them with warnings), {} are refused",
        files.len(),
        odd.count(),
        files.len() - loaded
    )];
    for (title, severity) in [
        ("refused for", Severity::Error),
        ("warned of", Severity::Warning),
    ] {
        let ranked = ranked(files, severity);
        if !ranked.is_empty() {
            lines.push(format!("\nfiles  {title}"));
        }
        for (count, said, first) in ranked {
            lines.push(format!("{count:>5}  {said}"));
            lines.push(format!("       in {}", first.display()));
        }
    }
    lines.push("\nfile by file".to_owned());
    for file in files {
        let state = match (file.loads(), file.problems.is_empty()) {
            (true, true) => "loads",
            (true, false) => "loads, with warnings",
            (false, _) => "refused",
        };
        lines.push(format!("{}: {state}", file.path.display()));
        for (place, problem) in &file.problems {
            if problem.severity == Severity::Error {
                let place =
                    place.map_or_else(String::new, |(line, column)| format!("{line}:{column}: "));
                lines.push(format!("  {place}{}", problem.message));
            }
        }
    }
    lines.join("\n") + "\n"
}

fn as_json(files: &[Judged]) -> Value {
    let reasons = |severity| -> Vec<Value> {
        let ranked = ranked(files, severity).into_iter();
        let reason = |(count, said, first): (usize, &str, &Path)| json!({"files": count, "message": said, "first": first.display().to_string()});
        ranked.map(reason).collect()
    };
    let problem = |(place, problem): &(Option<(usize, usize)>, Problem)| {
        let (line, column) = place.unzip();
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        json!({"severity": severity, "line": line, "column": column, "message": problem.message})
    };
    let file = |file: &Judged| {
        let problems: Vec<Value> = file.problems.iter().map(problem).collect();
        json!({"path": file.path.display().to_string(), "loads": file.loads(), "problems": problems})
    };
    let loaded = files.iter().filter(|file| file.loads()).count();
    json!({
        "loaded": loaded,
        "refused": files.len() - loaded,
        "reasons": reasons(Severity::Error),
        "warnings": reasons(Severity::Warning),
        "files": files.iter().map(file).collect::<Vec<_>>(),
    })
}

//! `crosstie convert`: a configuration file from JSON to YAML, or the other way, and from version 1 to 2.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use crosstie_config::{self as config, Failure, Format};
use crosstie_node::directory::CONFIG_NAMES;

use crate::check::Place;
use crate::output::print;

/// Write a configuration file anew in the other language, beside it, and in version 2 of the format if it is of
/// version 1; the keys stay in their order.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Input file; by default the configuration of the node's directory.
    #[arg(value_name = "FILE", conflicts_with_all = ["cbdir", "config"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Output file, whose extension selects the format; `-` is standard output.
    #[arg(long, value_name = "FILE|-")]
    output: Option<PathBuf>,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let path = match arguments.file {
        Some(file) => file,
        None => arguments.place.config()?,
    };
    let (source, from) = match config::read_source(&path) {
        Ok(read) => read,
        Err(failure) => return told(&failure),
    };
    let (output, to) = target(&path, from, arguments.output)?;
    let text = match config::convert(&source, from, to) {
        Ok((text, warnings)) => {
            if !warnings.is_empty() {
                complain!("{}", config::render(&warnings, &source).trim_end());
            }
            text
        }
        Err(problems) => return told(&Failure::Invalid { source, problems }),
    };
    if from == Format::Yaml && source.text.contains('#') {
        complain!("warning: the comments of {} are lost", path.display());
    }
    let Some(output) = output else {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    write(&output, &text, arguments.force)?;
    say!(
        "{} is now {} too: {}",
        path.display(),
        to.name(),
        output.display()
    )?;
    if is_preferred(&output, &path) {
        say!(
            "A node now uses {} instead of {}.",
            output.display(),
            path.display()
        )?;
    } else if is_preferred(&path, &output) {
        say!("A node prefers {} while it exists.", path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a node without options prefers the first of the two.
fn is_preferred(path: &Path, other: &Path) -> bool {
    let rank = |path: &Path| {
        let name = path.file_name()?;
        CONFIG_NAMES.iter().position(|known| name == *known)
    };
    let ranks = rank(path).zip(rank(other));
    path.parent() == other.parent() && ranks.is_some_and(|(path, other)| path < other)
}

fn told(failure: &Failure) -> anyhow::Result<ExitCode> {
    complain!("{failure}");
    Ok(ExitCode::FAILURE)
}

/// The file to write, or `None` for standard output, and its language.
fn target(
    path: &Path,
    from: Format,
    output: Option<PathBuf>,
) -> anyhow::Result<(Option<PathBuf>, Format)> {
    let (other, extension) = match from {
        Format::Json => (Format::Yaml, "yaml"),
        Format::Yaml => (Format::Json, "json"),
    };
    match output {
        None => Ok((Some(path.with_extension(extension)), other)),
        Some(output) if output == Path::new("-") => Ok((None, other)),
        Some(output) => match Format::of(&output) {
            Some(format) => Ok((Some(output), format)),
            None => bail!(
                "cannot tell what to write into {}: its name must end in .json, .yaml or .yml",
                output.display()
            ),
        },
    }
}

/// Writes all or nothing, and replaces an existing file only with `force`.
fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    let mut new_name = OsString::from(".");
    new_name.push(path.file_name().unwrap_or_default());
    new_name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(new_name);
    let new = if force { &beside } else { path };
    let mut file = match File::create_new(new) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{} is there already; --force overwrites it", new.display())
        }
        created => created.with_context(|| format!("cannot write {}", path.display()))?,
    };
    let mut put = || {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        if force { fs::rename(new, path) } else { Ok(()) }
    };
    put()
        .inspect_err(|_| drop(fs::remove_file(new)))
        .with_context(|| format!("cannot write {}", path.display()))
}

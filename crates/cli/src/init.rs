//! `crosstie init`: a node directory from a template, or from the files of a RabbitMQ.

mod from_rabbitmq;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use crosstie_config::{Files, Loaded};

use crate::judgement;

/// Make a directory with a node in it, from a template or from RabbitMQ's files. Nothing that is there is overwritten.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Template name; --list shows all.
    #[arg(long, value_name = "NAME", default_value = "default")]
    template: String,
    /// Target directory, created if missing.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    appdir: PathBuf,
    /// List the templates.
    #[arg(long)]
    list: bool,
    /// Write the configuration of a broker in a RabbitMQ's place from its `rabbitmq.conf`, and from the file that
    /// `rabbitmqctl export_definitions` writes. Lists what is left out, each with the reason.
    #[arg(long, value_names = ["CONF", "DEFINITIONS"], num_args = 1..=2, conflicts_with = "template")]
    from_rabbitmq: Vec<PathBuf>,
}

struct Template {
    name: &'static str,
    about: &'static str,
    /// By their paths in the directory.
    files: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($template:literal: $($path:literal),+) => {
        &[$(($path, include_str!(concat!("../templates/", $template, "/", $path)))),+]
    };
}

const TEMPLATES: &[Template] = &[
    Template {
        name: "default",
        about: "a router, with WebSocket and RawSocket on port 8080",
        files: files!("default": ".crossbar/config.json", "README.md"),
    },
    Template {
        name: "python",
        about: "a router, and a container with a component in Python",
        files: files!(
            "python": ".crossbar/config.json", "README.md", "hello/__init__.py", "hello/component.py"
        ),
    },
    Template {
        name: "guest",
        about: "a router, and a guest: any program",
        files: files!("guest": ".crossbar/config.json", "README.md", "guest/time.sh"),
    },
    Template {
        name: "amqp",
        about: "a broker of AMQP 0-9-1 on port 5672, in RabbitMQ's place",
        files: files!("amqp": ".crossbar/config.yaml", "README.md"),
    },
];

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        for template in TEMPLATES {
            say!("{:<10}{}", template.name, template.about)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.from_rabbitmq.is_empty() {
        return write_moved(&arguments);
    }
    let known = TEMPLATES
        .iter()
        .find(|known| known.name == arguments.template);
    let Some(template) = known else {
        let names: Vec<&str> = TEMPLATES.iter().map(|known| known.name).collect();
        bail!(
            "there is no template {:?}; there are {}",
            arguments.template,
            names.join(", ")
        );
    };
    write(template.files.iter().copied(), &arguments.appdir, 0o666)?;
    let directory = arguments.appdir.display();
    say!(
        "A node from the template {} is in {directory}:",
        template.name
    )?;
    for (path, _) in template.files {
        say!("    {path}")?;
    }
    say!("`crosstie start` starts it there; README.md says what it does.")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the files of a moved RabbitMQ, and reports what is left out.
fn write_moved(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let moved = from_rabbitmq::moved(&arguments.from_rabbitmq)?;
    let files = moved
        .files
        .iter()
        .map(|(path, text)| (*path, text.as_str()));
    // They have hashes of passwords.
    write(files, &arguments.appdir, 0o600)?;
    let loaded = load_moved(&moved, &arguments.appdir)?;
    let directory = arguments.appdir.display();
    say!(
        "A node in the place of that RabbitMQ is in {directory}; {} keys were taken:",
        moved.taken
    )?;
    for (path, _) in &moved.files {
        say!("    {path}")?;
    }
    for left_out in &moved.left_out {
        say!("left out: {left_out}")?;
    }
    say!("note: {}", moved.note)?;
    let config = arguments.appdir.join(from_rabbitmq::CONFIG);
    let node = config.parent().unwrap_or(&arguments.appdir);
    for named in &loaded.files {
        if let Files::Definitions { path, amqp } = &named.files {
            let tell = &mut |line: &str| {
                say!("{line}")?;
                Ok(())
            };
            let (errors, wider) = judgement::definitions(path, amqp, node, tell)?;
            for problem in errors.into_iter().chain(wider) {
                say!("problem: {problem}")?;
            }
        }
    }
    say!("`crosstie check` and `crosstie start` read it there.")?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the configuration as a start does. If that fails, its files are removed.
fn load_moved(moved: &from_rabbitmq::Moved, directory: &Path) -> anyhow::Result<Loaded> {
    let config = directory.join(from_rabbitmq::CONFIG);
    let loaded = crosstie_config::load(&config, &|name: &str| std::env::var(name).ok());
    loaded.map_err(|failure| {
        for (path, _) in &moved.files {
            // It was made a moment ago.
            let _ = fs::remove_file(directory.join(path));
        }
        anyhow::anyhow!("no configuration follows from these files: {failure}")
    })
}

fn write<'f>(
    files: impl Iterator<Item = (&'f str, &'f str)> + Clone,
    directory: &Path,
    mode: u32,
) -> anyhow::Result<()> {
    // All are checked before the first is written, so that nothing is left half done.
    let here = directory == Path::new(".");
    let place = |path: &str| {
        if here {
            PathBuf::from(path)
        } else {
            directory.join(path)
        }
    };
    for (path, _) in files.clone() {
        let path = place(path);
        if path.symlink_metadata().is_ok() {
            bail!("{} is there already; it is not overwritten", path.display());
        }
    }
    for (path, text) in files {
        let path = place(path);
        put(&path, text, mode).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                anyhow::anyhow!("{} is there already; it is not overwritten", path.display())
            }
            _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
        })?;
    }
    Ok(())
}

fn put(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(mode).open(path);
    created?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_started_and_overwrites_nothing() {
        for template in TEMPLATES {
            let directory = tempfile::tempdir().expect("a directory can be made");
            let directory = directory.path().join("new/node");
            write(template.files.iter().copied(), &directory, 0o666)
                .expect("the template can be written");
            let mut paths = template.files.iter().map(|(path, _)| path);
            let config = paths.find(|path| path.starts_with(".crossbar/config."));
            let config = directory.join(config.expect("it has a configuration"));
            let variable = |name: &str| (name == "AMQP_PASSWORD").then(|| "secret".to_owned());
            let loaded = crosstie_config::load(&config, &variable);
            let loaded = loaded.unwrap_or_else(|failure| panic!("{}: {failure}", template.name));
            assert_eq!(loaded.warnings, [], "{}", template.name);

            let mine = directory.join("README.md");
            fs::write(&mine, "mine").expect("a file can be written");
            fs::remove_file(&config).expect("a file can be removed");
            let error = write(template.files.iter().copied(), &directory, 0o666)
                .expect_err("a file is there");
            assert!(
                error.to_string().contains("README.md is there already"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&mine).expect("it is there"), "mine");
            assert!(!config.exists(), "nothing is written");
        }
    }
}

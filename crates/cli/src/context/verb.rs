//! `crosstie context`: adds, selects, lists and removes contexts.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use crosstie_amqp_client::TransportUrl;
use crosstie_client::Endpoint;
use crosstie_terminal::credentials::Credentials;
use serde_json::{Value as Json, json};

use super::file::{Context, Contexts, no_such, path};
use crate::list::{Column, Form, Show, column};

/// Keep addresses and logins under names, for every command.
///
/// The file is `crosstie/contexts.json` in $XDG_CONFIG_HOME, by default `~/.config`. Only its owner may open it. A command
/// uses the context of its option --context, else the one that $CROSSTIE_CONTEXT names, else the selected one; an empty
/// name means none. An option --url, --cbdir or --socket ignores contexts, and so does a tool of RabbitMQ.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Add(Box<Add>),
    /// Select a context for the commands that name none.
    Select {
        /// Name.
        #[arg(required_unless_present = "none")]
        name: Option<String>,
        /// Select none.
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
    /// List the contexts; secrets are not shown.
    List(Form),
    /// Remove a context.
    Remove {
        /// Name.
        name: String,
    },
}

/// Add a context.
///
/// A secret's file is read anew by each command. With `--secret-file -` the secret is read now, from standard input, and
/// kept in the file of the contexts.
#[derive(clap::Args)]
struct Add {
    /// Name.
    #[arg(value_parser = name)]
    name: String,
    /// Router for `call`, `register`, `publish`, `subscribe` and `wait-for`: ws://, wss://, rs://, rss://, ws+unix:PATH or
    /// rs+unix:PATH.
    #[arg(long, value_parser = router)]
    url: Option<String>,
    /// Realm to join there; by default realm1.
    #[arg(long)]
    realm: Option<String>,
    #[command(flatten)]
    login: Credentials,
    /// File with additional trusted authorities, or with the router's own certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
    /// Trust any certificate. Use it only for tests: the router's identity is not verified.
    #[arg(long)]
    insecure: bool,
    /// Management realm of a node, for the other commands: a URL of the same forms. The login is that of --url, and
    /// there is none on a Unix socket.
    #[arg(long, value_name = "URL", value_parser = router, conflicts_with = "cbdir")]
    management: Option<String>,
    /// Directory of a node on this machine, in place of --management.
    #[arg(long, value_name = "DIRECTORY")]
    cbdir: Option<PathBuf>,
    /// Broker for `amqp publish`, `amqp get`, `amqp consume` and `wait-for queue`, as
    /// amqp://USER:PASSWORD@HOST:PORT/VHOST; - reads it from standard input, where others do not see its password.
    #[arg(long, value_name = "URL")]
    amqp: Option<String>,
    /// Replace a context of that name.
    #[arg(long)]
    replace: bool,
    /// Select it.
    #[arg(long)]
    select: bool,
}

static COLUMNS: [Column; 8] = [
    column("", Show::Text("mark")),
    column("name", Show::Text("name")),
    column("url", Show::Text("url")),
    column("realm", Show::Text("realm")),
    column("authid", Show::Text("authid")),
    column("management", Show::Text("management")),
    column("directory", Show::Text("cbdir")),
    column("amqp", Show::Text("amqp")),
];

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let path = path().context("neither XDG_CONFIG_HOME nor HOME names a directory for contexts")?;
    let told = match arguments.action {
        Action::List(form) => {
            return form.print(&COLUMNS, || Ok(rows(&Contexts::read(&path)?)));
        }
        Action::Add(add) => {
            let (name, replace, select) = (add.name.clone(), add.replace, add.select);
            // It may read standard input, for as long as that takes.
            let context = add.context()?;
            Contexts::change(&path, |contexts| {
                contexts.add(name, context, replace, select)
            })?
        }
        Action::Select { name, .. } => Contexts::change(&path, |contexts| contexts.select(name))?,
        Action::Remove { name } => Contexts::change(&path, |contexts| contexts.remove(&name))?,
    };
    say!("{told}")?;
    Ok(ExitCode::SUCCESS)
}

/// The changes; each returns a line for the user.
impl Contexts {
    fn add(
        &mut self,
        name: String,
        context: Context,
        replace: bool,
        select: bool,
    ) -> anyhow::Result<String> {
        if self.contexts.contains_key(&name) && !replace {
            bail!("context '{name}' exists; --replace replaces it");
        }
        self.contexts.insert(name.clone(), context);
        if select {
            self.selected = Some(name.clone());
        }
        Ok(match self.selected.as_ref() == Some(&name) {
            true => format!("Added context '{name}', which is selected"),
            false => {
                format!("Added context '{name}'; `crosstie context select {name}` selects it")
            }
        })
    }

    fn select(&mut self, name: Option<String>) -> anyhow::Result<String> {
        let told = match &name {
            None => "No context is selected".to_owned(),
            Some(name) if !self.contexts.contains_key(name) => {
                bail!(no_such(name, self.contexts.keys()))
            }
            Some(name) => format!("Selected context '{name}'"),
        };
        self.selected = name;
        Ok(told)
    }

    fn remove(&mut self, name: &str) -> anyhow::Result<String> {
        if self.contexts.remove(name).is_none() {
            bail!(no_such(name, self.contexts.keys()));
        }
        Ok(match self.selected.take_if(|selected| *selected == name) {
            Some(_) => format!("Removed context '{name}'; none is selected now"),
            None => format!("Removed context '{name}'"),
        })
    }
}

impl Add {
    fn context(self) -> anyhow::Result<Context> {
        if self.url.is_none()
            && self.management.is_none()
            && self.cbdir.is_none()
            && self.amqp.is_none()
        {
            bail!("expected an address: --url, --management, --cbdir or --amqp");
        }
        let reads_twice = self.login.reads_standard_input() && self.amqp.as_deref() == Some("-");
        if reads_twice {
            bail!("standard input has either the secret or the URL of --amqp");
        }
        let amqp = match self.amqp.as_deref() {
            Some("-") => {
                let mut line = String::new();
                std::io::stdin().read_line(&mut line)?;
                Some(line.trim_end().to_owned())
            }
            _ => self.amqp,
        };
        if let Some(url) = &amqp {
            url.parse::<TransportUrl>().context("--amqp")?;
        }
        let absolute = |path: PathBuf| {
            let found = std::path::absolute(&path);
            found.with_context(|| format!("no path: '{}'", path.display()))
        };
        let ca = self.ca.into_iter().map(absolute);
        Ok(Context {
            url: self.url,
            realm: self.realm,
            login: self.login.kept()?,
            ca: ca.collect::<anyhow::Result<_>>()?,
            insecure: self.insecure,
            management: self.management,
            cbdir: self.cbdir.map(absolute).transpose()?,
            amqp,
        })
    }
}

/// For tables and programs. No secret is in them.
fn rows(contexts: &Contexts) -> Vec<Json> {
    let rows = contexts.contexts.iter().map(|(name, context)| {
        let is_selected = contexts.selected.as_ref() == Some(name);
        json!({
            "mark": if is_selected { "*" } else { "" },
            "selected": is_selected,
            "name": name,
            "url": context.url,
            "realm": context.realm,
            "authid": context.login.authid(),
            "management": context.management,
            "cbdir": context.cbdir.as_ref().map(|path| path.display().to_string()),
            "amqp": context.amqp.as_deref().map(shown),
        })
    });
    rows.collect()
}

/// The URL of a broker without its passwords.
fn shown(url: &str) -> String {
    let Ok(url) = url.parse::<TransportUrl>() else {
        return "not a URL of a broker".to_owned();
    };
    let hosts = url.hosts.iter().map(|host| format!("{}@{host}", host.user));
    let hosts: Vec<_> = hosts.collect();
    format!("amqp://{} vhost {}", hosts.join(","), url.virtual_host)
}

fn name(text: &str) -> Result<String, &'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match (1..=64).contains(&text.len()) && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("expected 1 to 64 letters, digits, dots, dashes and underscores"),
    }
}

fn router(text: &str) -> anyhow::Result<String> {
    text.parse::<Endpoint>()?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_show_no_secret() {
        let text = r#"{"selected":"a","contexts":{"a":{"amqp":"amqp://u:hidden@h/v",
            "login":{"authid":"u","authmethod":"ticket","secret":"hidden"}},"b":{"url":"ws://h"}}}"#;
        let contexts: Contexts = serde_json::from_str(text).unwrap();
        let rows = Json::from(rows(&contexts)).to_string();
        assert!(!rows.contains("hidden"), "{rows}");
        assert!(rows.contains("amqp://u@h:5672 vhost v"), "{rows}");
    }

    #[test]
    fn names_are_plain() {
        let check = |text: &str, expected: bool| {
            assert_eq!(name(text).is_ok(), expected, "{text:?}");
        };
        check("prod-eu.1_a", true);
        check("", false);
        check("a b", false);
        check("\u{1b}[2J", false);
        check(&"a".repeat(65), false);
    }
}

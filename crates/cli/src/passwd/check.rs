//! `crosstie passwd check`: checks a password against a configuration's principals.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use clap::ValueEnum;
use crosstie_auth::wamp::scram::Reading;
use crosstie_auth::wamp::{self, Methods, PrincipalsFile};

use super::password;

/// Check a principal's password: exit code 0 if it is right, 1 if not.
#[derive(clap::Args)]
pub(super) struct Check {
    method: Method,
    /// Authid of the principal.
    authid: String,
    /// Principals (or users) of the method, in JSON or YAML, in the format of `crosstie passwd` and `principals_file`.
    file: PathBuf,
    /// Environment variable with the password.
    #[arg(long, value_name = "VARIABLE")]
    password_env: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    Ticket,
    Wampcra,
    Scram,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let Self { authid, file, .. } = self;
        let methods = self.read()?;
        let password = password::once(self.password_env.as_deref())?;
        let found = match methods {
            Methods {
                ticket: Some(wamp::Ticket::Static { principals, .. }),
                ..
            } => principals.is_right(authid, &password).map(told),
            Methods {
                wampcra: Some(wamp::WampCra::Static { principals, .. }),
                ..
            } => principals.is_right(authid, &password).map(told),
            Methods {
                scram: Some(wamp::Scram::Static { principals, .. }),
                ..
            } => principals.reading_of(authid, &password).map(told_of),
            _ => None,
        };
        let Some((is_right, text)) = found else {
            bail!("{}: there is no {authid:?}", file.display());
        };
        say!("{authid}: {text}")?;
        Ok(ExitCode::from(u8::from(!is_right)))
    }

    /// The method with the principals of the file.
    fn read(&self) -> anyhow::Result<Methods> {
        let mut methods = Methods::default();
        let default_role = None;
        let method = match self.method {
            Method::Ticket => {
                let principals = Arc::default();
                methods.ticket = Some(wamp::Ticket::Static {
                    principals,
                    default_role,
                });
                wamp::Method::Ticket
            }
            Method::Wampcra => {
                let principals = Arc::default();
                methods.wampcra = Some(wamp::WampCra::Static {
                    principals,
                    default_role,
                });
                wamp::Method::WampCra
            }
            Method::Scram => {
                let principals = Arc::default();
                methods.scram = Some(wamp::Scram::Static {
                    principals,
                    default_role,
                });
                wamp::Method::Scram
            }
        };
        methods.files.push(PrincipalsFile {
            method,
            path: self.file.display().to_string(),
        });
        let environment = |name: &str| std::env::var(name).ok();
        let read = crosstie_config::read_principals(&methods, Path::new(""), &environment);
        Ok(read?)
    }
}

fn told(is_right: bool) -> (bool, &'static str) {
    match is_right {
        true => (true, "the password is right"),
        false => (false, "the password is wrong"),
    }
}

fn told_of(reading: Option<Reading>) -> (bool, &'static str) {
    match reading {
        None => told(false),
        Some(Reading::Autobahn) => (true, "the password is right, for clients such as Autobahn"),
        Some(Reading::Specification) => (
            true,
            "the password is right, for clients of the specification",
        ),
    }
}
